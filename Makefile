# What a newcomer types. Every target works on a fresh machine that has Rust, make, git and a
# package manager; missing backends are installed first (Debian and Ubuntu) or named.

CARGO ?= cargo
LASTUNIT = $(CARGO) run --quiet --package cli --
# Where cargo puts what it builds.
BUILT = $(or $(CARGO_TARGET_DIR),target)/debug
RELEASED = $(or $(CARGO_TARGET_DIR),target)/release

.PHONY: help demo bench test soak lint up down backends

help:  ## List the targets
	@sed -n 's/^\([a-z]*\):.*  ## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

demo: backends  ## Let 1,000 buyers buy 500 units, for real, on this machine alone (ARGS="--buyers 5000")
	$(CARGO) run --release --package cli -- demo $(ARGS)

bench: backends  ## Measure limits, other designs and growth, some minutes each (ARGS="--rounds 3")
	$(CARGO) build --release --package cli
	for subject in limits strategies scale; do \
		$(RELEASED)/lastunit bench $$subject --html $(RELEASED)/bench-$$subject.html $(ARGS) || exit; \
	done

test: backends  ## Run every test on a private stack
	$(CARGO) build --workspace --all-targets
	$(BUILT)/lastunit stack exec --fresh --dir .lastunit/test -- env RUST_TEST_THREADS=4 $(CARGO) test --workspace

soak: backends  ## Sell while everything fails, and judge every round (ROUNDS=20 SEED=1 ARGS="--buyers 200")
	$(CARGO) run --package trials --bin trial -- soak --rounds $(or $(ROUNDS),20) --seed $(or $(SEED),1) $(ARGS)

lint:  ## Formatting, clippy with warnings as errors, and the rules of the house
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(CARGO) test --quiet --workspace --test tidy

up: backends  ## Start a private stack and leave it running
	@$(LASTUNIT) stack up

down:  ## Stop the stack that `make up` left running
	@$(LASTUNIT) stack down

backends:
	@./compose/install-backends.sh >&2  # what `make up` prints is for the shell
