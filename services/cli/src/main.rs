//! `lastunit`: every service and every operator's verb.
//!
//! A command is a sentence: arguments, configuration, logs, run. Results go to standard output, logs
//! and progress to standard error. Exit status: 0 done, 1 failed (or the law is broken), 2 misused.

mod args;
mod commands;
mod open_files;
mod output;
mod progress;

use std::process::ExitCode;

use clap::Parser;

use crate::args::Args;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = Args::parse();
    match run(args) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("lastunit: {}", told(&error));
            if error.is::<commands::dlq::Misuse>() { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

/// An error and its causes, without what a message already repeats of its cause.
fn told(error: &anyhow::Error) -> String {
    let mut told = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if told.is_empty() {
            told = cause;
        } else if !told.contains(&cause) {
            told = format!("{told}: {cause}");
        }
    }
    told
}

fn run(args: Args) -> anyhow::Result<ExitCode> {
    let config = args.load()?;
    shared::telemetry::init(&config.log)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let code = runtime.block_on(commands::run(args.command, config));
    // Detached tasks, such as supervisors of idle connections, end with the process.
    runtime.shutdown_background();
    code
}
