//! How much of the processors processes have taken, as Linux counts it; elsewhere it is 0.

use std::collections::{HashMap, HashSet};
use std::fs;

/// What `/proc` counts in: 100 a second on every architecture that Linux has today.
const TICKS_PER_SECOND: f64 = 100.0;

/// Seconds that these processes and all their descendants have taken so far, in user and system
/// time, those of descendants included that have ended.
pub fn seconds(leaders: &[i32]) -> f64 {
    let processes = processes();
    let mut counted: HashSet<i32> = leaders.iter().copied().collect();
    loop {
        let before = counted.len();
        let children = processes.iter().filter(|(_, one)| counted.contains(&one.parent));
        let children: Vec<i32> = children.map(|(pid, _)| *pid).collect();
        counted.extend(children);
        if counted.len() == before {
            break;
        }
    }
    let ticks: u64 = counted.iter().filter_map(|pid| processes.get(pid)).map(|one| one.ticks).sum();
    ticks as f64 / TICKS_PER_SECOND
}

/// Seconds that this process alone has taken so far, whatever it has started.
fn own_seconds() -> f64 {
    let own = i32::try_from(std::process::id()).ok().and_then(process);
    own.map_or(0, |own| own.own_ticks) as f64 / TICKS_PER_SECOND
}

/// Seconds that something takes of some processes.
#[derive(Debug, Clone)]
pub struct Watch {
    /// `None` is this process.
    leaders: Option<Vec<i32>>,
    since: f64,
}

impl Watch {
    pub fn begin(leaders: Vec<i32>) -> Self {
        let since = seconds(&leaders);
        Self { leaders: Some(leaders), since }
    }

    /// Counts what they have taken already, too.
    pub fn since_start(leaders: Vec<i32>) -> Self {
        Self { leaders: Some(leaders), since: 0.0 }
    }

    pub fn ourselves() -> Self {
        Self { leaders: None, since: own_seconds() }
    }

    pub fn seconds(&self) -> f64 {
        self.leaders.as_deref().map_or_else(own_seconds, seconds) - self.since
    }
}

struct Process {
    parent: i32,
    own_ticks: u64,
    /// Of children that have ended and were waited for, too.
    ticks: u64,
}

fn processes() -> HashMap<i32, Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return HashMap::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| Some((pid, process(pid)?))).collect()
}

/// See proc(5): the command in parentheses may itself hold spaces and parentheses.
fn process(pid: i32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let sum = |fields: &[&str]| fields.iter().map(|field| field.parse().unwrap_or(0)).sum::<u64>();
    // utime and stime, then the same of children.
    let (own_ticks, ticks) = (sum(fields.get(11..13)?), sum(fields.get(11..15)?));
    Some(Process { parent: fields.get(1)?.parse().ok()?, own_ticks, ticks })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_counted() {
        let with_children = Watch::begin(vec![std::process::id() as i32]);
        let alone = Watch::ourselves();
        let mut sum = 0_u64;
        while cfg!(target_os = "linux") && with_children.seconds().min(alone.seconds()) < 0.02 {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(7));
        }
        assert_eq!(seconds(&[]), 0.0);
    }
}
