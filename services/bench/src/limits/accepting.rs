//! Accepted purchases, next to publishing one message for each of them without us.

use std::collections::VecDeque;
use std::time::{Instant, SystemTime};

use anyhow::{Context, ensure};
use lapin::options::{
    BasicPublishOptions, ConfirmSelectOptions, QueueDeclareOptions, QueueDeleteOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Confirmation, Connection, ConnectionProperties, PublisherConfirm};
use shared::contract::{ReservationsPlaced, encode_reservations};
use shared::domain::{ItemId, Reservation, UnixMillis};
use shared::stock::ReserveRequest;
use uuid::Uuid;

use crate::deployment::Deployment;
use crate::goal::Goal;
use crate::plan::Plan;
use crate::rig::Rig;
use crate::rounds::order;
use crate::section::Section;
use crate::stages::meter::Meter;
use crate::stages::taking::requests;
use crate::volley::{Pace, Volley};

/// Purchases, or messages, whose confirm is waited for.
const UNDER_WAY: usize = 1_000;
const RAW: &str = "raw publishing, one reservation a message";
const ACCEPTED: &str = "accepted over HTTP";

pub(super) async fn measure(plan: &Plan, rig: &Rig) -> anyhow::Result<Section> {
    let mut section = Section::new(
        "accepting",
        "Accepting purchases",
        "Purchases per second that ingress answers with 202, after the broker's confirm, on 1,000 \
         keep-alive connections, next to a bare client that publishes one reservation a message to one \
         quorum queue with 1,000 confirms outstanding; no consumer runs.",
    );
    let count = plan.size(60_000, 1_000);
    for round in 0..plan.rounds {
        plan.tell(format!("accepting, round {} of {}", round + 1, plan.rounds));
        rig.flush_redis().await?;
        // Queues of its own in each round, so that none grows from round to round.
        let mut deployment = Deployment::new(plan, rig, 4).await?;
        let item: ItemId = "hot-item".parse()?;
        deployment.sell(&item, count, Some(1)).await?;
        deployment.start("ingress").await?;
        deployment.until_known(&item).await?;
        for at in order(round, 2) {
            let meter = Meter::begin(rig, &deployment);
            if at == 0 {
                let per_second = publish_raw(&deployment, &item, count).await?;
                section.record(RAW, "messages/s", per_second);
                meter.record(&mut section, "raw messages", count);
            } else {
                let volley = Volley {
                    address: deployment.address(),
                    items: vec![item.to_string()],
                    connections: UNDER_WAY.min(count as usize),
                    requests: count,
                    pace: Pace::Closed,
                    tag: "a".to_owned(),
                };
                let fired = volley.fire().await?.all(202)?;
                section.record(ACCEPTED, "purchases/s", fired.per_second(202));
                meter.record(&mut section, "accepted", count);
            }
        }
        deployment.end().await?;
    }
    section.compare("accepted ÷ raw publishing", ACCEPTED, RAW, Some(Goal::AtLeast(1.0)));
    Ok(section)
}

/// One task owns the channel; the oldest confirm is waited for whenever enough are outstanding.
async fn publish_raw(deployment: &Deployment, item: &ItemId, count: u64) -> anyhow::Result<f64> {
    let bodies = bodies(deployment, item, count)?;
    let url = deployment.config.rabbitmq.url.expose();
    let connection = Connection::connect(url, ConnectionProperties::default()).await?;
    let channel = connection.create_channel().await?;
    channel.confirm_select(ConfirmSelectOptions::default()).await?;
    let queue = format!("{}.raw", deployment.config.namespace);
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), AMQPValue::LongString("quorum".into()));
    let durable = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
    channel.queue_declare(queue.as_str().into(), durable, arguments).await?;

    let begun = Instant::now();
    let mut outstanding = VecDeque::with_capacity(UNDER_WAY);
    for body in &bodies {
        if outstanding.len() == UNDER_WAY {
            confirmed(outstanding.pop_front()).await?;
        }
        let properties = BasicProperties::default()
            .with_delivery_mode(PERSISTENT)
            .with_content_type("application/json".into())
            .with_message_id(Uuid::new_v4().to_string().as_str().into());
        let options = BasicPublishOptions::default();
        let publish =
            channel.basic_publish("".into(), queue.as_str().into(), options, body, properties);
        outstanding.push_back(publish.await?);
    }
    while !outstanding.is_empty() {
        confirmed(outstanding.pop_front()).await?;
    }
    let took = begun.elapsed();
    channel.queue_delete(queue.as_str().into(), QueueDeleteOptions::default()).await?;
    connection.close(200, "done".into()).await?;
    Ok(count as f64 / took.as_secs_f64())
}

/// AMQP's delivery mode for messages that survive a restart of the broker.
const PERSISTENT: u8 = 2;

async fn confirmed(confirm: Option<PublisherConfirm>) -> anyhow::Result<()> {
    let confirm = confirm.context("a confirm is outstanding")?.await?;
    ensure!(matches!(confirm, Confirmation::Ack(None)), "the broker did not take a message");
    Ok(())
}

/// The same bodies as ingress writes, but for one reservation each.
fn bodies(deployment: &Deployment, item: &ItemId, count: u64) -> anyhow::Result<Vec<Vec<u8>>> {
    let environment = deployment.environment;
    let body = |request: ReserveRequest| {
        let reservation = Reservation {
            request_id: request.request_id,
            reservation_id: request.reservation_id,
            item: item.clone(),
            epoch: 1,
            buyer: request.buyer,
            quantity: request.quantity,
            reserved_at: UnixMillis::from(SystemTime::now()),
        };
        encode_reservations(&ReservationsPlaced { environment, reservations: vec![reservation] })
    };
    Ok(requests(item, "p", count)?.into_iter().map(body).collect())
}
