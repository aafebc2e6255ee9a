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
//! | `redis_lock`, [`lock`] | a lock in Redis for each item, and the database under it |
//! | `pre_deduct`, [`counter`] | a script takes units in Redis, then the database decides |
//! | [`database`] | the tables of the rivals |
//! | [`server`] | a rival behind HTTP |
//! | `contestant` | a rival or this pipeline, open for buyers |
//! | `sale`, `observer` | one sale, measured |
//! | `shown` | figures of many sales, side by side |
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
pub mod lock;
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
mod shown;

use std::time::Duration;

use self::contestant::Contestant;
use self::sale::Sale;
use crate::plan::Plan;
use crate::rig::Rig;
use crate::rounds;
use crate::section::Section;

/// Buyers' connections, for every contestant.
const CONNECTIONS: usize = 128;

/// Sells by every design, round by round.
pub async fn run(plan: &Plan, rig: &Rig) -> anyhow::Result<Vec<Section>> {
    let units = plan.size(20_000, 1_000);
    let limit = plan.size(Duration::from_millis(2_500), Duration::from_millis(500));
    let sales = [("one_hot_item", "One hot item", 1), ("many_items", "A hundred items", 100)];
    let mut sections = Vec::new();
    for (name, title, items) in sales {
        let sale = Sale::of(items, units / u64::from(items), CONNECTIONS, limit);
        sections.push(section((name, title), &sale, plan, rig).await?);
    }
    Ok(sections)
}

async fn section(
    (name, title): (&str, &str),
    sale: &Sale,
    plan: &Plan,
    rig: &Rig,
) -> anyhow::Result<Section> {
    let contestants = Contestant::all();
    let (mut results, mut commits) = (Vec::new(), Vec::new());
    for round in 0..plan.rounds {
        commits.push(observer::one_commit(rig.endpoints().ledger_url.as_str()).await?);
        for number in rounds::order(round, contestants.len()) {
            let contestant = contestants[number];
            plan.tell(format!("{title}, round {}: {}", round + 1, contestant.name()));
            results.push((contestant, sale.measure(contestant, plan, rig).await?));
        }
    }
    let mut section = Section::new(name, title, &what(sale));
    shown::show(&mut section, &contestants, &results, &commits);
    Ok(section)
}

fn what(sale: &Sale) -> String {
    let Sale { items, units, connections, limit } = sale;
    let (items, limit) = (items.len(), limit.as_secs_f64());
    format!(
        "{items} × {units} units and twice as many buyers on {connections} connections, for {limit} s \
         at the most: how fast each design sells while stock lasts, and whether the law held."
    )
}
