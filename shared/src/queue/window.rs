//! One window of publishes: all that waits, at most
//! [`PUBLISH_WINDOW`](crate::config::limits::PUBLISH_WINDOW) messages, goes out together and is
//! confirmed before the next window begins.
//!
//! The library may hand the return of an unroutable message to the confirm of another one that was
//! under way; within a window, returns are matched by message id.

use std::collections::HashSet;
use std::time::Duration;

use lapin::options::BasicPublishOptions;
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Confirmation};
use tokio::time::timeout;
use uuid::Uuid;

use super::connection::Link;
use super::names::{Names, Route};
use super::publisher::{Outgoing, PublishOutcome};
use super::publishing::Waiting;
use crate::config::limits::PUBLISH_DEADLINE;

/// AMQP's delivery mode for messages that survive a restart of the broker.
const PERSISTENT: u8 = 2;

/// Publishes a window and tells everybody what became of their message. An error means that the
/// connection cannot be trusted any more.
pub(super) async fn publish(
    link: &Link,
    names: &Names,
    window: Vec<Waiting>,
) -> Result<(), String> {
    let mut outcomes: Vec<Option<Result<Confirmation, lapin::Error>>> = Vec::new();
    outcomes.resize_with(window.len(), || None);
    let ids: Vec<Uuid> = window.iter().map(|_| Uuid::new_v4()).collect();
    let on_time = timeout(PUBLISH_DEADLINE, async {
        let mut confirms = Vec::with_capacity(window.len());
        for (waiting, id) in window.iter().zip(&ids) {
            confirms.push(send(link, names, &waiting.message, *id).await);
        }
        for (confirm, outcome) in confirms.into_iter().zip(&mut outcomes) {
            *outcome = Some(match confirm {
                Ok(confirm) => confirm.await,
                Err(error) => Err(error),
            });
        }
    })
    .await
    .is_ok();

    let returned: HashSet<Uuid> =
        outcomes.iter().flatten().flatten().filter_map(returned_id).collect();
    let mut trouble = (!on_time).then(|| no_confirm(PUBLISH_DEADLINE));
    let mut dead_letters = 0;
    for ((waiting, id), outcome) in window.into_iter().zip(ids).zip(outcomes) {
        let outcome = match outcome {
            _ if returned.contains(&id) => {
                dead_letters += usize::from(waiting.message.route == Route::Dead);
                PublishOutcome::Unroutable
            }
            Some(Ok(Confirmation::Ack(_))) => PublishOutcome::Confirmed,
            Some(Ok(Confirmation::Nack(_))) => {
                PublishOutcome::Unknown("RabbitMQ refused the message".to_owned())
            }
            Some(Ok(Confirmation::NotRequested)) => {
                PublishOutcome::Unknown("the channel does not confirm".to_owned())
            }
            Some(Err(error)) => {
                let reason = error.to_string();
                trouble.get_or_insert(reason.clone());
                PublishOutcome::Unknown(reason)
            }
            None => PublishOutcome::Unknown(no_confirm(PUBLISH_DEADLINE)),
        };
        let _ = waiting.outcome.send(outcome);
    }
    if dead_letters > 0 {
        tracing::error!(
            letters = dead_letters,
            "the queue of dead letters, or its binding, is gone; it is declared again, and its letters are kept until it takes them"
        );
    }
    if !returned.is_empty() {
        // A queue or a binding is gone: a new connection declares everything again.
        trouble.get_or_insert("a message had no queue to go to".to_owned());
    }
    trouble.map_or(Ok(()), Err)
}

async fn send(
    link: &Link,
    names: &Names,
    message: &Outgoing,
    id: Uuid,
) -> Result<lapin::PublisherConfirm, lapin::Error> {
    let (exchange, key, mandatory) = match message.route {
        // What cannot be routed here goes to the alternate exchange.
        Route::Orders { partition } => (names.reservations(), partition.to_string(), false),
        Route::Compensations => (names.compensations(), String::new(), true),
        Route::Dead => (names.dead(), String::new(), true),
    };
    let mut headers = FieldTable::default();
    for (name, value) in &message.headers {
        headers.insert((*name).into(), AMQPValue::LongString(value.as_str().into()));
    }
    let properties = BasicProperties::default()
        .with_delivery_mode(PERSISTENT)
        .with_content_type("application/json".into())
        .with_message_id(id.to_string().as_str().into())
        .with_headers(headers);
    let options = BasicPublishOptions { mandatory, ..Default::default() };
    link.channel
        .basic_publish(
            exchange.as_str().into(),
            key.as_str().into(),
            options,
            &message.body,
            properties,
        )
        .await
}

fn no_confirm(deadline: Duration) -> String {
    format!("no confirm within {} s", deadline.as_secs())
}

fn returned_id(confirmation: &Confirmation) -> Option<Uuid> {
    let (Confirmation::Ack(Some(returned)) | Confirmation::Nack(Some(returned))) = confirmation
    else {
        return None;
    };
    returned.delivery.properties.message_id().as_ref()?.as_str().parse().ok()
}
