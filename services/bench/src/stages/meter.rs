//! Whose processors' time a thousand of something took: where the time goes.

use crate::cpu::Watch;
use crate::deployment::Deployment;
use crate::rig::{Rig, Server};
use crate::section::Section;

/// Processes that are watched while something is measured.
pub struct Meter {
    watches: Vec<(&'static str, Watch)>,
}

impl Meter {
    /// Watches the backends, this process, and the services that run.
    pub fn begin(rig: &Rig, deployment: &Deployment) -> Self {
        let watched = [
            ("Redis", rig.pids(Server::Redis)),
            ("RabbitMQ", rig.pids(Server::RabbitMq)),
            ("PostgreSQL", rig.pids(Server::PostgreSql)),
            ("ingress", deployment.pids("ingress")),
            ("consumer", deployment.pids("consumer")),
            ("reconciler", deployment.pids("reconciler")),
        ];
        let watched = watched.into_iter().filter(|(_, pids)| !pids.is_empty());
        let mut watches: Vec<_> = watched.map(|(name, pids)| (name, Watch::begin(pids))).collect();
        watches.push(("bench", Watch::ourselves()));
        Self { watches }
    }

    /// Also counts services that have been started since, from their beginning.
    pub fn including(mut self, deployment: &Deployment, service: &'static str) -> Self {
        self.watches.push((service, Watch::since_start(deployment.pids(service))));
        self
    }

    /// Writes down what each took for a thousand of `count`.
    pub fn record(self, section: &mut Section, what: &str, count: u64) {
        for (name, watch) in self.watches {
            let milliseconds = watch.seconds() * 1e3;
            let per_thousand = milliseconds / (count.max(1) as f64 / 1e3);
            section.record(&format!("CPU for 1,000 {what}: {name}"), "CPU ms", per_thousand);
        }
    }
}
