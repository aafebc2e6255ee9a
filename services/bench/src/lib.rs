//! Measures, never asserts: the pipeline against its backends alone, against other designs, and
//! against its own growth. On a private stack on loopback, bounded in count and time.
//!
//! | file | what |
//! |---|---|
//! | [`plan`] | how to measure: rounds, sizes, places |
//! | [`rig`], [`machine`] | a private stack, and what it runs on |
//! | [`deployment`], [`clearing`] | an empty deployment on it, with services as processes of their own |
//! | [`volley`] | a lean load generator |
//! | [`stages`] | steps of the pipeline on their own: taking stock, a backlog, deciding it |
//! | [`cpu`] | seconds of processors that processes took |
//! | [`limits`], [`strategies`], [`scale`] | what is measured; each makes sections |
//! | [`section`], [`spread`], [`goal`], [`rounds`] | figures round by round, their ratios, and goals |
//! | [`report`], [`table`], [`html`] | what a run came to, for people; JSON is made of the same values |
//!
//! This is the only room beside the three windows that talks to Redis, RabbitMQ and PostgreSQL
//! itself: it measures what they do without us.

mod clearing;
pub mod cpu;
pub mod deployment;
pub mod goal;
pub mod html;
pub mod limits;
pub mod machine;
pub mod plan;
mod plot;
pub mod report;
pub mod rig;
pub mod rounds;
pub mod scale;
pub mod section;
pub mod spread;
pub mod stages;
pub mod strategies;
pub mod table;
pub mod volley;

use std::time::Instant;

use anyhow::ensure;
use chrono::{SecondsFormat, Utc};

use crate::plan::Plan;
use crate::report::Report;
use crate::rig::Rig;
use crate::section::Section;

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    Limits,
    Strategies,
    Scale,
}

impl Subject {
    pub fn name(self) -> &'static str {
        match self {
            Self::Limits => "limits",
            Self::Strategies => "strategies",
            Self::Scale => "scale",
        }
    }
}

/// Starts a private stack, measures, and stops it; `None` when it was told to stop first. Everything
/// that was started is gone when it returns: a stack that is just starting is waited for.
pub async fn measure(
    subject: Subject,
    plan: &Plan,
    command: String,
    stop: impl Future<Output = ()>,
) -> anyhow::Result<Option<Report>> {
    let (began, date) = (Instant::now(), Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true));
    let rig = Rig::start(plan).await?;
    let sections = tokio::select! {
        sections = sections(subject, plan, &rig) => sections?,
        () = stop => return Ok(None),
    };
    ensure!(!sections.is_empty(), "{} has no section {:?}", subject.name(), plan.only);
    let machine = rig.machine.clone();
    plan.tell("stopping the backends");
    rig.stop().await?;
    Ok(Some(Report {
        subject: subject.name().to_owned(),
        date,
        command,
        rounds: plan.rounds,
        quick: plan.quick,
        took_s: began.elapsed().as_secs_f64(),
        machine,
        sections,
    }))
}

async fn sections(subject: Subject, plan: &Plan, rig: &Rig) -> anyhow::Result<Vec<Section>> {
    match subject {
        Subject::Limits => limits::run(plan, rig).await,
        Subject::Strategies => strategies::run(plan, rig).await,
        Subject::Scale => scale::run(plan, rig).await,
    }
}
