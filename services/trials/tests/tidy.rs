//! The rules of the house that a compiler does not know.

use std::fs;
use std::path::{Path, PathBuf};

/// Long files hide things; longer ones than this need another room.
const MOST_LINES: usize = 400;

#[test]
fn each_backend_has_one_window() {
    let windows = [
        ("redis", "shared/src/stock/"),
        ("lapin", "shared/src/queue/"),
        ("sqlx", "shared/src/ledger/"),
        ("backoff", "shared/src/retry.rs"),
        ("metrics_exporter_prometheus", "shared/src/telemetry/"),
    ];
    for (library, window) in windows {
        let strangers: Vec<_> = rust_files()
            .into_iter()
            .filter(|file| !file.name.starts_with(window))
            // It has modules of its own that are named after what they start.
            .filter(|file| !file.name.starts_with("shared/src/devstack/"))
            // It measures what backends do without our windows, and other designs of a sale.
            .filter(|file| !file.name.starts_with("services/bench/"))
            .filter(|file| file.code().any(|line| names_crate(line, library)))
            .map(|file| file.name)
            .collect();
        assert!(strangers.is_empty(), "{library} belongs to {window}, not to {strangers:?}");
    }
}

#[test]
fn windows_never_import_each_other() {
    let windows = ["stock", "queue", "ledger"];
    for file in rust_files() {
        for here in windows.iter().filter(|w| file.name.starts_with(&format!("shared/src/{w}/"))) {
            for other in windows.iter().filter(|w| w != &here) {
                let import = format!("crate::{other}");
                assert!(!file.text.contains(&import), "{} imports {import}", file.name);
            }
        }
    }
}

#[test]
fn the_domain_does_no_io_and_reads_no_clock() {
    let foreign = [
        "tokio",
        "serde",
        "std::fs",
        "std::net",
        "::now()",
        "crate::config",
        "crate::contract",
        "crate::stock",
        "crate::queue",
        "crate::ledger",
        "tracing",
    ];
    for file in rust_files().iter().filter(|file| file.name.starts_with("shared/src/domain/")) {
        for word in foreign {
            assert!(!file.code().any(|line| line.contains(word)), "{} has {word}", file.name);
        }
    }
}

#[test]
fn nothing_on_the_purchase_path_touches_the_ledger() {
    for name in ["purchase.rs", "reserving.rs", "publishing.rs"] {
        let path = format!("services/ingress/src/{name}");
        let files = rust_files();
        let file = files.iter().find(|file| file.name == path).expect("the purchase path");
        let touches = file.code().any(|line| line.to_lowercase().contains("ledger"));
        assert!(!touches, "{path} names the ledger");
    }
}

#[test]
fn the_top_level_is_what_a_newcomer_expects() {
    let allowed = ["services", "shared", "migrations", "compose", "lua", "docs"];
    let own = ["target", ".lastunit", ".git", ".ci"];
    for entry in fs::read_dir(root()).expect("the root").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_dir() {
            assert!(allowed.contains(&name.as_str()) || own.contains(&name.as_str()), "{name}/");
        }
    }
}

#[test]
fn files_are_short_and_named_after_what_they_do() {
    let vague = ["utils", "util", "common", "helpers", "helper", "types", "models", "misc"];
    for file in rust_files() {
        let lines = file.text.lines().count();
        assert!(lines <= MOST_LINES, "{} has {lines} lines", file.name);
        let stem = Path::new(&file.name).file_stem().expect("a name").to_string_lossy();
        assert!(!vague.contains(&stem.as_ref()), "{} says nothing by its name", file.name);
    }
}

#[test]
fn nothing_is_left_half_done() {
    // Put together, so that this file does not find itself.
    let marks =
        [["todo", "!("], ["dbg", "!("], ["FIX", "ME"], ["#[ig", "nore"], ["unimple", "mented!("]];
    for file in rust_files() {
        for mark in &marks {
            let mark = mark.concat();
            assert!(!file.text.contains(&mark), "{} has {mark}", file.name);
        }
    }
}

#[test]
fn links_in_the_documentation_lead_somewhere() {
    for page in files_below(&root(), "md") {
        let text = fs::read_to_string(&page).expect("a page");
        let links = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
        for link in links.filter(|link| !link.is_empty() && !link.contains("://")) {
            let target = page.parent().expect("a folder").join(link);
            assert!(target.exists(), "{} links to {link}, which is not there", page.display());
        }
    }
}

struct Source {
    /// Relative to the root.
    name: String,
    text: String,
}

impl Source {
    /// Lines that are not comments.
    fn code(&self) -> impl Iterator<Item = &str> {
        self.text.lines().filter(|line| !line.trim_start().starts_with("//"))
    }
}

/// True when the line names something of the crate, as in `use redis::` or `redis::cmd`; a module
/// of ours that has the same name is reached through `super` or `crate`.
fn names_crate(line: &str, library: &str) -> bool {
    let path = format!("{library}::");
    line.match_indices(&path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':')
    })
}

fn rust_files() -> Vec<Source> {
    let root = root();
    let sources =
        ["services", "shared"].iter().flat_map(|folder| files_below(&root.join(folder), "rs"));
    sources
        .map(|path| Source {
            name: path.strip_prefix(&root).expect("below the root").to_string_lossy().into_owned(),
            text: fs::read_to_string(&path).expect("a source file"),
        })
        .collect()
}

/// Every file of a kind, but for what is built or generated.
fn files_below(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() && name != "target" && !name.to_string_lossy().starts_with('.') {
            found.extend(files_below(&path, extension));
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    found
}

fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("two levels below the root").to_owned()
}
