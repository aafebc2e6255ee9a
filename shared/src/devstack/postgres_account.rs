//! As whom PostgreSQL runs: it refuses to run as root.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::unistd::{User, geteuid};

use super::{StackError, programs};

pub(super) enum Account {
    /// Nobody special: run it as ourselves.
    Own,
    /// We are root. The data may lie below a directory that the account may not pass (a home with
    /// 0700), so it keeps one capability, which needs `setpriv`.
    Switched { setpriv: PathBuf, user: User },
    /// We are root without a usable `setpriv`: plain ids, and a directory that is open to all.
    Plain { user: User },
}

impl Account {
    pub(super) fn choose() -> Result<Self, StackError> {
        if !geteuid().is_root() {
            return Ok(Self::Own);
        }
        let known = |name| User::from_name(name).ok().flatten();
        let user = known("postgres").or_else(|| known("nobody"));
        let package = "postgresql (the user postgres, as root may not run it)";
        let user = user.ok_or(StackError::ProgramMissing { program: "postgres", package })?;
        let Ok(setpriv) = programs::find("setpriv", "util-linux") else {
            return Ok(Self::Plain { user });
        };
        // A container may forbid the capability; only trying it tells.
        let switched = Self::Switched { setpriv, user: user.clone() };
        let tried = programs::run("trying setpriv", &mut switched.command(Path::new("true")));
        Ok(if tried.is_ok() { switched } else { Self::Plain { user } })
    }

    pub(super) fn command(&self, program: &Path) -> Command {
        match self {
            Self::Own => programs::command(program),
            Self::Switched { setpriv, user } => {
                let mut command = programs::command(setpriv);
                command.arg("--reuid").arg(user.uid.to_string());
                command.arg("--regid").arg(user.gid.to_string());
                command.args(["--clear-groups", "--inh-caps", "+dac_override"]);
                command.args(["--ambient-caps", "+dac_override", "--"]).arg(program);
                command
            }
            Self::Plain { user } => {
                let mut command = programs::command(program);
                command.uid(user.uid.as_raw()).gid(user.gid.as_raw());
                command
            }
        }
    }

    /// PostgreSQL insists on owning its data directory.
    pub(super) fn give(&self, path: &Path) -> Result<(), StackError> {
        match self {
            Self::Own => Ok(()),
            Self::Switched { user, .. } | Self::Plain { user } => {
                chown(path, Some(user.uid.as_raw()), Some(user.gid.as_raw()))
                    .map_err(StackError::file("changing the owner of", path))
            }
        }
    }
}
