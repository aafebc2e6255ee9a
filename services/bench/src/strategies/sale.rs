//! One sale of one contestant, measured: twice as many buyers as units, for a few seconds at the most.

use std::time::Duration;

use anyhow::Context;

use super::contestant::{Contestant, Open};
use super::judge::{Judgement, Told, judge};
use super::observer::Observer;
use crate::cpu;
use crate::plan::Plan;
use crate::rig::{Rig, Server};
use crate::volley::{Fired, Pace, Volley};

/// What is on sale.
pub(super) struct Sale {
    pub(super) items: Vec<String>,
    /// Of each item.
    pub(super) units: u64,
    pub(super) connections: usize,
    /// Whoever is slower than that sells only a part.
    pub(super) limit: Duration,
}

/// What it came to.
pub(super) struct Result {
    /// Per second, while stock lasts.
    pub(super) accepted: f64,
    pub(super) confirmed: f64,
    /// Per second, of an item that is sold out.
    pub(super) refused: f64,
    pub(super) p50: Duration,
    pub(super) p99: Duration,
    /// Requests that were answered with neither yes nor no.
    pub(super) troubled: u64,
    /// Per 1,000 orders.
    pub(super) transactions: f64,
    pub(super) database_cpu: Duration,
    /// Connections that wait for a row, on average.
    pub(super) waiting: f64,
    /// From the last acceptance until every order is final.
    pub(super) converged: Duration,
    pub(super) judgement: Judgement,
}

/// An item that is bought before the sale, so that connections are made and statements prepared, and
/// that is sold out afterwards.
const GONE: &str = "sale-gone";
const GONE_UNITS: u64 = 200;

/// For how long buyers come to a sold out item: they are no part of the sale.
const REFUSING: Duration = Duration::from_secs(1);
const MANY: u64 = 10_000_000;

const ACCEPTED: u16 = 202;
const REFUSED: u16 = 409;

impl Sale {
    /// Names are of one length, as the load generator wants them.
    pub(super) fn of(items: u32, units: u64, connections: usize, limit: Duration) -> Self {
        let items = (0..items).map(|number| format!("sale-{number:04}")).collect();
        Self { items, units, connections, limit }
    }

    pub(super) async fn measure(
        &self,
        contestant: Contestant,
        plan: &Plan,
        rig: &Rig,
    ) -> anyhow::Result<Result> {
        let mut stock: Vec<_> = self.items.iter().map(|item| (item.clone(), self.units)).collect();
        stock.push((GONE.to_owned(), GONE_UNITS));
        let open = contestant.open(plan, rig, &stock).await?;
        let measured = self.measure_open(&open, rig).await;
        let measured = measured.with_context(|| format!("selling by {}", contestant.name()))?;
        open.close().await?;
        Ok(measured)
    }

    async fn measure_open(&self, open: &Open, rig: &Rig) -> anyhow::Result<Result> {
        let gone = [GONE.to_owned()];
        let all: Vec<String> = self.items.iter().chain(&gone).cloned().collect();
        let warming = self.volley(open, &gone, 2 * GONE_UNITS, "w").fire_for(self.limit).await?;
        open.until_final(&gone, warming.count(ACCEPTED).min(GONE_UNITS)).await?;

        let (url, schema) = open.tables();
        let observer = Observer::start(url, schema, &self.items).await?;
        let cpu = cpu::Watch::begin(rig.pids(Server::PostgreSql));
        let requests = 2 * self.units * self.items.len() as u64;
        let fired = self.volley(open, &self.items, requests, "s").fire_for(self.limit).await?;
        let accepted = fired.count(ACCEPTED);
        open.until_final(&self.items, accepted).await?;
        let converged = fired.begun.elapsed().saturating_sub(fired.accepted_for);
        let cpu = cpu.seconds();
        let seen = observer.stop().await?;

        let refusing = self.volley(open, &gone, MANY, "r").fire_for(REFUSING).await?;
        let books = open.books(&all).await?;
        let told = [&warming, &fired, &refusing].into_iter().map(told).fold(
            Told::default(),
            |all, one| Told {
                accepted: all.accepted + one.accepted,
                troubled: all.troubled + one.troubled,
            },
        );
        let per_thousand = 1_000.0 / (accepted.max(1) as f64);
        let selling_for = fired.accepted_for.as_secs_f64().max(f64::EPSILON);
        let (confirming_for, converged) = match open {
            // It answers once the order is in the database.
            Open::Rival { .. } => (selling_for, Duration::ZERO),
            Open::Pipeline(_) => {
                let sold_at = seen.sold_at(accepted).context("not every unit was seen sold")?;
                (sold_at.duration_since(fired.begun).as_secs_f64(), converged)
            }
        };
        let quantile = |at| Duration::from_micros(fired.accepted.value_at_quantile(at));
        Ok(Result {
            accepted: accepted as f64 / selling_for,
            confirmed: accepted as f64 / confirming_for,
            refused: refusing.per_second(REFUSED),
            p50: quantile(0.5),
            p99: quantile(0.99),
            troubled: self::told(&fired).troubled,
            transactions: seen.transactions as f64 * per_thousand,
            database_cpu: Duration::from_secs_f64(cpu.max(0.0) * per_thousand),
            waiting: seen.waiting(),
            converged,
            judgement: judge(&books.items, books.orders, told),
        })
    }

    fn volley(&self, open: &Open, items: &[String], requests: u64, tag: &str) -> Volley {
        Volley {
            address: open.address(),
            items: items.to_vec(),
            connections: self.connections,
            requests,
            pace: Pace::Closed,
            tag: tag.to_owned(),
        }
    }
}

fn told(fired: &Fired) -> Told {
    let accepted = fired.count(ACCEPTED);
    let answered: u64 = fired.statuses.values().sum();
    Told { accepted, troubled: answered - accepted - fired.count(REFUSED) }
}
