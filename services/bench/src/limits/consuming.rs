//! Consumers on a backlog of one hot item, next to bare inserts into a table like theirs.

use std::time::Instant;

use shared::domain::ItemId;
use uuid::Uuid;

use crate::deployment::Deployment;
use crate::goal::Goal;
use crate::plan::Plan;
use crate::rig::Rig;
use crate::rounds::order;
use crate::section::Section;
use crate::stages::backlog;
use crate::stages::deciding::decide;
use crate::stages::meter::Meter;

/// Rows in a transaction, and connections, of the bare inserts.
const ROWS: u64 = 100;
const CONNECTIONS: u64 = 2;
const RAW: &str = "bare inserts, 100 a transaction, 2 connections";
const CONSUMERS: [u32; 2] = [2, 1];

pub(super) async fn measure(plan: &Plan, rig: &Rig) -> anyhow::Result<Section> {
    let mut section = Section::new(
        "consuming",
        "Deciding purchases",
        "Orders per second that consumers confirm from a backlog of one hot item, until the ledger has \
         confirmed and Redis has settled every one, next to bare inserts into a table with the columns, \
         checks and indexes of `orders`.",
    );
    let count = plan.size(50_000, 1_000);
    for round in 0..plan.rounds {
        plan.tell(format!("consuming, round {} of {}", round + 1, plan.rounds));
        for at in order(round, 1 + CONSUMERS.len()) {
            rig.flush_redis().await?;
            let mut deployment = Deployment::new(plan, rig, 4).await?;
            if at == 0 {
                let meter = Meter::begin(rig, &deployment);
                section.record(RAW, "rows/s", insert_bare(&deployment, count).await?);
                meter.record(&mut section, "bare rows", count);
            } else {
                let consumers = CONSUMERS[at - 1];
                let per_second =
                    consume(rig, &mut deployment, &mut section, count, consumers).await?;
                section.record(&name(consumers), "orders/s", per_second);
            }
            deployment.end().await?;
        }
    }
    let [two, one] = CONSUMERS.map(name);
    section.compare("2 consumers ÷ bare inserts", &two, RAW, Some(Goal::AtLeast(0.5)));
    section.compare("1 consumer ÷ bare inserts", &one, RAW, None);
    section.note(
        "A consumer's rate counts from the first commit that is seen, without the start of its \
         process. Orders of one item are decided one batch after the other, under its row lock, however \
         many consumers there are.",
    );
    Ok(section)
}

fn name(consumers: u32) -> String {
    format!("confirmed and settled, {consumers} consumer{}", if consumers == 1 { "" } else { "s" })
}

async fn consume(
    rig: &Rig,
    deployment: &mut Deployment,
    section: &mut Section,
    count: u64,
    consumers: u32,
) -> anyhow::Result<f64> {
    let item: ItemId = "hot-item".parse()?;
    let layout = deployment.sell(&item, count, Some(1)).await?;
    let items = [(item, layout)];
    let placed = backlog::build(deployment, &items, count).await?;
    let meter = Meter::begin(rig, deployment);
    let decided = decide(deployment, &items, placed, consumers).await?;
    meter.including(deployment, "consumer").record(
        section,
        &format!("orders, {consumers} at work"),
        placed,
    );
    Ok(decided.per_second())
}

/// As many rows as there are elements.
const INSERT: &str = "INSERT INTO bare
    (request_id, reservation_id, item_id, buyer_id, quantity, state, reason, epoch, reserved_at)
    SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::bigint[], $6::text[],
        $7::text[], $8::bigint[], $9::timestamptz[])";

async fn insert_bare(deployment: &Deployment, count: u64) -> anyhow::Result<f64> {
    let item: ItemId = "hot-item".parse()?;
    deployment.put(&item, count, Some(1)).await?;
    let table = "CREATE TABLE bare (LIKE orders INCLUDING ALL)";
    sqlx::query(table).execute(&deployment.database).await?;
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        connections.push(deployment.database.acquire().await?);
    }
    let begun = Instant::now();
    let inserting = connections.into_iter().zip(0..).map(|(mut connection, at): (_, u64)| {
        let item = item.to_string();
        tokio::spawn(async move {
            // A statement alone is a transaction of its own.
            for first in (at * ROWS..count).step_by((CONNECTIONS * ROWS) as usize) {
                let rows = first..(first + ROWS).min(count);
                let number = (rows.end - rows.start) as usize;
                sqlx::query(INSERT)
                    .bind(rows.clone().map(|_| Uuid::new_v4()).collect::<Vec<_>>())
                    .bind(rows.clone().map(|_| Uuid::now_v7()).collect::<Vec<_>>())
                    .bind(vec![item.clone(); number])
                    .bind(rows.map(|row| format!("bq{row:010}")).collect::<Vec<_>>())
                    .bind(vec![1_i64; number])
                    .bind(vec!["confirmed"; number])
                    .bind(vec![None::<String>; number])
                    .bind(vec![1_i64; number])
                    .bind(vec![chrono::Utc::now(); number])
                    .execute(&mut *connection)
                    .await?;
            }
            anyhow::Ok(())
        })
    });
    for inserted in inserting.collect::<Vec<_>>() {
        inserted.await??;
    }
    Ok(count as f64 / begun.elapsed().as_secs_f64())
}
