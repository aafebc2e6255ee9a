//! Other designs of the same sale, side by side with ours: what teams really weigh, on the same
//! machine, the same servers, behind the same HTTP, for the same buyers.
//!
//! | file | what |
//! |---|---|
//! | [`purchase`] | what is asked of every rival, and what it may answer |
//! | [`rival`] | the rivals, and the backends that each has |
//! | `naive` | the control: reads, then writes what it read less one, and must be caught |
//! | `conditional` | one conditional `UPDATE` a request |
//! | `row_lock` | `SELECT … FOR UPDATE` |
//! | `optimistic` | a version column, with retries |
//! | `redis_lock`, `lock` | a lock in Redis for each item, and the database under it |
//! | `pre_deduct`, `counter` | a script takes units in Redis, then the database decides |
//! | [`database`] | the tables of the rivals |
//! | [`server`] | a rival behind HTTP |
//! | `contestant` | a rival or this pipeline, open for buyers |
//! | `sale`, `observer` | one sale, measured |
//! | [`judge`] | the law, for every contestant |
//!
//! Rivals are as good as they can be made: the same number of connections for all, prepared
//! statements, one statement where one will do, no pauses where a wake-up will do. They do less than
//! the pipeline: no limit per buyer, no window, no messages, nobody who finishes what a dead process
//! left.

mod conditional;
mod contestant;
pub mod counter;
pub mod database;
pub mod judge;
mod lock;
mod naive;
mod observer;
mod optimistic;
mod pre_deduct;
pub mod purchase;
mod redis_lock;
pub mod rival;
mod row_lock;
mod sale;
pub mod server;

use std::time::Duration;

use self::contestant::Contestant;
use self::sale::{Result, Sale};
use crate::goal::Goal;
use crate::plan::Plan;
use crate::rig::Rig;
use crate::rounds;
use crate::section::Section;

/// Buyers' connections, for every contestant.
const CONNECTIONS: usize = 128;

/// How many times more the pipeline should sell of a hot item than the lock in Redis does.
const GAIN: f64 = 30.0;

/// Measures every design, round by round.
pub async fn run(plan: &Plan, rig: &Rig) -> anyhow::Result<Vec<Section>> {
    let units = plan.size(20_000, 1_000);
    let limit = plan.size(Duration::from_millis(2_500), Duration::from_millis(500));
    let sales = [("one_hot_item", "One hot item", 1), ("many_items", "A hundred items", 100)];
    let mut sections = Vec::new();
    for (name, title, items) in sales {
        let sale = Sale::of(items, units / u64::from(items), CONNECTIONS, limit);
        sections.push(section(name, title, &sale, plan, rig).await?);
    }
    Ok(sections)
}

async fn section(
    name: &str,
    title: &str,
    sale: &Sale,
    plan: &Plan,
    rig: &Rig,
) -> anyhow::Result<Section> {
    let (items, units) = (sale.items.len(), sale.units);
    let limit = sale.limit.as_secs_f64();
    let mut section = Section::new(
        name,
        title,
        &format!(
            "{units} units of each of {items} items, twice as many buyers on {CONNECTIONS} connections, \
             for at most {limit} s: orders per second while stock lasts, refusals apart, and whether \
             the law held."
        ),
    );
    let contestants = Contestant::all();
    for round in 0..plan.rounds {
        for number in rounds::order(round, contestants.len()) {
            let contestant = contestants[number];
            plan.tell(format!("{title}, round {}: {}", round + 1, contestant.name()));
            let result = sale.measure(contestant, plan, rig).await?;
            record(&mut section, contestant, &result);
        }
    }
    judge_all(&mut section, &contestants);
    Ok(section)
}

fn record(section: &mut Section, contestant: Contestant, result: &Result) {
    let milliseconds = |length: Duration| length.as_secs_f64() * 1_000.0;
    let figures = [
        ("accepted", "orders/s", result.accepted),
        ("confirmed", "orders/s", result.confirmed),
        ("refused", "answers/s", result.refused),
        ("p50", "ms", milliseconds(result.p50)),
        ("p99", "ms", milliseconds(result.p99)),
        ("no proper answer", "requests", result.troubled as f64),
        ("transactions", "per 1,000 orders", result.transactions),
        ("database", "CPU ms per 1,000 orders", milliseconds(result.database_cpu)),
        ("waiting for rows", "connections", result.waiting),
        ("final after", "ms", milliseconds(result.converged)),
        ("oversold", "units", result.judgement.oversold as f64),
        ("laws broken", "sentences", result.judgement.broken.len() as f64),
    ];
    for (figure, unit, value) in figures {
        section.record(&format!("{}: {figure}", contestant.name()), unit, value);
    }
    if !contestant.is_control() {
        for broken in result.judgement.broken.iter().take(3) {
            section.note(format!("{}: {broken}", contestant.name()));
        }
    }
}

fn judge_all(section: &mut Section, contestants: &[Contestant]) {
    for contestant in contestants {
        let goal = if contestant.is_control() { Goal::AtLeast(1.0) } else { Goal::AtMost(0.0) };
        for figure in ["oversold", "laws broken"] {
            section.expect(&format!("{}: {figure}", contestant.name()), goal);
        }
    }
    for figure in ["accepted", "confirmed"] {
        let (ours, theirs) = (format!("pipeline: {figure}"), format!("redis lock: {figure}"));
        let goal = (section.name == "one_hot_item").then_some(Goal::AtLeast(GAIN));
        section.compare(&format!("pipeline / redis lock, {figure}"), &ours, &theirs, goal);
    }
}
