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

/// Seconds that something took of these processes.
#[derive(Debug, Clone)]
pub struct Watch {
    leaders: Vec<i32>,
    since: f64,
}

impl Watch {
    pub fn begin(leaders: Vec<i32>) -> Self {
        let since = seconds(&leaders);
        Self { leaders, since }
    }

    pub fn seconds(&self) -> f64 {
        seconds(&self.leaders) - self.since
    }
}

struct Process {
    parent: i32,
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
    // utime, stime, cutime, cstime
    let ticks = fields.get(11..15)?.iter().map(|field| field.parse().unwrap_or(0)).sum();
    Some(Process { parent: fields.get(1)?.parse().ok()?, ticks })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_counted() {
        let watch = Watch::begin(vec![std::process::id() as i32]);
        let mut sum = 0_u64;
        while cfg!(target_os = "linux") && watch.seconds() < 0.02 {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(7));
        }
        assert_eq!(seconds(&[]), 0.0);
    }
}
