//! One server of a private Redis Cluster: like a Redis that stands alone, with a second port on which
//! the members talk to each other.

use std::path::PathBuf;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::ports::{self, Port};
use super::redis::{ask, config};
use super::{Backend, Home, Process, Recipe, StackError, credentials, programs};

pub type Member = Backend<MemberRecipe>;

/// After how long a silent member counts as failed. Short, so that tests need not wait for long;
/// long enough for a busy machine.
pub(super) const NODE_TIMEOUT: Duration = Duration::from_millis(2_000);

pub struct MemberRecipe {
    server: PathBuf,
    config: PathBuf,
    pub(super) port: Port,
    pub(super) bus: Port,
    password: String,
}

impl Recipe for MemberRecipe {
    const NAME: &'static str = "redis-member";

    fn prepare(home: &Home) -> Result<Self, StackError> {
        let server = programs::find("redis-server", "redis-server (or redis)")?;
        let password = credentials::password(home)?;
        let [port, bus] = ports::claim(home)?;
        let more = as_member(&bus, &password);
        let config = home.write("redis.conf", &config(home, &port, &password, &more))?;
        Ok(Self { server, config, port, bus, password })
    }

    fn launch(&self, home: &mut Home, processes: &mut Vec<Process>) -> Result<(), StackError> {
        let mut command = programs::command(&self.server);
        command.arg(&self.config).current_dir(home.dir());
        processes.push(Process::spawn(home, Self::NAME, Signal::SIGTERM, command)?);
        Ok(())
    }

    fn answers(&self) -> Result<(), String> {
        let reply = self.ask("PING\r\n").map_err(|error| error.to_string())?;
        if reply == "PONG" { Ok(()) } else { Err(format!("it answered {reply:?}")) }
    }

    fn url(&self) -> String {
        format!("redis://:{}@127.0.0.1:{}/0", self.password, self.port.number())
    }

    fn port(&self) -> u16 {
        self.port.number()
    }
}

impl MemberRecipe {
    /// The reply to one inline command: a line without its mark, or the text of a bulk reply.
    pub(super) fn ask(&self, command: &str) -> std::io::Result<String> {
        let command = format!("{}\r\n", command.trim_end());
        let replies = ask(self.port.number(), &self.password, &command)?;
        let reply = replies.strip_prefix("+OK\r\n").unwrap_or(&replies);
        let text = match reply.split_once("\r\n") {
            Some((length, text)) if length.starts_with('$') => text,
            _ => reply.strip_prefix(['+', ':']).unwrap_or(reply),
        };
        Ok(text.trim_end().to_owned())
    }
}

fn as_member(bus: &Port, password: &str) -> Vec<String> {
    vec![
        "cluster-enabled yes".to_owned(),
        "cluster-config-file nodes.conf".to_owned(),
        format!("cluster-port {}", bus.number()),
        "cluster-announce-ip 127.0.0.1".to_owned(),
        // A third that is lost keeps nobody from the other two.
        "cluster-require-full-coverage no".to_owned(),
        format!("cluster-node-timeout {}", NODE_TIMEOUT.as_millis()),
        // Whoever follows takes over, however long ago it last heard of its primary.
        "cluster-replica-validity-factor 0".to_owned(),
        "cluster-allow-replica-migration no".to_owned(),
        format!("masterauth {password}"),
        "repl-diskless-sync yes".to_owned(),
        "repl-diskless-sync-delay 0".to_owned(),
    ]
}
