//! The scripts of `lua/`, as this process sends them.

use std::sync::OnceLock;

use redis::{Script, ScriptInvocation};

/// A script and the name that errors use for it.
pub(super) struct Named {
    name: &'static str,
    script: Script,
}

/// A script with its keys and arguments.
pub(super) struct Call<'a> {
    pub(super) name: &'static str,
    pub(super) invocation: ScriptInvocation<'a>,
}

/// Every script that services run.
pub(super) struct Scripts {
    pub(super) claim_overdue: Named,
    pub(super) confirm: Named,
    pub(super) find_hold: Named,
    pub(super) find_holds: Named,
    pub(super) next_look: Named,
    pub(super) open: Named,
    pub(super) probe: Named,
    pub(super) reserve: Named,
    pub(super) restore: Named,
    pub(super) snapshot: Named,
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
    /// The scripts, prepared once per process.
    pub(super) fn get() -> &'static Self {
        static SCRIPTS: OnceLock<Scripts> = OnceLock::new();
        SCRIPTS.get_or_init(|| Self {
            claim_overdue: named(source!("claim_overdue")),
            confirm: named(source!("confirm")),
            find_hold: named(source!("find_hold")),
            find_holds: named(source!("find_holds")),
            next_look: named(source!("next_look")),
            open: named(source!("open")),
            probe: named(source!("probe")),
            reserve: named(source!("reserve")),
            restore: named(source!("restore")),
            snapshot: named(source!("snapshot")),
            warm: named(source!("warm")),
            warm_page: named(source!("warm_page")),
        })
    }
}

impl Named {
    pub(super) fn call(&self) -> Call<'_> {
        Call { name: self.name, invocation: self.script.prepare_invoke() }
    }
}

impl Call<'_> {
    pub(super) fn key(mut self, key: String) -> Self {
        self.invocation.key(key);
        self
    }

    pub(super) fn arg(mut self, arg: impl ToString) -> Self {
        self.invocation.arg(arg.to_string());
        self
    }
}

/// Puts the shared functions behind the script's first line, which has to stay first.
fn named((source, name): (&'static str, &'static str)) -> Named {
    let (first, rest) = source.split_once('\n').unwrap_or((source, ""));
    Named { name, script: Script::new(&format!("{first}\n{RECORD}\n{rest}")) }
}
