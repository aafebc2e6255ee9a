//! `lastunit demo`, small, and twice in a row without cleaning up.

use crate::command::{Folder, bare, json};

const KEYS: [&str; 17] = [
    "units",
    "buyers",
    "accepted",
    "confirmed",
    "rejected",
    "sold_out",
    "errors",
    "ledger_available",
    "redis_available",
    "held",
    "drift",
    "duplicates",
    "converged_ms",
    "accept_p50_ms",
    "accept_p99_ms",
    "verdict",
    "violations",
];

#[test]
fn the_demo_passes_twice_in_a_row() {
    let folder = Folder::new("demo");
    for (units, buyers, sold) in [("20", "60", 20), ("40", "30", 30)] {
        let report = json(
            bare()
                .current_dir(folder.path())
                .args(["demo", "--json", "--units", units, "--buyers", buyers]),
        );
        for key in KEYS {
            assert!(report.get(key).is_some(), "the report lacks {key}");
        }
        assert_eq!(report["verdict"], "pass", "{report}");
        assert_eq!(report["confirmed"], sold);
        assert_eq!(report["accepted"], sold);
        assert_eq!(report["held"], 0);
        assert_eq!(report["duplicates"], 0);
        assert_eq!(report["redis_available"], report["ledger_available"]);
        let left: Vec<_> = folder.path().join(".lastunit").read_dir().expect("a folder").collect();
        assert!(left.is_empty(), "a demo that passed leaves nothing behind: {left:?}");
    }
}
