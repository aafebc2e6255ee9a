//! `trial`: a service or an operator with crash points, the holder of a lock, a correction that can be
//! stopped in the middle, or the soak. Never shipped.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{Parser, ValueEnum};
use shared::config::{Sources, load};
use shared::domain::{BucketCount, ItemId};
use shared::ledger::LetterFilter;
use shared::shutdown::Shutdown;
use trials::desk::Desk;
use trials::holder;
use trials::line::{Line, Service};
use trials::reconciling;
use trials::soak::{Soak, Soaked, usual_dir};

/// Trials of the whole line.
#[derive(Debug, Parser)]
#[command(max_term_width = 100)]
enum Args {
    /// Run one service as `lastunit` does, with crash points compiled in (CRASH_AT=point:times)
    Service(ServiceArgs),
    /// Replay or discard every dead letter, with crash points as above
    Letters {
        #[arg(value_enum)]
        verb: Verb,
    },
    /// Measure work on many dead letters, on the stack that `make up` left running
    LettersBench {
        #[arg(long, default_value_t = 100_000)]
        letters: u64,
    },
    /// Take an item's lock, and tell everybody who connects whether it still has it
    HoldLock(HoldLockArgs),
    /// Correct an item once, and say how that ended (STOP_AT=point:times stands still in between)
    Reconcile(ReconcileArgs),
    /// Divide an item into another number of buckets, with crash points as above
    Rebucket(RebucketArgs),
    /// Measure how long corrections keep buyers waiting, on a private Redis and PostgreSQL
    CorrectionBench {
        /// Holds in flight while the item is corrected
        #[arg(long, default_value_t = 1_000)]
        holds: usize,
        /// Buyers of the item that is compared while Redis is watched
        #[arg(long, default_value_t = 100_000)]
        buyers: usize,
    },
    /// Sell again and again while processes, backends and wires fail, and judge every round
    ///
    /// Exit status 0 only if no round broke a law.
    Soak(SoakArgs),
}

#[derive(Debug, clap::Args)]
struct ServiceArgs {
    service: ServiceName,
    /// When the reconciler first looks at an unfinished hold; less than a deployment may set
    #[arg(long, value_name = "MILLISECONDS")]
    first_look_ms: Option<u32>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ServiceName {
    Ingress,
    Consumer,
    Compensator,
    Reconciler,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Verb {
    Replay,
    Discard,
}

#[derive(Debug, clap::Args)]
struct HoldLockArgs {
    item: ItemId,
    #[arg(long, value_name = "MILLISECONDS")]
    lease_ms: u32,
}

#[derive(Debug, clap::Args)]
struct ReconcileArgs {
    item: ItemId,
}

#[derive(Debug, clap::Args)]
struct RebucketArgs {
    item: ItemId,
    buckets: BucketCount,
}

#[derive(Debug, clap::Args)]
struct SoakArgs {
    #[arg(long, default_value_t = 20)]
    rounds: u64,
    /// Seed of the first round; each further round has the next
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Buyers in each round [default: 60 to 120, by the seed]
    #[arg(long)]
    buyers: Option<u32>,
    /// How long a round's sale lasts, and its faults
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 3_000, value_parser = clap::value_parser!(u32).range(500..))]
    lasts_ms: u32,
    /// When reconcilers first look at an unfinished hold
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 1_000)]
    first_look_ms: u32,
    /// For the backends, and for the logs of rounds that went wrong [default: .lastunit/soak]
    #[arg(long)]
    dir: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(Args::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("trial: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: Args) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let code = match args {
        Args::Service(args) => runtime.block_on(serve(args)),
        Args::Letters { verb } => runtime.block_on(letters(verb)),
        Args::LettersBench { letters } => {
            runtime.block_on(trials::letters_bench::letters_bench(letters));
            Ok(ExitCode::SUCCESS)
        }
        Args::HoldLock(args) => runtime.block_on(hold_lock(args)),
        Args::Reconcile(args) => runtime.block_on(reconcile(args)),
        Args::Rebucket(args) => runtime.block_on(rebucket(args)),
        Args::CorrectionBench { holds, buyers } => {
            runtime.block_on(trials::correction_bench::correction_bench(holds, buyers));
            Ok(ExitCode::SUCCESS)
        }
        Args::Soak(args) => runtime.block_on(soak(args)),
    };
    // Whatever an interrupted soak left running ends here, before this process does.
    runtime.shutdown_timeout(Duration::from_secs(10));
    code
}

async fn serve(args: ServiceArgs) -> anyhow::Result<ExitCode> {
    let environment = std::env::vars().collect();
    let mut config = load(Sources { environment, ..Sources::default() })?;
    shared::telemetry::init(&config.log)?;
    if let Some(first_look_ms) = args.first_look_ms {
        config.redis.first_look_ms = first_look_ms;
    }
    shared::telemetry::expose(&config.metrics).await?;
    let service = match args.service {
        ServiceName::Ingress => Service::Ingress,
        ServiceName::Consumer => Service::Consumer,
        ServiceName::Compensator => Service::Compensator,
        ServiceName::Reconciler => Service::Reconciler,
    };
    let shutdown = Shutdown::on_signals().context("cannot listen for signals")?;
    service.run(&config, shutdown).await.map_err(anyhow::Error::msg)?;
    Ok(ExitCode::SUCCESS)
}

async fn letters(verb: Verb) -> anyhow::Result<ExitCode> {
    let environment = std::env::vars().collect();
    let desk = Desk::with(load(Sources { environment, ..Sources::default() })?);
    let everything = LetterFilter::default();
    match verb {
        Verb::Replay => drop(desk.replay(&everything).await),
        Verb::Discard => drop(desk.discard(&everything, "trial").await),
    }
    Ok(ExitCode::SUCCESS)
}

async fn hold_lock(args: HoldLockArgs) -> anyhow::Result<ExitCode> {
    let environment = std::env::vars().collect();
    let config = load(Sources { environment, ..Sources::default() })?;
    shared::telemetry::init(&config.log)?;
    holder::hold(&config, &args.item, Duration::from_millis(args.lease_ms.into())).await?;
    Ok(ExitCode::SUCCESS)
}

async fn reconcile(args: ReconcileArgs) -> anyhow::Result<ExitCode> {
    let environment = std::env::vars().collect();
    let config = load(Sources { environment, ..Sources::default() })?;
    shared::telemetry::init(&config.log)?;
    println!("{}", reconciling::correct_once(&config, &args.item).await);
    Ok(ExitCode::SUCCESS)
}

async fn rebucket(args: RebucketArgs) -> anyhow::Result<ExitCode> {
    let environment = std::env::vars().collect();
    let config = load(Sources { environment, ..Sources::default() })?;
    shared::telemetry::init(&config.log)?;
    let line = Line::of(config);
    reconciler::rebucket(&line.ledger, &line.stock, &args.item, args.buckets).await?;
    Ok(ExitCode::SUCCESS)
}

async fn soak(args: SoakArgs) -> anyhow::Result<ExitCode> {
    let soak = Soak {
        rounds: args.rounds,
        seed: args.seed,
        buyers: args.buyers,
        lasts: Duration::from_millis(args.lasts_ms.into()),
        first_look: Duration::from_millis(args.first_look_ms.into()),
        program: std::env::current_exe().context("cannot find this program")?,
        dir: args.dir.unwrap_or_else(usual_dir),
    };
    let shutdown = Shutdown::on_signals().context("cannot listen for signals")?;
    Ok(match soak.run(&shutdown).await.map_err(anyhow::Error::msg)? {
        Soaked::Clean => ExitCode::SUCCESS,
        Soaked::Violated(_) | Soaked::Interrupted => ExitCode::FAILURE,
    })
}
