//! `lastunit bench`, as a smoke run: what it prints is complete and counts something. Nothing is
//! said about speed.

use std::fs;

use crate::command::{Folder, bare, json, run, stderr};

const SECTIONS: [&str; 6] = ["redis", "memory", "http", "accepting", "consuming", "whole"];

#[test]
fn a_smoke_run_of_limits_measures_every_stage_and_leaves_nothing_behind() {
    let folder = Folder::new("bench");
    let report = json(bare().current_dir(folder.path()).args([
        "bench",
        "limits",
        "--quick",
        "--rounds",
        "1",
        "--json",
        "--html",
        "page.html",
    ]));
    assert_eq!(report["subject"], "limits");
    assert_eq!((&report["quick"], &report["rounds"]), (&true.into(), &1.into()));
    for backend in ["redis", "rabbitmq", "postgresql"] {
        let version = report["machine"][backend].as_str().expect("a text");
        assert!(version.starts_with(|c: char| c.is_ascii_digit()), "{backend} is {version:?}");
    }
    let sections = report["sections"].as_array().expect("sections");
    let names: Vec<_> = sections.iter().map(|section| &section["name"]).collect();
    assert_eq!(names, SECTIONS);
    for section in sections {
        let figures = section["figures"].as_array().expect("figures");
        for figure in figures {
            let rounds = figure["rounds"].as_array().expect("rounds");
            assert_eq!(rounds.len(), 1, "{figure}");
            // Less than a hundredth of a second of a processor is none.
            let is_positive = figure["median"].as_f64().is_some_and(|median| median > 0.0);
            assert!(is_positive || figure["unit"] == "CPU ms", "{figure}");
        }
        let ratios = section["ratios"].as_array().expect("ratios");
        let judged = figures.iter().chain(ratios).filter(|one| !one["goal"].is_null());
        let verdicts: Vec<_> = judged.map(|one| one["verdict"].as_str()).collect();
        assert!(!verdicts.is_empty(), "{} has no goal", section["name"]);
        assert!(verdicts.iter().all(|v| matches!(v, Some("met" | "missed"))), "{verdicts:?}");
    }
    let page = fs::read_to_string(folder.path().join("page.html")).expect("a page");
    assert!(page.contains("<svg") && page.ends_with("</html>\n"));
    let left: Vec<_> = folder.path().join(".lastunit").read_dir().expect("a folder").collect();
    assert!(left.is_empty(), "a run leaves nothing behind: {left:?}");
}

#[test]
fn a_section_that_there_is_not_is_a_failure() {
    let folder = Folder::new("bench-only");
    let mut command = bare();
    let output = run(command
        .current_dir(folder.path())
        .args(["bench", "limits", "--quick", "--only", "nothing"]));
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains(r#"limits has no section ["nothing"]"#),
        "{}",
        stderr(&output)
    );
    assert!(output.stdout.is_empty());
}
