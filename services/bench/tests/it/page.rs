//! Table, page and JSON are made of the same values.

use bench::goal::Goal;
use bench::report::{Machine, Report};
use bench::section::Section;
use bench::{html, table};

fn report() -> Report {
    let mut section = Section::new("redis", "Redis", "Batches <against> single calls & more.");
    for (ours, theirs) in [(40_000.0, 10_000.0), (45_000.0, 9_000.0)] {
        section.record("ours", "requests/s", ours);
        section.record("theirs \"alone\"", "requests/s", theirs);
        section.plot("growth", ["items", "orders/s"], 0.0, ours);
        section.plot("growth", ["items", "orders/s"], 10_000.0, theirs);
        section.plot("few", ["consumers", "orders/s"], 1.0, ours);
        section.plot("few", ["consumers", "orders/s"], 4.0, theirs);
    }
    section.compare("gain", "ours", "theirs \"alone\"", Some(Goal::AtLeast(4.0)));
    section.compare("more", "ours", "theirs \"alone\"", Some(Goal::AtLeast(12.0)));
    section.note("1 < 2");
    Report {
        subject: "limits".to_owned(),
        date: "2026-01-01T00:00:00Z".to_owned(),
        command: "lastunit bench limits --rounds 2".to_owned(),
        rounds: 2,
        quick: true,
        took_s: 1.0,
        machine: Machine::default(),
        sections: vec![section],
    }
}

#[test]
fn every_tag_of_the_page_is_closed_in_order() {
    let page = html::render(&report()).expect("a page");
    let mut open: Vec<&str> = Vec::new();
    for tag in page.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').expect("a tag ends");
        let name = tag.trim_start_matches('/').split([' ', '\n', '/']).next().expect("a name");
        match tag.chars().next() {
            Some('!') => {}
            Some('/') => assert_eq!(open.pop(), Some(name), "closed in order"),
            _ if tag.ends_with('/') => {}
            _ => open.push(name),
        }
    }
    assert_eq!(open, Vec::<&str>::new(), "left open");
    for (part, times) in [("<svg", 3), ("</svg>", 3), ("<title>", 1), ("<h2 ", 1), ("<script", 0)] {
        assert_eq!(page.matches(part).count(), times, "{part}");
    }
    assert!(page.contains("Batches &lt;against&gt; single calls &amp; more."));
    assert!(page.contains("theirs &quot;alone&quot;"));
}

#[test]
fn the_page_needs_nothing_else() {
    let page = html::render(&report()).expect("a page");
    for outside in ["src=", "href=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn goals_are_shown_as_met_and_missed_everywhere() {
    let report = report();
    assert!(!report.meets_all());
    let (page, table) = (html::render(&report).expect("a page"), table::render(&report));
    let json = serde_json::to_value(&report).expect("JSON");
    assert_eq!(page.matches(">met<").count(), 1);
    assert_eq!(page.matches(">missed<").count(), 1);
    assert_eq!(table.matches("met").count() + table.matches("missed").count(), 2);
    let ratios = &json["sections"][0]["ratios"];
    assert_eq!((&ratios[0]["verdict"], &ratios[1]["verdict"]), (&"met".into(), &"missed".into()));
    assert_eq!(ratios[0]["rounds"], serde_json::json!([4.0, 5.0]));
    assert_eq!(ratios[0]["median"], 4.5);
    assert_eq!(ratios[1]["goal"], serde_json::json!({ "at_least": 12.0 }));
    assert!(table.contains("a smoke run"), "{table}");
}
