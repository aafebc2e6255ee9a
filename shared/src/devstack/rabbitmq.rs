//! A private RabbitMQ node with an Erlang port mapper (epmd) of its own.

use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::ports::{self, Port};
use super::{
    Backend, Home, Process, Recipe, StackError, amqp, credentials, programs, rabbitmq_applications,
};

pub type RabbitMq = Backend<RabbitMqRecipe>;

/// Stable, because the data on disk belongs to this name. Nodes side by side may share it: each
/// is known to its own epmd only.
const NODE: &str = "lastunit@localhost";
const EPMD_BOUND: Duration = Duration::from_secs(10);
const PACKAGE: &str = "rabbitmq-server";
/// Erlang's distribution listens on all addresses unless told otherwise.
const LOOPBACK_ONLY: &str = "-kernel inet_dist_use_interface {127,0,0,1}";

pub struct RabbitMqRecipe {
    epmd: PathBuf,
    /// The installed scripts, and the same through a view that makes the node start faster.
    scripts: PathBuf,
    slim_scripts: PathBuf,
    dir: PathBuf,
    port: Port,
    distribution_port: Port,
    epmd_port: Port,
    password: String,
}

impl Recipe for RabbitMqRecipe {
    const NAME: &'static str = "rabbitmq";

    fn prepare(home: &Home) -> Result<Self, StackError> {
        let epmd = programs::find("epmd", "erlang-base (or erlang)")?;
        programs::find("erl", "erlang-base (or erlang)")?;
        let scripts =
            programs::folder_of("rabbitmq-server", &["rabbitmq-env", "rabbitmqctl"], PACKAGE)?;
        let slim_scripts = rabbitmq_applications::slim(&scripts, &home.file("server"))?;
        let password = credentials::password(home)?;
        let [port, distribution_port, epmd_port] = ports::claim(home)?;
        home.write("advanced.config", &config(&port, &password))?;
        home.write("enabled_plugins", "[].\n")?;
        // Erlang would make one itself; the node and rabbitmqctl must agree on it either way.
        home.write(".erlang.cookie", &password)?;
        let dir = home.dir().to_owned();
        Ok(Self { epmd, scripts, slim_scripts, dir, port, distribution_port, epmd_port, password })
    }

    fn launch(&self, home: &mut Home, processes: &mut Vec<Process>) -> Result<(), StackError> {
        // In the foreground and before the node: a node that finds no epmd starts one as a daemon.
        let mut epmd = self.command(&self.epmd);
        epmd.arg("-port").arg(self.epmd_port.number().to_string());
        processes.push(Process::spawn(home, "epmd", Signal::SIGTERM, epmd)?);
        self.await_epmd();
        let mut server = self.command(&self.slim_scripts.join("rabbitmq-server"));
        self.configure(&mut server);
        processes.push(Process::spawn(home, Self::NAME, Signal::SIGTERM, server)?);
        Ok(())
    }

    fn answers(&self) -> Result<(), String> {
        amqp::declare_something(self.port.number(), credentials::USER, &self.password)
            .map_err(|error| error.to_string())
    }

    fn url(&self) -> String {
        let (user, port) = (credentials::USER, self.port.number());
        format!("amqp://{user}:{}@127.0.0.1:{port}/%2f", self.password)
    }

    fn port(&self) -> u16 {
        self.port.number()
    }
}

impl Backend<RabbitMqRecipe> {
    /// Runs `rabbitmqctl` against this node and returns what it printed. Takes about a third of a
    /// second.
    pub fn ctl(&self, args: &[&str]) -> Result<String, StackError> {
        let mut command = self.recipe.command(&self.recipe.scripts.join("rabbitmqctl"));
        // Port 0 is "any free one"; its default is a fixed range on all addresses.
        command.env("RABBITMQ_CTL_DIST_PORT_MIN", "0").env("RABBITMQ_CTL_DIST_PORT_MAX", "0");
        command.env("RABBITMQ_CTL_ERL_ARGS", LOOPBACK_ONLY);
        command.args(["--quiet", "--node", NODE]).args(args);
        programs::run(&format!("rabbitmqctl {}", args.join(" ")), &mut command)
    }

    /// Call this between declaring a quorum queue and [`kill`](Self::kill), if what the queue
    /// confirmed has to survive.
    ///
    /// A node keeps the names of its quorum queues in a table that it writes half a second after
    /// the last change, and when it starts it throws away what the log holds for names it does not
    /// know: a queue younger than that comes back empty and without a leader, for good. This
    /// writes the table now.
    pub fn persist_queue_names(&self) -> Result<(), StackError> {
        self.ctl(&["eval", "[ok = dets:sync(Table) || Table <- dets:all()]."]).map(drop)
    }
}

impl RabbitMqRecipe {
    /// If it does not come up, the wait for the node reports how it ended.
    fn await_epmd(&self) {
        let deadline = Instant::now() + EPMD_BOUND;
        let port = (Ipv4Addr::LOCALHOST, self.epmd_port.number());
        while TcpStream::connect(port).is_err() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// The environment that the node, epmd and rabbitmqctl share. HOME is where the cookie is.
    fn command(&self, program: &Path) -> Command {
        let mut command = programs::command(program);
        command.current_dir(&self.dir).env("HOME", &self.dir);
        command.env("ERL_EPMD_ADDRESS", "127.0.0.1");
        command.env("ERL_EPMD_PORT", self.epmd_port.number().to_string());
        command.env("ERL_CRASH_DUMP", self.dir.join("erl_crash.dump"));
        command.env("RABBITMQ_NODENAME", NODE);
        // Names that do not exist, instead of the defaults in /etc/rabbitmq.
        command.env("RABBITMQ_CONF_ENV_FILE", self.dir.join("no-rabbitmq-env.conf"));
        command.env("RABBITMQ_CONFIG_FILES", self.dir.join("no-conf.d"));
        command
    }

    fn configure(&self, server: &mut Command) {
        let files = [
            ("RABBITMQ_BASE", ""),
            // Absent on purpose: with a rabbitmq.conf the node first compiles the schemas of all
            // plugins, which takes a second. The same settings as Erlang terms cost nothing.
            ("RABBITMQ_CONFIG_FILE", "no-rabbitmq"),
            ("RABBITMQ_ADVANCED_CONFIG_FILE", "advanced.config"),
            ("RABBITMQ_ENABLED_PLUGINS_FILE", "enabled_plugins"),
            ("RABBITMQ_MNESIA_BASE", "data"),
            ("RABBITMQ_MNESIA_DIR", "data/node"),
            ("RABBITMQ_LOG_BASE", "log"),
            ("RABBITMQ_PLUGINS_EXPAND_DIR", "data/plugins"),
            ("RABBITMQ_GENERATED_CONFIG_DIR", "data/config"),
            ("RABBITMQ_SCHEMA_DIR", "data/schema"),
        ];
        for (variable, file) in files {
            server.env(variable, self.dir.join(file));
        }
        if self.slim_scripts != self.scripts {
            server.env("RABBITMQ_SCRIPTS_DIR", &self.slim_scripts);
        }
        server.env("RABBITMQ_LOGS", "-");
        server.env("RABBITMQ_DIST_PORT", self.distribution_port.number().to_string());
        server.env("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", LOOPBACK_ONLY);
        // Idle schedulers sleep, and none is tied to a core: several nodes share few cores here.
        server.env("RABBITMQ_SCHEDULER_BUSY_WAIT_THRESHOLD", "none");
        server.env("RABBITMQ_SCHEDULER_BIND_TYPE", "u");
        // Lets the script become the node instead of staying its parent. Where a version does not
        // know it, the script passes SIGTERM on, and killing finds the node as its child.
        server.env("detached", "true");
    }
}

fn config(port: &Port, password: &str) -> String {
    let (user, port) = (credentials::USER, port.number());
    format!(
        "[{{rabbit, [{{tcp_listeners, [{{\"127.0.0.1\", {port}}}]}},\n           \
         {{default_user, <<\"{user}\">>}}, {{default_pass, <<\"{password}\">>}}]}}].\n"
    )
}
