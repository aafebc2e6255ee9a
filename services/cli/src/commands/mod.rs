//! One file a command.

#[cfg(feature = "devstack")]
pub(crate) mod bench;
mod config;
#[cfg(feature = "devstack")]
pub(crate) mod demo;
pub(crate) mod dlq;
pub(crate) mod explain;
pub(crate) mod item;
mod lock;
mod migrate;
pub(crate) mod reconcile;
mod services;
#[cfg(feature = "devstack")]
pub(crate) mod stack;
mod store;
mod warm;

use std::process::ExitCode;

use shared::config::Config;

use crate::args::{Command, ItemCommand, LockCommand, StoreCommand};

/// Exit status of a process that Ctrl-C ended, by convention of shells.
#[cfg(feature = "devstack")]
const INTERRUPTED: u8 = 130;

/// Runs a command.
pub(crate) async fn run(command: Command, config: Config) -> anyhow::Result<ExitCode> {
    match command {
        Command::Ingress(_) => services::run(&config, &[services::Service::Ingress]).await?,
        Command::Consumer => services::run(&config, &[services::Service::Consumer]).await?,
        Command::Compensator => services::run(&config, &[services::Service::Compensator]).await?,
        Command::Reconciler => services::run(&config, &[services::Service::Reconciler]).await?,
        Command::All(_) => services::run(&config, &services::Service::ALL).await?,
        Command::Migrate(output) => migrate::run(&config, output).await?,
        Command::Item(ItemCommand::Put(put)) => item::put(&config, put).await?,
        Command::Item(ItemCommand::Show(show)) => item::show(&config, show).await?,
        Command::Item(ItemCommand::List(list)) => item::list(&config, list).await?,
        Command::Warm(warm) => warm::run(&config, warm).await?,
        Command::Dlq(command) => return dlq::run(&config, command).await,
        Command::Explain(args) => return explain::run(&config, args).await,
        Command::Lock(LockCommand::Show(show)) => lock::show(&config, show).await?,
        Command::Item(ItemCommand::AddStock(args)) => item::add_stock(&config, args).await?,
        Command::Item(ItemCommand::Rebucket(args)) => item::rebucket(&config, args).await?,
        Command::Item(ItemCommand::Pause(args)) => item::pause(&config, args).await?,
        Command::Item(ItemCommand::Resume(args)) => item::resume(&config, args).await?,
        Command::Item(ItemCommand::End(args)) => item::end(&config, args).await?,
        Command::Reconcile(args) => return reconcile::run(&config, args).await,
        Command::Store(StoreCommand::Show(output)) => store::show(&config, output).await?,
        Command::Config(args) => config::run(&config, args)?,
        #[cfg(feature = "devstack")]
        Command::Bench(command) => return bench::run(command).await,
        #[cfg(feature = "devstack")]
        Command::Demo(args) => return demo::run(args).await,
        #[cfg(feature = "devstack")]
        Command::Stack(command) => return stack::run(command).await,
    }
    Ok(ExitCode::SUCCESS)
}
