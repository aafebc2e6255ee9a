//! Settings: where they come from, and what is shown of them.

use std::fs;
use std::path::Path;

use shared::config::SETTINGS;

use crate::command::{Folder, bare, json, run, stderr, stdout};

#[test]
fn the_file_gives_way_to_the_environment_and_that_to_flags() {
    let folder = Folder::new("layers");
    let file = "namespace = \"from-file\"\n[rabbitmq]\npartitions = 7\n[ledger]\nconnections = 9\n";
    fs::write(folder.path().join("lastunit.toml"), file).expect("a file");
    let shown = json(
        bare()
            .current_dir(folder.path())
            .env("LASTUNIT_NAMESPACE", "from-environment")
            .env("LASTUNIT_RABBITMQ_PARTITIONS", "8")
            .args(["config", "--json", "--namespace", "from-flag"]),
    );
    assert_eq!(shown["namespace"], "from-flag");
    assert_eq!(shown["rabbitmq.partitions"], "8");
    assert_eq!(shown["ledger.connections"], "9");
    assert_eq!(shown["log.filter"], "info", "the default");
}

#[test]
fn passwords_are_never_printed() {
    let output = run(bare()
        .env("LASTUNIT_REDIS_URL", "redis://:hush1@cache:6379/")
        .env("LASTUNIT_RABBITMQ_URL", "amqp://shop:hush2@mq:5672/%2f")
        .env("LASTUNIT_LEDGER_URL", "postgres://shop:hush3@db:5432/shop")
        .arg("config"));
    assert!(output.status.success());
    let shown = stdout(&output);
    assert!(!shown.contains("hush"), "{shown}");
    assert!(shown.contains("amqp://shop:***@mq:5672"), "{shown}");
}

#[test]
fn a_setting_that_cannot_be_used_is_named() {
    for (name, value, named) in [
        ("LASTUNIT_RABBITMQ_PARTITIONS", "0", "rabbitmq.partitions"),
        ("LASTUNIT_NAMESPACE", "Shop", "namespace"),
        ("LASTUNIT_REDIS_URI", "redis://x", "LASTUNIT_REDIS_URI"),
        ("LASTUNIT_CONFIG", "/nowhere/lastunit.toml", "/nowhere/lastunit.toml"),
    ] {
        let output = run(bare().env(name, value).arg("config"));
        assert_eq!(output.status.code(), Some(1), "{name}");
        assert!(stderr(&output).contains(named), "{}", stderr(&output));
    }
}

#[test]
fn the_reference_in_the_documentation_is_complete() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/CONFIGURATION.md");
    let docs = fs::read_to_string(docs).expect("docs/CONFIGURATION.md");
    for setting in SETTINGS {
        let row = format!(
            "| `{}` | `{}` | `{}` | {} |",
            setting.path,
            setting.variable(),
            setting.default,
            setting.help
        );
        assert!(docs.contains(&row), "docs/CONFIGURATION.md lacks this row:\n{row}");
    }
}

#[test]
fn every_command_explains_itself() {
    for command in [
        &["--help"][..],
        &["ingress", "--help"],
        &["consumer", "--help"],
        &["compensator", "--help"],
        &["reconciler", "--help"],
        &["all", "--help"],
        &["migrate", "--help"],
        &["item", "put", "--help"],
        &["item", "show", "--help"],
        &["item", "list", "--help"],
        &["warm", "--help"],
        &["dlq", "--help"],
        &["dlq", "list", "--help"],
        &["dlq", "show", "--help"],
        &["dlq", "stats", "--help"],
        &["dlq", "plan", "--help"],
        &["dlq", "replay", "--help"],
        &["dlq", "discard", "--help"],
        &["dlq", "edit", "--help"],
        &["dlq", "export", "--help"],
        &["dlq", "import", "--help"],
        &["explain", "--help"],
        &["lock", "show", "--help"],
        &["config", "--help"],
        &["demo", "--help"],
        &["stack", "exec", "--help"],
    ] {
        let output = run(bare().args(command));
        assert!(output.status.success(), "{command:?}");
        assert!(stdout(&output).lines().next().is_some_and(|line| line.len() > 20), "{command:?}");
    }
}

#[test]
fn misuse_has_an_exit_status_of_its_own() {
    for arguments in [&["sell"][..], &["item", "put"], &["warm"], &["warm", "a b"], &[]] {
        assert_eq!(run(bare().args(arguments)).status.code(), Some(2), "{arguments:?}");
    }
}
