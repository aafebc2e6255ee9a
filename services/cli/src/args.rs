//! The command line.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand};
use shared::config::{Config, ConfigError, Sources, load};
use shared::domain::ItemId;

use crate::commands::item::{AddStockArgs, EndArgs, PauseArgs, PutArgs, RebucketArgs, ResumeArgs};
use crate::commands::reconcile::ReconcileArgs;

/// Sells limited stock to a crowd: exactly what is there, never a unit more, never an order lost.
///
/// Purchases are answered from Redis, travel through RabbitMQ, and become orders in PostgreSQL, the
/// ledger, which has the last word. A first sale: `migrate`, `item put`, `warm`, then `all`.
/// To see everything at work on this machine alone: `demo`.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100, propagate_version = true)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) settings: Settings,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Settings that win over the environment (LASTUNIT_*) and over lastunit.toml. `lastunit config`
/// shows what is in effect.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Settings")]
pub(crate) struct Settings {
    /// Read this file instead of ./lastunit.toml
    #[arg(long, global = true, env = "LASTUNIT_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Name of the deployment, in front of every Redis key and RabbitMQ name
    #[arg(long, global = true, value_name = "NAME")]
    namespace: Option<String>,
    /// Where stock is, for example redis://127.0.0.1:6379/
    #[arg(long, global = true, value_name = "URL")]
    redis_url: Option<String>,
    /// Where messages travel, for example amqp://user:password@127.0.0.1:5672/%2f
    #[arg(long, global = true, value_name = "URL")]
    rabbitmq_url: Option<String>,
    /// Where orders are, for example postgres://user:password@127.0.0.1:5432/lastunit
    #[arg(long, global = true, value_name = "URL")]
    ledger_url: Option<String>,
    /// Which log lines are written, for example info, or warn,consumer=debug
    #[arg(long, global = true, value_name = "FILTER")]
    log: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Answer purchase requests over HTTP: reserve stock, publish the reservation
    Ingress(Listen),
    /// Decide reservations in the ledger; run as many as you like
    Consumer,
    /// Give stock back that the ledger did not sell; run as many as you like
    Compensator,
    /// Warm up what is due, finish what others left, keep Redis in line with the ledger; run one or
    /// more
    Reconciler,
    /// Run every service in this one process
    All(Listen),
    /// Create or update the ledger's tables; safe to run again, and by several at once
    Migrate(Output),
    /// Put items on sale and look at them
    #[command(subcommand)]
    Item(ItemCommand),
    /// Build items in Redis from the ledger, so that they can be bought; a live item is left alone
    Warm(WarmArgs),
    /// Dead letters: see them, understand them, send them again safely
    ///
    /// A dead letter is a message that nobody could handle. A parked reservation keeps its stock
    /// until somebody replays or discards its letter. Letters are meant by their ids, by a filter, or
    /// all of them. Exit status: 0 done, 1 failed or stopped, 2 misused.
    #[command(subcommand)]
    Dlq(crate::commands::dlq::DlqCommand),
    /// Tell one request's whole story: its hold, its message, its order, and what happens next
    Explain(crate::commands::explain::ExplainArgs),
    /// Look at the locks under which work of several steps on an item is done
    #[command(subcommand)]
    Lock(LockCommand),
    /// Compare Redis with the ledger, and correct what differs
    ///
    /// Exit status 0 only if every item agrees, or does now. A running reconciler does the same by
    /// itself: every minute for what has changed, every hour for everything.
    Reconcile(ReconcileArgs),
    /// Look at the Redis that may sell for this ledger
    #[command(subcommand)]
    Store(StoreCommand),
    /// Show the settings in effect, with passwords hidden
    Config(ConfigArgs),
    /// Rehearse on this machine alone: private backends, 1,000 buyers at once, 500 units, a verdict
    ///
    /// Starts private backends and every service as a process of its own, lets a crowd buy at once,
    /// waits until every order is final, and checks the law: nothing oversold, lost, or left
    /// hanging, and Redis and the ledger agree. Exit status 0 only if it holds.
    #[cfg(feature = "devstack")]
    Demo(crate::commands::demo::DemoArgs),
    /// Measure on this machine alone: the pipeline next to its backends, other designs, and growth
    ///
    /// Starts private backends and services as processes of their own, measures round by round, and
    /// stops everything. Figures go to standard output, progress to standard error. Exit status: 0
    /// measured, 1 failed (or a goal was missed, with --check), 2 misused.
    #[cfg(feature = "devstack")]
    #[command(subcommand)]
    Bench(crate::commands::bench::BenchCommand),
    /// Run private backends (Redis, RabbitMQ, PostgreSQL) from this machine's own programs
    #[cfg(feature = "devstack")]
    #[command(subcommand)]
    Stack(crate::commands::stack::StackCommand),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Listen {
    /// Address and port to answer on; port 0 takes a free one [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<String>,
}

/// How results are printed.
#[derive(Debug, Clone, Copy, ClapArgs)]
pub(crate) struct Output {
    /// Print JSON, for programs
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ItemCommand {
    /// Create an item, or change its window; its total, limit and buckets until it has been warmed up
    Put(PutArgs),
    /// Add units to a sale; buyers can have them within seconds
    AddStock(AddStockArgs),
    /// Divide an item into another number of buckets, on sale or not
    ///
    /// Buckets spread one item over the cores of a Redis Cluster; with a single Redis, one bucket is
    /// the fastest. Buyers see the item frozen until nothing is held and its stock is laid out anew:
    /// for some hundredths of a second, longer with a long history. If holds are not settled in time,
    /// nothing is changed.
    Rebucket(RebucketArgs),
    /// Stop a sale until further notice; what is accepted goes on
    Pause(PauseArgs),
    /// End a pause
    Resume(ResumeArgs),
    /// End a sale now; what is accepted goes on
    End(EndArgs),
    /// Show one item: its sale, its orders, and what Redis and the ledger say is left
    Show(ShowArgs),
    /// List items in the order of their ids
    List(ListArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum LockCommand {
    /// Show who has an item's lock, for what, and for how long still
    ///
    /// There is no command that frees a lock: its holder may be in the middle of its work. A holder
    /// that lives renews its lease and frees the lock when it is done; stop its process, if that is
    /// what you want. The lock of one that died is free when the lease shown here has ended, after 30
    /// seconds at most. Nothing that buyers do needs the lock.
    Show(ShowArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Show which store the ledger names, when it was seen, and what this Redis is
    Show(Output),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ShowArgs {
    /// Item id: 1–64 of A–Z a–z 0–9 . _ -
    pub(crate) item: ItemId,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ListArgs {
    /// Begin behind this item
    #[arg(long, value_name = "ITEM")]
    pub(crate) after: Option<ItemId>,
    /// Most items to list
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    pub(crate) most: u32,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct WarmArgs {
    /// Items to warm up
    #[arg(required_unless_present = "all", value_name = "ITEM")]
    pub(crate) items: Vec<ItemId>,
    /// Warm up every item whose sale has not ended
    #[arg(long, conflicts_with = "items")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ConfigArgs {
    /// List everything that can be set, with defaults, instead of what is in effect
    #[arg(long)]
    pub(crate) reference: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

impl Args {
    fn listen(&self) -> Option<&String> {
        match &self.command {
            Command::Ingress(listen) | Command::All(listen) => listen.listen.as_ref(),
            _ => None,
        }
    }

    /// A command that does one thing and ends says only what went wrong, unless it is asked to. What
    /// `lastunit config` shows is what services would do.
    fn log(&self) -> Option<String> {
        let follows_settings = matches!(
            self.command,
            Command::Ingress(_)
                | Command::Consumer
                | Command::Compensator
                | Command::Reconciler
                | Command::All(_)
                | Command::Config(_)
        );
        let quiet = (!follows_settings).then(|| "warn".to_owned());
        self.settings.log.clone().or(quiet)
    }

    /// Puts defaults, file, environment and flags on top of each other.
    pub(crate) fn load(&self) -> Result<Config, ConfigError> {
        let settings = &self.settings;
        let flags = [
            ("namespace", settings.namespace.clone()),
            ("redis.url", settings.redis_url.clone()),
            ("rabbitmq.url", settings.rabbitmq_url.clone()),
            ("ledger.url", settings.ledger_url.clone()),
            ("log.filter", self.log()),
            ("http.listen", self.listen().cloned()),
        ];
        let flags = flags.into_iter().filter_map(|(path, flag)| Some((path, flag?)));
        load(Sources {
            file: settings.config.clone(),
            environment: std::env::vars().collect(),
            flags: flags.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Args;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }
}
