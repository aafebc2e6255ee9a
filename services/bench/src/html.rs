//! A run as one page that needs nothing else: tables, drawings, no scripts.

use std::fmt::Write;

use crate::goal::{Goal, Verdict};
use crate::plot;
use crate::report::Report;
use crate::section::{Figure, Section, Series};
use crate::spread::Spread;
use crate::table::{about, number};

const STYLE: &str = "body{font:15px/1.5 sans-serif;max-width:62em;margin:2em auto;padding:0 1em;color:#222}\
table{border-collapse:collapse;margin:1em 0}td,th{padding:.25em .8em;border-bottom:1px solid #ddd;text-align:left}\
td.n{text-align:right;font-variant-numeric:tabular-nums}.met{color:#186a2b}.missed{color:#a02020;font-weight:bold}\
svg{max-width:100%;height:auto}.rounds{color:#777;font-size:85%}";

/// The whole report.
pub fn render(report: &Report) -> anyhow::Result<String> {
    let subject = escape(&report.subject);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <title>LastUnit: {subject}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <h1>LastUnit: {subject}</h1>\n<table>\n"
    );
    for (name, value) in about(report) {
        writeln!(page, "<tr><th>{}</th><td>{}</td></tr>", escape(name), escape(&value))?;
    }
    page.push_str("</table>\n");
    for section in &report.sections {
        add_section(&mut page, section)?;
    }
    page.push_str("</body>\n</html>\n");
    Ok(page)
}

fn add_section(page: &mut String, section: &Section) -> anyhow::Result<()> {
    writeln!(page, "<h2 id=\"{}\">{}</h2>", escape(&section.name), escape(&section.title))?;
    writeln!(page, "<p>{}</p>", escape(&section.what))?;
    if !section.figures.is_empty() {
        add_heading(page, ["", "median", "least", "most", "unit", "goal", "", "each round"]);
        for figure in &section.figures {
            let Figure { name, unit, rounds, spread, goal, verdict } = figure;
            add_row(page, name, unit, *spread, (*goal, *verdict), rounds)?;
        }
        for ratio in &section.ratios {
            let judged = (ratio.goal, ratio.verdict);
            add_row(page, &ratio.name, "×", ratio.spread, judged, &ratio.rounds)?;
        }
        page.push_str("</table>\n");
    }
    for (unit, figures) in by_unit(&section.figures) {
        page.push_str(&plot::bars(unit, &figures)?);
    }
    for series in &section.series {
        add_series(page, series)?;
    }
    if !section.notes.is_empty() {
        page.push_str("<ul>\n");
        for note in &section.notes {
            writeln!(page, "<li>{}</li>", escape(note))?;
        }
        page.push_str("</ul>\n");
    }
    Ok(())
}

fn add_series(page: &mut String, series: &Series) -> anyhow::Result<()> {
    writeln!(page, "<h3>{}</h3>", escape(&series.name))?;
    page.push_str(&plot::curve(series)?);
    let (x, y) = (series.x_label.as_str(), series.y_label.as_str());
    add_heading(page, [x, &format!("{y}, median"), "least", "most"]);
    for point in &series.points {
        let Spread { median, min, max } = point.spread;
        let [x, median, min, max] = [point.x, median, min, max].map(number);
        writeln!(
            page,
            "<tr><td class=\"n\">{x}</td><td class=\"n\">{median}</td><td class=\"n\">{min}</td>\
             <td class=\"n\">{max}</td></tr>"
        )?;
    }
    page.push_str("</table>\n");
    Ok(())
}

fn add_heading<const N: usize>(page: &mut String, heading: [&str; N]) {
    let cells: String = heading.iter().map(|name| format!("<th>{}</th>", escape(name))).collect();
    page.push_str(&format!("<table>\n<tr>{cells}</tr>\n"));
}

fn add_row(
    page: &mut String,
    name: &str,
    unit: &str,
    spread: Spread,
    (goal, verdict): (Option<Goal>, Option<Verdict>),
    rounds: &[f64],
) -> std::fmt::Result {
    let [median, min, max] = [spread.median, spread.min, spread.max].map(number);
    let goal = goal.map(|goal| goal.to_string()).unwrap_or_default();
    let verdict = verdict.map(|verdict| verdict.to_string()).unwrap_or_default();
    let rounds: Vec<String> = rounds.iter().map(|round| number(*round)).collect();
    writeln!(
        page,
        "<tr><td>{}</td><td class=\"n\">{median}</td><td class=\"n\">{min}</td>\
         <td class=\"n\">{max}</td><td>{}</td><td>{goal}</td><td class=\"{verdict}\">{verdict}</td>\
         <td class=\"rounds\">{}</td></tr>",
        escape(name),
        escape(unit),
        rounds.join(" · "),
    )
}

/// Figures that can be drawn beside each other, in the order of their first one.
fn by_unit(figures: &[Figure]) -> Vec<(&str, Vec<&Figure>)> {
    let mut groups: Vec<(&str, Vec<&Figure>)> = Vec::new();
    for figure in figures {
        match groups.iter_mut().find(|(unit, _)| *unit == figure.unit) {
            Some((_, group)) => group.push(figure),
            None => groups.push((&figure.unit, vec![figure])),
        }
    }
    groups.retain(|(_, group)| group.len() > 1);
    groups
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
