//! Results on standard output: a table for people, JSON for programs.

use std::io::{self, Write};

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

/// Prints a value as JSON.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    print(&serde_json::to_string_pretty(value)?)
}

/// Prints rows below a heading.
pub(crate) fn table<const N: usize>(
    heading: [&str; N],
    rows: Vec<[String; N]>,
) -> anyhow::Result<()> {
    let mut table = empty_table();
    table.set_header(heading);
    for row in rows {
        table.add_row(row);
    }
    print(&table.to_string())
}

/// Prints names next to their values.
pub(crate) fn pairs(pairs: Vec<(&str, String)>) -> anyhow::Result<()> {
    let mut table = empty_table();
    for (name, value) in pairs {
        table.add_row([name.to_owned(), value]);
    }
    print(&table.to_string())
}

/// Prints a line. A reader that has gone, such as `head`, is no error.
pub(crate) fn print(line: &str) -> anyhow::Result<()> {
    match writeln!(io::stdout(), "{line}") {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

fn empty_table() -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table
}
