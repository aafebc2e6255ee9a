//! The schema as the migrations leave it, in a file, so that drift shows in review.

use std::fs;
use std::path::Path;

use shared::devstack::World;
use shared::ledger::Ledger;

/// Set it to write the file anew.
const REFRESH: &str = "REFRESH_SCHEMA";

#[tokio::test]
async fn the_schema_is_the_one_that_was_reviewed() {
    let World { config } = World::new().await;
    let ledger = Ledger::connect(&config.ledger).expect("a URL");
    let schema = ledger.describe_schema().await.expect("a description");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../migrations/postgres/schema.txt");
    if std::env::var_os(REFRESH).is_some() {
        fs::write(&file, &schema).expect("written");
    }
    let reviewed = fs::read_to_string(&file).unwrap_or_default();
    let (found, expected) = (lines(&schema), lines(&reviewed));
    let new: Vec<_> = found.iter().filter(|line| !expected.contains(line)).collect();
    let gone: Vec<_> = expected.iter().filter(|line| !found.contains(line)).collect();
    assert!(
        schema == reviewed,
        "the migrations lead to another schema than migrations/postgres/schema.txt\n\
         new: {new:#?}\ngone: {gone:#?}\n\
         If that is meant, `{REFRESH}=1 make test` writes the file anew; commit it."
    );
}

/// Each with its table in front, so that it is found in one place only.
fn lines(schema: &str) -> Vec<String> {
    let mut table = "";
    let mut lines = Vec::new();
    for line in schema.lines() {
        if !line.starts_with(' ') {
            table = line;
        }
        lines.push(format!("{table}: {}", line.trim()));
    }
    lines
}
