//! `lastunit stack up | down | status | exec`: private backends, for trying things out and for the
//! tests. They listen on loopback only, on free ports, and keep their data in one folder.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus};

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use shared::devstack::{Down, Endpoints, Stack};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::spawn_blocking;

use crate::args::Output;
use crate::output;

#[derive(Debug, Subcommand)]
pub(crate) enum StackCommand {
    /// Start the stack and let it run; prints its settings as shell variables
    Up(Place),
    /// Stop the stack; its data stays
    Down(Place),
    /// Show where a running stack answers
    Status(Place),
    /// Run a command with LASTUNIT_* pointing at the stack, which is started for it if need be
    Exec(Exec),
}

#[derive(Debug, Args)]
pub(crate) struct Place {
    /// Where the stack keeps data and logs
    #[arg(long, value_name = "DIR", default_value = ".lastunit/stack")]
    dir: PathBuf,
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Exec {
    /// Where the stack keeps data and logs
    #[arg(long, value_name = "DIR", default_value = ".lastunit/stack")]
    dir: PathBuf,
    /// Remove what an earlier stack left in that folder, and start with empty backends
    #[arg(long)]
    fresh: bool,
    /// The command and its arguments, after `--`
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
}

/// The tests find the stack by this variable. It is no setting, so that tests never run against
/// what a developer's own settings point at.
const STACK: &str = "LASTUNIT_STACK";

pub(crate) async fn run(command: StackCommand) -> anyhow::Result<ExitCode> {
    match command {
        StackCommand::Up(Place { dir, output }) => {
            let endpoints = match Stack::running(&dir)? {
                Some(endpoints) => endpoints,
                None => start(dir).await?.detach()?,
            };
            show(&endpoints, output)?;
        }
        StackCommand::Down(Place { dir, output }) => {
            let stopped = match spawn_blocking(move || Stack::down(&dir)).await?? {
                Down::Stopped(names) => names,
                Down::NothingRan => Vec::new(),
            };
            if output.json {
                output::json(&json!({ "stopped": stopped }))?;
            } else if stopped.is_empty() {
                output::print("Nothing ran.")?;
            } else {
                output::print(&format!("Stopped {}.", stopped.join(", ")))?;
            }
        }
        StackCommand::Status(Place { dir, output }) => match Stack::running(&dir)? {
            Some(endpoints) => show(&endpoints, output)?,
            None => bail!("no stack runs in {}; `lastunit stack up` starts one", dir.display()),
        },
        StackCommand::Exec(exec) => return execute(exec).await,
    }
    Ok(ExitCode::SUCCESS)
}

/// Starts a stack, telling on standard error what answers.
pub(crate) async fn start(dir: PathBuf) -> anyhow::Result<Stack> {
    Ok(spawn_blocking(move || Stack::start(&dir, &|line| eprintln!("{line}"))).await??)
}

/// The settings that point at a stack.
pub(crate) fn variables(endpoints: &Endpoints) -> [(&'static str, &str); 3] {
    [
        ("LASTUNIT_REDIS_URL", &endpoints.redis_url),
        ("LASTUNIT_RABBITMQ_URL", &endpoints.rabbitmq_url),
        ("LASTUNIT_LEDGER_URL", &endpoints.ledger_url),
    ]
}

fn show(endpoints: &Endpoints, output: Output) -> anyhow::Result<()> {
    if output.json {
        return output::json(endpoints);
    }
    for (name, value) in variables(endpoints) {
        output::print(&format!("export {name}='{value}'"))?;
    }
    Ok(())
}

async fn execute(Exec { dir, fresh, command }: Exec) -> anyhow::Result<ExitCode> {
    let (program, arguments) = command.split_first().context("no command to run")?;
    if fresh {
        remove(dir.clone()).await?;
    }
    if let Some(endpoints) = Stack::running(&dir)? {
        return Ok(code_of(run_with(&endpoints, program, arguments).await?));
    }
    let stack = start(dir).await?;
    let status = run_with(stack.endpoints(), program, arguments).await;
    spawn_blocking(|| stack.stop()).await??;
    Ok(code_of(status?))
}

/// Stops what an earlier owner may have left, and removes its data.
async fn remove(dir: PathBuf) -> anyhow::Result<()> {
    let there = dir.clone();
    spawn_blocking(move || Stack::down(&there)).await??;
    match std::fs::remove_dir_all(&dir) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", dir.display()))
        }
        _ => Ok(()),
    }
}

/// Runs the command to its end. Ctrl-C at the terminal reaches it directly; we only stay until it
/// has ended, so that the stack is stopped after it.
async fn run_with(
    endpoints: &Endpoints,
    program: &str,
    arguments: &[String],
) -> anyhow::Result<ExitStatus> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut child = Command::new(program)
        .args(arguments)
        .envs(variables(endpoints))
        .env(STACK, serde_json::to_string(endpoints)?)
        .spawn()
        .with_context(|| format!("cannot run {program}"))?;
    loop {
        tokio::select! {
            status = child.wait() => return Ok(status?),
            _ = interrupt.recv() => {}
            _ = terminate.recv() => pass_on(&child),
        }
    }
}

fn pass_on(child: &Child) {
    if let Some(pid) = child.id().and_then(|pid| i32::try_from(pid).ok()) {
        let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
    }
}

fn code_of(status: ExitStatus) -> ExitCode {
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    ExitCode::from(code.unwrap_or(1))
}
