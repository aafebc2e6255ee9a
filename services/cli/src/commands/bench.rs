//! `lastunit bench`: what the pipeline costs, next to what its backends do alone, on a private stack.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use bench::plan::Plan;
use bench::report::Report;
use bench::{Subject, html, table};
use clap::{Args, Subcommand};
use shared::shutdown::Shutdown;

use super::INTERRUPTED;
use crate::args::Output;
use crate::{open_files, output};

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// How close each stage comes to what Redis, HTTP, RabbitMQ and PostgreSQL do without it
    Limits(BenchArgs),
    /// Other designs of the same sale, side by side
    Strategies(BenchArgs),
    /// Whether throughput falls as items, buckets, consumers, partitions, holds and history grow
    Scale(BenchArgs),
    /// Answer every POST with 200 and a few bytes: what HTTP alone can do
    #[command(hide = true)]
    Empty {
        #[arg(long, value_name = "ADDRESS:PORT")]
        listen: std::net::SocketAddr,
    },
}

#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// Rounds; in each, everything that is compared runs one after the other, in alternating order
    ///
    /// [default: 5, or 2 with --quick]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: Option<u32>,
    /// A smoke run of some seconds: too small to say anything about speed
    #[arg(long)]
    quick: bool,
    /// Measure only this section; may be given several times. The JSON report has their names
    #[arg(long, value_name = "SECTION")]
    only: Vec<String>,
    /// Exit with status 1 if a goal is missed
    #[arg(long)]
    check: bool,
    /// Also write a page that needs nothing else
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Where data and logs are kept while it runs; removed when it is done
    #[arg(long, value_name = "DIR", default_value = ".lastunit")]
    dir: PathBuf,
    #[command(flatten)]
    output: Output,
}

const ROUNDS: u32 = 5;
const QUICK_ROUNDS: u32 = 2;

pub(crate) async fn run(command: BenchCommand) -> anyhow::Result<ExitCode> {
    match command {
        BenchCommand::Limits(args) => measure(Subject::Limits, args).await,
        BenchCommand::Strategies(args) => measure(Subject::Strategies, args).await,
        BenchCommand::Scale(args) => measure(Subject::Scale, args).await,
        BenchCommand::Empty { listen } => {
            let shutdown = Shutdown::on_signals()?;
            bench::limits::empty::serve(listen, shutdown.stop.cancelled_owned()).await?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

async fn measure(subject: Subject, args: BenchArgs) -> anyhow::Result<ExitCode> {
    let shutdown = Shutdown::on_signals()?;
    if let Some(file) = &args.html {
        // Said now, not after minutes of measuring.
        let opened = OpenOptions::new().append(true).create(true).open(file);
        opened.with_context(|| format!("cannot write {}", file.display()))?;
    }
    open_files::raise_limit();
    // Services run in folders of their own.
    let dir = std::path::absolute(&args.dir)?;
    let dir = dir.join(format!("bench-{}", std::process::id()));
    std::fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let plan = Plan {
        rounds: args.rounds.unwrap_or(if args.quick { QUICK_ROUNDS } else { ROUNDS }),
        quick: args.quick,
        only: args.only.clone(),
        dir: dir.clone(),
        program: std::env::current_exe()?,
        tell: |what| eprintln!("{what}"),
    };
    let stop = shutdown.stop.cancelled();
    let report = bench::measure(subject, &plan, command_line(), stop).await;
    let report = report.with_context(|| format!("data and logs are in {}", dir.display()))?;
    std::fs::remove_dir_all(&dir).with_context(|| format!("cannot remove {}", dir.display()))?;
    let Some(report) = report else {
        eprintln!("Interrupted; everything that was started is stopped.");
        return Ok(ExitCode::from(INTERRUPTED));
    };
    show(&report, &args)?;
    Ok(if args.check && !report.meets_all() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn show(report: &Report, args: &BenchArgs) -> anyhow::Result<()> {
    if let Some(file) = &args.html {
        let page = html::render(report)?;
        std::fs::write(file, page).with_context(|| format!("cannot write {}", file.display()))?;
    }
    if args.output.json {
        return output::json(report);
    }
    output::print(table::render(report).trim_end())
}

/// As it was typed, but for the folder of the program.
fn command_line() -> String {
    let mut words: Vec<String> = std::env::args().collect();
    if let Some(program) = words.first_mut()
        && let Some(name) = Path::new(program.as_str()).file_name()
    {
        *program = name.to_string_lossy().into_owned();
    }
    words.join(" ")
}
