//! Which processes exist: identity by pid *and* start time, and who descends from whom.

use std::collections::HashSet;
use std::fs;
use std::process::Command;

use serde::{Deserialize, Serialize};

/// One process, for as long as it lives. A pid alone may be recycled for somebody else's process;
/// together with the start time it names one process for good.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) pid: i32,
    /// Ticks since boot, as the kernel counts them, and the boot they count from.
    pub(super) started: String,
}

impl Identity {
    /// `None` when there is no such process, or only its zombie.
    pub(super) fn of(pid: i32) -> Option<Self> {
        row(pid).map(|row| row.identity)
    }

    pub(super) fn is_alive(&self) -> bool {
        Self::of(self.pid).as_ref() == Some(self)
    }
}

struct Row {
    identity: Identity,
    parent: i32,
    group: i32,
}

/// The leader, everything in its process group, and all descendants of those.
///
/// Neither alone is enough: PostgreSQL's and Erlang's children leave the group of their parent,
/// and an orphan loses its parent but keeps its group.
pub(super) fn members(leader: &Identity) -> Vec<Identity> {
    if !leader.is_alive() {
        return Vec::new();
    }
    let rows = rows();
    let mut pids = HashSet::from([leader.pid]);
    loop {
        let before = pids.len();
        for row in &rows {
            if row.group == leader.pid || pids.contains(&row.parent) {
                pids.insert(row.identity.pid);
            }
        }
        if pids.len() == before {
            break;
        }
    }
    rows.into_iter().map(|row| row.identity).filter(|id| pids.contains(&id.pid)).collect()
}

fn rows() -> Vec<Row> {
    if cfg!(target_os = "linux") {
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        let pids = entries.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok());
        pids.filter_map(row).collect()
    } else {
        rows_of_ps(&["-ax"])
    }
}

fn row(pid: i32) -> Option<Row> {
    if cfg!(target_os = "linux") {
        row_of_proc(pid)
    } else {
        rows_of_ps(&["-p", &pid.to_string()]).pop()
    }
}

/// See proc(5): the command in parentheses may itself hold spaces and parentheses.
fn row_of_proc(pid: i32) -> Option<Row> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    if matches!(*fields.first()?, "Z" | "X") {
        return None;
    }
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    Some(Row {
        identity: Identity { pid, started: format!("{}@{}", fields.get(19)?, boot.trim()) },
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
    })
}

/// Where there is no /proc (macOS), `ps` knows the same, with start times in whole seconds.
fn rows_of_ps(selection: &[&str]) -> Vec<Row> {
    let output =
        Command::new("ps").args(selection).args(["-o", "pid=,ppid=,pgid=,stat=,lstart="]).output();
    let text = output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
    text.lines().filter_map(row_of_ps_line).collect()
}

fn row_of_ps_line(line: &str) -> Option<Row> {
    let mut fields = line.split_whitespace();
    let pid = fields.next()?.parse().ok()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    if fields.next()?.starts_with('Z') {
        return None;
    }
    let started = fields.collect::<Vec<_>>().join(" ");
    Some(Row { identity: Identity { pid, started }, parent, group })
}
