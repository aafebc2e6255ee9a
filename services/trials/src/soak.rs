//! The soak: round after round of a sale while things go wrong, each with a seed of its own.

use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use shared::shutdown::Shutdown;
use tokio::task::spawn_blocking;

use crate::grounds::Grounds;
use crate::round::{Plan, Report};

/// What to soak, and for how long.
#[derive(Debug, Clone)]
pub struct Soak {
    pub rounds: u64,
    /// Of the first round; each further round has the next.
    pub seed: u64,
    /// Chosen by each round's seed when not said.
    pub buyers: Option<u32>,
    /// How long a round's sale lasts, and its faults.
    pub lasts: Duration,
    pub first_look: Duration,
    /// The binary `trial`, which runs the services.
    pub program: PathBuf,
    /// For the backends, and for the logs of rounds that went wrong.
    pub dir: PathBuf,
}

/// How a soak ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Soaked {
    Clean,
    /// So many rounds went wrong.
    Violated(u64),
    Interrupted,
}

impl Soak {
    /// Runs every round, also after one that went wrong, and tells how each went.
    pub async fn run(&self, shutdown: &Shutdown) -> Result<Soaked, String> {
        let dir = self.dir.join("backends");
        let started = spawn_blocking(move || Grounds::start(&dir));
        let grounds = Arc::new(started.await.map_err(told)?.map_err(told)?);
        let (mut wrong, mut times) = (0, Vec::new());
        for round in 1..=self.rounds {
            let plan = self.plan(self.seed + round - 1);
            println!("round {round} of {}  seed {}", self.rounds, plan.seed);
            plan.faults().iter().for_each(|fault| println!("    {fault}"));
            let begun = Instant::now();
            let report = tokio::select! {
                report = self.round(&plan, &grounds) => report,
                () = shutdown.stop.cancelled() => {
                    println!("interrupted");
                    return Ok(Soaked::Interrupted);
                }
            };
            times.push(begun.elapsed());
            match report {
                Ok(report) if report.violations.is_empty() => {
                    println!("  {report}");
                    let _ = std::fs::remove_dir_all(&plan.dir);
                }
                Ok(report) => {
                    println!("  {report}");
                    self.complain(&plan, &report.violations);
                    wrong += 1;
                }
                Err(panic) => {
                    self.complain(&plan, &[panic]);
                    wrong += 1;
                }
            }
        }
        grounds.does(Grounds::stop).await.map_err(told)?;
        self.sum_up(wrong, &times);
        Ok(if wrong == 0 { Soaked::Clean } else { Soaked::Violated(wrong) })
    }

    /// A round that cannot go on does not end the others.
    async fn round(&self, plan: &Plan, grounds: &Arc<Grounds>) -> Result<Report, String> {
        let _ = std::fs::remove_dir_all(&plan.dir);
        AssertUnwindSafe(plan.run(grounds)).catch_unwind().await.map_err(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
            format!("the round could not go on: {}", text.unwrap_or_default())
        })
    }

    fn plan(&self, seed: u64) -> Plan {
        Plan {
            seed,
            buyers: self.buyers,
            lasts: self.lasts,
            first_look: self.first_look,
            program: self.program.clone(),
            dir: self.dir.join(format!("seed-{seed}")),
        }
    }

    fn complain(&self, plan: &Plan, violations: &[String]) {
        violations.iter().for_each(|violation| println!("  VIOLATION: {violation}"));
        println!("  the services' logs: {}", plan.dir.display());
        println!("  the same faults again: {}", self.replay(plan.seed));
    }

    fn replay(&self, seed: u64) -> String {
        let buyers = self.buyers.map(|buyers| format!(" --buyers {buyers}")).unwrap_or_default();
        format!(
            "cargo run --package trials -- soak --rounds 1 --seed {seed}{buyers} --lasts-ms {} --first-look-ms {}",
            self.lasts.as_millis(),
            self.first_look.as_millis()
        )
    }

    fn sum_up(&self, wrong: u64, times: &[Duration]) {
        let all: Duration = times.iter().sum();
        let mean = all.as_secs_f32() / times.len().max(1) as f32;
        let longest = times.iter().max().map_or(0.0, Duration::as_secs_f32);
        println!(
            "{} rounds, {wrong} with violations; {mean:.1} s a round in the mean, {longest:.1} s the longest",
            times.len()
        );
    }
}

/// Where a soak works when nobody says otherwise.
pub fn usual_dir() -> PathBuf {
    Path::new(".lastunit").join("soak")
}

fn told(error: impl ToString) -> String {
    error.to_string()
}
