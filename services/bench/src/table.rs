//! A run on a terminal.

use std::fmt::Write;

use comfy_table::{ContentArrangement, Table, presets};

use crate::goal::{Goal, Verdict};
use crate::report::Report;
use crate::section::{Section, Series};
use crate::spread::Spread;

/// The whole report, as tables.
pub fn render(report: &Report) -> String {
    let mut text = String::new();
    for (name, value) in about(report) {
        let _ = writeln!(text, "{name}: {value}");
    }
    for section in &report.sections {
        let _ = writeln!(text, "\n{}\n{}", section.title, section.what);
        let _ = writeln!(text, "{}", numbers(section));
        for series in &section.series {
            let _ = writeln!(text, "{}", curve(series));
        }
        for note in &section.notes {
            let _ = writeln!(text, "– {note}");
        }
    }
    text
}

/// What a reader must know of the run as a whole.
pub(crate) fn about(report: &Report) -> Vec<(&'static str, String)> {
    let machine = &report.machine;
    let or_unknown = |text: &str| if text.is_empty() { "unknown" } else { text }.to_owned();
    let mut about = vec![
        ("measured", format!("{} on {}, {:.0} s", report.subject, report.date, report.took_s)),
        ("command", report.command.clone()),
        (
            "rounds",
            format!("{}, in alternating order; medians, then least and most", report.rounds),
        ),
        (
            "machine",
            format!(
                "{}, {} cores, {} MiB, Linux {}",
                or_unknown(&machine.cpu),
                machine.cores,
                machine.memory_mib,
                or_unknown(&machine.kernel)
            ),
        ),
        (
            "backends",
            format!(
                "Redis {}, RabbitMQ {}, PostgreSQL {}, private, on loopback",
                or_unknown(&machine.redis),
                or_unknown(&machine.rabbitmq),
                or_unknown(&machine.postgresql)
            ),
        ),
        ("lastunit", format!("{}, commit {}", machine.lastunit, or_unknown(&machine.commit))),
    ];
    if report.quick {
        about.push(("quick", "a smoke run: too small to say anything about speed".to_owned()));
    }
    if machine.profile != "release" {
        about.push(("build", "not optimised: the figures mean nothing".to_owned()));
    }
    about
}

fn numbers(section: &Section) -> Table {
    let mut table = empty(["", "median", "least", "most", "unit", "goal", ""]);
    for figure in &section.figures {
        table.add_row(row(&figure.name, figure.spread, &figure.unit, figure.goal, figure.verdict));
    }
    for ratio in &section.ratios {
        table.add_row(row(&ratio.name, ratio.spread, "×", ratio.goal, ratio.verdict));
    }
    table
}

fn row(
    name: &str,
    spread: Spread,
    unit: &str,
    goal: Option<Goal>,
    verdict: Option<Verdict>,
) -> [String; 7] {
    let Spread { median, min, max } = spread;
    let goal = goal.map(|goal| goal.to_string()).unwrap_or_default();
    let verdict = verdict.map(|verdict| verdict.to_string()).unwrap_or_default();
    [name.to_owned(), number(median), number(min), number(max), unit.to_owned(), goal, verdict]
}

fn curve(series: &Series) -> Table {
    let Series { name, x_label, y_label, points } = series;
    let mut table = empty([x_label, &format!("{name}, {y_label}, median"), "least", "most"]);
    for point in points {
        let Spread { median, min, max } = point.spread;
        table.add_row([point.x, median, min, max].map(number));
    }
    table
}

fn empty<const N: usize>(heading: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(heading);
    table
}

/// With three digits that say something, and thousands kept apart.
pub(crate) fn number(value: f64) -> String {
    if !value.is_finite() {
        return "none".to_owned();
    }
    let decimals = match value.abs() {
        size if size >= 100.0 || size == 0.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 0.1 => 2,
        _ => 4,
    };
    let text = format!("{value:.decimals$}");
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        let left = whole.len() - at;
        if at > 0 && left % 3 == 0 && !grouped.ends_with('-') {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + fraction
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_are_short_and_keep_thousands_apart() {
        let shown = [1_234_567.4, 123_456.0, 999.6, 12.345, 1.5, 0.00123, 0.0, -1_234.0];
        let shown = shown.map(number);
        let expected = ["1,234,567", "123,456", "1,000", "12.3", "1.50", "0.0012", "0", "-1,234"];
        assert_eq!(shown, expected);
        assert_eq!(number(f64::INFINITY), "none");
    }
}
