//! The scripts of `lua/`, as this process sends them.

use redis::{Script, ScriptInvocation};

use super::slots::Slot;

/// A script and the name that errors use for it.
pub(super) struct Named {
    name: &'static str,
    script: Script,
}

/// A script with its keys and arguments.
pub(super) struct Call<'a> {
    pub(super) name: &'static str,
    pub(super) script: &'a Script,
    pub(super) invocation: ScriptInvocation<'a>,
    /// Where its keys live in a cluster: all of them share a hash tag.
    pub(super) slot: Option<Slot>,
}

/// Every script that services run.
pub(super) struct Scripts {
    pub(super) bind_store: Named,
    pub(super) claim_overdue: Named,
    pub(super) confirm: Named,
    pub(super) correct: Named,
    pub(super) find_hold: Named,
    pub(super) find_holds: Named,
    pub(super) forget_holds: Named,
    pub(super) forget_lock: Named,
    pub(super) freeze: Named,
    pub(super) lock_acquire: Named,
    pub(super) lock_release: Named,
    pub(super) lock_renew: Named,
    pub(super) lock_show: Named,
    pub(super) next_look: Named,
    pub(super) open: Named,
    pub(super) probe: Named,
    pub(super) read_holds: Named,
    pub(super) read_records: Named,
    pub(super) read_totals: Named,
    pub(super) read_transfers: Named,
    pub(super) reserve: Named,
    pub(super) restore: Named,
    pub(super) retire: Named,
    pub(super) scan_confirmed: Named,
    pub(super) scan_totals: Named,
    pub(super) snapshot: Named,
    pub(super) stamp: Named,
    pub(super) store: Named,
    pub(super) terms: Named,
    pub(super) thaw: Named,
    pub(super) transfer_back: Named,
    pub(super) transfer_done: Named,
    pub(super) transfer_in: Named,
    pub(super) transfer_out: Named,
    pub(super) transfer_void: Named,
    pub(super) warm: Named,
    pub(super) warm_page: Named,
}

macro_rules! source {
    ($name:literal) => {
        (include_str!(concat!("../../../lua/", $name, ".lua")), $name)
    };
}

/// The functions that all scripts share; see the file's own comment.
const RECORD: &str = include_str!("../../../lua/record.lua");

impl Scripts {
    /// The scripts, prepared once per window.
    pub(super) fn new(checks_incarnation: bool) -> Self {
        let named = |source| named(source, checks_incarnation);
        Self {
            bind_store: named(source!("bind_store")),
            claim_overdue: named(source!("claim_overdue")),
            confirm: named(source!("confirm")),
            correct: named(source!("correct")),
            find_hold: named(source!("find_hold")),
            find_holds: named(source!("find_holds")),
            forget_holds: named(source!("forget_holds")),
            forget_lock: named(source!("forget_lock")),
            freeze: named(source!("freeze")),
            lock_acquire: named(source!("lock_acquire")),
            lock_release: named(source!("lock_release")),
            lock_renew: named(source!("lock_renew")),
            lock_show: named(source!("lock_show")),
            next_look: named(source!("next_look")),
            open: named(source!("open")),
            probe: named(source!("probe")),
            read_holds: named(source!("read_holds")),
            read_records: named(source!("read_records")),
            read_totals: named(source!("read_totals")),
            read_transfers: named(source!("read_transfers")),
            reserve: named(source!("reserve")),
            restore: named(source!("restore")),
            retire: named(source!("retire")),
            scan_confirmed: named(source!("scan_confirmed")),
            scan_totals: named(source!("scan_totals")),
            snapshot: named(source!("snapshot")),
            stamp: named(source!("stamp")),
            store: named(source!("store")),
            terms: named(source!("terms")),
            thaw: named(source!("thaw")),
            transfer_back: named(source!("transfer_back")),
            transfer_done: named(source!("transfer_done")),
            transfer_in: named(source!("transfer_in")),
            transfer_out: named(source!("transfer_out")),
            transfer_void: named(source!("transfer_void")),
            warm: named(source!("warm")),
            warm_page: named(source!("warm_page")),
        }
    }
}

impl Named {
    pub(super) fn call(&self) -> Call<'_> {
        let invocation = self.script.prepare_invoke();
        Call { name: self.name, script: &self.script, invocation, slot: None }
    }
}

impl Call<'_> {
    pub(super) fn key(mut self, key: String) -> Self {
        let slot = *self.slot.get_or_insert_with(|| Slot::of(&key));
        debug_assert_eq!(slot, Slot::of(&key), "{}: {key} lives in another slot", self.name);
        self.invocation.key(key);
        self
    }

    pub(super) fn arg(mut self, arg: impl ToString) -> Self {
        self.invocation.arg(arg.to_string());
        self
    }
}

/// Puts the shared functions behind the script's first line, which has to stay first.
fn named((source, name): (&'static str, &'static str), checks_incarnation: bool) -> Named {
    let (first, rest) = source.split_once('\n').unwrap_or((source, ""));
    let switch = format!("local CHECKS_INCARNATION = {checks_incarnation}");
    Named { name, script: Script::new(&format!("{first}\n{switch}\n{RECORD}\n{rest}")) }
}
