//! Figures of many sales, each next to the same figure of the other contestants.

use std::time::Duration;

use super::contestant::Contestant;
use super::rival::Design;
use super::sale::Result;
use crate::goal::Goal;
use crate::section::Section;

/// How many times as much of a hot item the pipeline should sell as the lock in Redis.
const GAIN: f64 = 30.0;

/// Violations that are spelled out; more of the same say nothing new.
const SPELLED_OUT: usize = 5;

struct Shown {
    name: &'static str,
    unit: &'static str,
    of: fn(&Result) -> f64,
}

/// Rivals answer when the order is in the database: accepted is confirmed.
const OF_ALL: [Shown; 10] = [
    Shown { name: "accepted", unit: "orders/s", of: |result| result.accepted },
    Shown { name: "refused when sold out", unit: "answers/s", of: |result| result.refused },
    Shown { name: "accepted, p50", unit: "ms", of: |result| milliseconds(result.p50) },
    Shown { name: "accepted, p99", unit: "ms", of: |result| milliseconds(result.p99) },
    Shown { name: "neither yes nor no", unit: "answers", of: |result| result.troubled as f64 },
    Shown {
        name: "transactions that write",
        unit: "per 1,000 orders",
        of: |result| result.transactions,
    },
    Shown {
        name: "database's processors",
        unit: "ms per 1,000 orders",
        of: |result| milliseconds(result.database_cpu),
    },
    Shown { name: "waiting for a row", unit: "connections", of: |result| result.waiting },
    Shown { name: OVERSOLD, unit: "units", of: |result| result.judgement.oversold as f64 },
    Shown { name: BROKEN, unit: "sentences", of: |result| result.judgement.broken.len() as f64 },
];

const OF_PIPELINE: [Shown; 2] = [
    Shown { name: "confirmed", unit: "orders/s", of: |result| result.confirmed },
    Shown {
        name: "all final after the last yes",
        unit: "ms",
        of: |result| milliseconds(result.converged),
    },
];

const OVERSOLD: &str = "oversold";
const BROKEN: &str = "the law broken";

/// Fills a section with the results of all rounds.
pub(super) fn show(
    section: &mut Section,
    contestants: &[Contestant],
    results: &[(Contestant, Result)],
    commits: &[Duration],
) {
    let pipeline = [Contestant::Pipeline];
    let shown = OF_ALL.iter().map(|shown| (shown, contestants));
    for (shown, whose) in shown.chain(OF_PIPELINE.iter().map(|shown| (shown, &pipeline[..]))) {
        for contestant in whose {
            for (_, result) in results.iter().filter(|(whose, _)| whose == contestant) {
                let name = name(shown.name, *contestant);
                section.record(&name, shown.unit, (shown.of)(result));
            }
        }
    }
    for commit in commits {
        section.record("one commit alone", "ms", milliseconds(*commit));
    }
    expect(section, contestants);
    spell_out(section, results);
}

/// Nobody may sell a unit too many but the control, which must; or nobody could have been caught.
fn expect(section: &mut Section, contestants: &[Contestant]) {
    for contestant in contestants {
        let goal = if contestant.is_control() { Goal::AtLeast(1.0) } else { Goal::AtMost(0.0) };
        for figure in [OVERSOLD, BROKEN] {
            section.expect(&name(figure, *contestant), goal);
        }
    }
    let theirs = name("accepted", Contestant::Rival(Design::RedisLock));
    // With many items, locks do not wait for each other.
    let goal = (section.name == "one_hot_item").then_some(Goal::AtLeast(GAIN));
    for figure in ["accepted", "confirmed"] {
        let ours = name(figure, Contestant::Pipeline);
        section.compare(&format!("pipeline / redis lock, {figure}"), &ours, &theirs, goal);
    }
}

fn spell_out(section: &mut Section, results: &[(Contestant, Result)]) {
    let honest = results.iter().filter(|(contestant, _)| !contestant.is_control());
    let broken = honest.flat_map(|(contestant, result)| {
        let broken = result.judgement.broken.iter();
        broken.map(|broken| format!("{}: {broken}", contestant.name()))
    });
    for broken in broken.take(SPELLED_OUT) {
        section.note(broken);
    }
    section.note(
        "rivals answer once the order is in the database, so for them accepted is confirmed; they know \
         no limit per buyer and no window, and nobody finishes what a dead process leaves",
    );
    section.note(
        "everything shares this machine, load generator included, and nothing is further away than \
         loopback: designs that go from backend to backend for each order are at their best here",
    );
}

fn name(figure: &str, contestant: Contestant) -> String {
    format!("{figure}: {}", contestant.name())
}

fn milliseconds(length: Duration) -> f64 {
    length.as_secs_f64() * 1_000.0
}
