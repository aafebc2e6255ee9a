#!/usr/bin/env bash
# Makes the programs of the three backends available: Redis, RabbitMQ (with Erlang), PostgreSQL.
#
#   compose/install-backends.sh           install what is missing (Debian, Ubuntu), or say what to install
#   compose/install-backends.sh --check   only report; the exit status is 1 when something is missing
#
# Only the programs are wanted. `make up`, the demo and the tests start private copies of them on free
# ports, so no system service is started here, and none that already runs is touched.
set -euo pipefail

usage() {
    echo "usage: ${0##*/} [--check]" >&2
    exit 2
}

# Homebrew and some packages install outside PATH; shared/src/devstack/programs.rs looks there too.
places=(/usr/lib/rabbitmq/bin /usr/sbin /usr/local/bin /usr/local/sbin
    /opt/homebrew/bin /opt/homebrew/sbin /home/linuxbrew/.linuxbrew/bin /home/linuxbrew/.linuxbrew/sbin)

# found PROGRAM [FOLDER...]: in PATH, or in one of the folders?
found() {
    local program=$1 folder
    shift
    command -v "$program" >/dev/null 2>&1 && return 0
    for folder in "$@"; do
        [[ -x $folder/$program ]] && return 0
    done
    return 1
}

# Prints the names of the backends that lack a program: one word each, in the order of start.
missing_backends() {
    local program
    # Looked up each time: an installation brings folders that were not there before.
    local postgres_places=(/usr/lib/postgresql/*/bin /usr/pgsql-*/bin
        /opt/homebrew/opt/postgresql*/bin /usr/local/opt/postgresql*/bin)
    found redis-server "${places[@]}" || echo redis
    for program in erl epmd rabbitmq-server rabbitmqctl; do
        found "$program" "${places[@]}" || { echo rabbitmq; break; }
    done
    for program in postgres initdb psql; do
        found "$program" "${postgres_places[@]}" || { echo postgresql; break; }
    done
}

# What a person has to install, by package manager, when this script cannot do it.
print_instructions() {
    local backend
    for backend in "$@"; do
        case $backend in
        redis) echo "  Redis (tried: 7.0)        programs: redis-server
      apt: redis-server      dnf: redis (or valkey-compat-redis)      brew: redis      pacman: redis (or valkey)" ;;
        rabbitmq) echo "  RabbitMQ (tried: 3.10)    programs: rabbitmq-server rabbitmqctl erl epmd
      apt: rabbitmq-server      dnf: rabbitmq-server      brew: rabbitmq      pacman: rabbitmq" ;;
        postgresql) echo "  PostgreSQL (tried: 15)    programs: postgres initdb psql
      apt: postgresql      dnf: postgresql-server      brew: postgresql@16      pacman: postgresql" ;;
        esac
    done
}

give_up() {
    local reason=$1
    shift
    {
        echo "Cannot install the missing backends: $reason. Please install these yourself:"
        print_instructions "$@"
    } >&2
    exit 1
}

# Debian's packages start their service as soon as they are configured, which would take the
# standard ports (6379, 5672, 5432, and 4369 for epmd). A policy-rc.d that answers 101 ("not
# allowed") is Debian's own way to prevent that. One that is already there belongs to somebody
# else, so it stays as it is; ours is removed again however this script ends.
policy=/usr/sbin/policy-rc.d
forbid_service_starts() {
    [[ -e $policy ]] && return 0
    trap '"${as_root[@]}" rm -f "$policy"' EXIT
    printf '#!/bin/sh\n# Temporary: written by LastUnit while it installs backends.\nexit 101\n' |
        "${as_root[@]}" tee "$policy" >/dev/null
    "${as_root[@]}" chmod 755 "$policy"
}

# Under systemd the packages also enable their services for the next boot. What this run brought
# in is disabled again; services that were there before are not named, so they stay as they are.
disable_at_boot() {
    [[ -d /run/systemd/system ]] || return 0
    "${as_root[@]}" systemctl disable --quiet "$@" 2>/dev/null || true
}

install_with_apt() {
    local backend packages=() services=()
    for backend in "$@"; do
        case $backend in
        redis)
            packages+=(redis-server)
            services+=(redis-server.service)
            ;;
        rabbitmq)
            packages+=(rabbitmq-server)
            services+=(rabbitmq-server.service)
            # Where Erlang was there already, its epmd may be in somebody's use.
            found epmd "${places[@]}" || services+=(epmd.service epmd.socket)
            ;;
        postgresql)
            packages+=(postgresql)
            services+=(postgresql.service)
            ;;
        esac
    done
    # A freshly started machine is often still busy with its own updates: wait for the lock.
    local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq
        -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0)
    echo "Installing ${packages[*]} with apt; no system service will be started."
    forbid_service_starts
    "${apt[@]}" update || echo "apt-get update reported errors; trying with the package lists at hand." >&2
    "${apt[@]}" install -y --no-install-recommends "${packages[@]}" ||
        give_up "apt-get install failed (see above)" "$@"
    disable_at_boot "${services[@]}"
}

case ${1-} in
"" | --check) ;;
*) usage ;;
esac
[[ $# -le 1 ]] || usage

# Words in a string, not an array: macOS still comes with bash 3.2. Hence no quotes around it below.
missing=$(missing_backends)
if [[ -z $missing ]]; then
    echo "Redis, RabbitMQ and PostgreSQL programs are all there."
    exit 0
fi
if [[ ${1-} == --check ]]; then
    echo "Missing:" $missing"; run compose/install-backends.sh, or install:" >&2
    print_instructions $missing >&2
    exit 1
fi

command -v apt-get >/dev/null 2>&1 || give_up "there is no apt-get here" $missing
as_root=(env)
if [[ $EUID -ne 0 ]]; then
    command -v sudo >/dev/null 2>&1 || give_up "not root, and there is no sudo" $missing
    as_root=(sudo)
fi
install_with_apt $missing

missing=$(missing_backends)
[[ -z $missing ]] || give_up "apt installed the packages, but programs are still missing" $missing
echo "Redis, RabbitMQ and PostgreSQL programs are all there now."
