//! A broker that loses queues, is killed, or is out of memory. One private node for all of it: the
//! steps are sentences of their own, each on a namespace of its own.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use shared::config;
use shared::config::limits::PUBLISH_DEADLINE;
use shared::devstack::{RabbitMq, RabbitMqRecipe};
use shared::queue::{PublishOutcome, Queue, Route};
use tokio::time::timeout;

use super::{
    BOUND, Line, ORDERS, ORDERS_QUEUE, bodies, message, nothing_comes, publish, publish_again,
    ready, take,
};
use crate::eventually::eventually;
use crate::scratch::Private;

type Broker = Private<RabbitMqRecipe>;

/// A publish gets its answer within this time, whatever happens: after what the broker has for a
/// window, and a little for the machine.
const ANSWER: Duration = PUBLISH_DEADLINE.saturating_add(Duration::from_millis(1_500));

async fn ctl(broker: &mut Broker, args: &[&str]) -> String {
    let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
    let run =
        move |node: &mut RabbitMq| node.ctl(&args.iter().map(String::as_str).collect::<Vec<_>>());
    broker.blocking(run).await.expect("rabbitmqctl")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_may_lose_queues_be_killed_or_run_out_of_memory() {
    let mut broker = Broker::start().await;
    dead_letters_without_a_queue_are_unroutable_until_it_is_declared_again(&mut broker).await;
    no_message_is_confirmed_that_was_returned(&mut broker).await;
    orders_whose_queue_is_gone_arrive_over_unrouted_and_it_is_declared_again(&mut broker).await;
    a_consumer_of_a_deleted_queue_subscribes_again(&mut broker).await;
    a_consumption_that_the_broker_forgets_begins_again(&mut broker).await;
    a_consumer_that_is_refused_a_queue_comes_back_ever_more_slowly(&broker).await;
    a_queue_with_other_properties_is_refused_by_its_name(&mut broker).await;
    a_silent_broker_answers_nobody_and_everybody_is_told_in_time(&mut broker).await;
    what_was_confirmed_survives_a_kill_and_both_sides_come_back(&mut broker).await;
    a_memory_alarm_blocks_publishing_and_nothing_else(&mut broker).await;
}

async fn dead_letters_without_a_queue_are_unroutable_until_it_is_declared_again(
    broker: &mut Broker,
) {
    let line = Line::at(&broker.backend().url());
    let publisher = line.publisher().await;
    publish(&publisher, Route::Dead, "before").await;
    ctl(broker, &["delete_queue", &line.queue(Queue::Dead)]).await;
    let lost = publisher.publish(message(Route::Dead, "lost")).await;
    assert_eq!(lost, PublishOutcome::Unroutable);
    publish_again(&publisher, Route::Dead, "after").await;
    let mut deliveries = line.consumer(&[Queue::Dead]);
    assert_eq!(bodies(&take(&mut deliveries, 1).await), ["after"]);
}

/// The library may hand the return of one message to the confirm of another.
async fn no_message_is_confirmed_that_was_returned(broker: &mut Broker) {
    let line = Line::at(&broker.backend().url());
    let publisher = line.publisher().await;
    ctl(broker, &["delete_queue", &line.queue(Queue::Compensations)]).await;
    let routes = [ORDERS, Route::Compensations, Route::Dead];
    let messages = (0..60).map(|n| message(routes[n % 3], &n.to_string()));
    let outcomes = join_all(messages.map(|message| publisher.publish(message))).await;
    for (n, outcome) in outcomes.into_iter().enumerate() {
        match (routes[n % 3], outcome) {
            (Route::Compensations, PublishOutcome::Confirmed) => panic!("{n} was dropped"),
            // Some windows may have come after the connection was replaced, or while it was.
            (_, PublishOutcome::Unroutable) if routes[n % 3] != Route::Compensations => {
                panic!("{n} had a queue")
            }
            _ => {}
        }
    }
    publish_again(&publisher, Route::Compensations, "after").await;
    let mut deliveries = line.consumer(&[Queue::Compensations]);
    assert_eq!(bodies(&take(&mut deliveries, 1).await), ["after"]);
}

async fn orders_whose_queue_is_gone_arrive_over_unrouted_and_it_is_declared_again(
    broker: &mut Broker,
) {
    let line = Line::at(&broker.backend().url());
    let publisher = line.publisher().await;
    let mut deliveries = line.consumer(&[Queue::Unrouted]);
    ctl(broker, &["delete_queue", &line.queue(ORDERS_QUEUE)]).await;
    publish(&publisher, ORDERS, "detour").await;
    let came = take(&mut deliveries, 1).await;
    assert_eq!((came[0].queue, bodies(&came)), (Queue::Unrouted, vec!["detour".to_owned()]));
    deliveries.finish(came).await;

    // It was declared before the message was handed on, so the way is open again.
    publish(&publisher, ORDERS, "straight").await;
    let mut orders = line.consumer(&[ORDERS_QUEUE]);
    assert_eq!(bodies(&take(&mut orders, 1).await), ["straight"]);
    nothing_comes(&mut deliveries).await;
}

async fn a_consumer_of_a_deleted_queue_subscribes_again(broker: &mut Broker) {
    let line = Line::at(&broker.backend().url());
    let publisher = line.publisher().await;
    let mut deliveries = line.consumer(&[Queue::Orders(0), ORDERS_QUEUE]);
    publish(&publisher, ORDERS, "before").await;
    let before = take(&mut deliveries, 1).await;
    ctl(broker, &["delete_queue", &line.queue(ORDERS_QUEUE)]).await;
    // The first few may go to `orders.unrouted`; nobody but this consumer declares the queue again.
    let mut sent = 0..;
    eventually("a message comes again", BOUND, async || {
        publish(&publisher, ORDERS, &sent.next().expect("more").to_string()).await;
        timeout(super::SILENCE, deliveries.next_batch(1)).await.ok()
    })
    .await;
    // What was deleted under it is gone, and its ack is a word to a channel that is no more.
    deliveries.finish(before).await;
    publish(&publisher, ORDERS, "after").await;
    take(&mut deliveries, 1).await;
}

/// As it happens when a queue is deleted under an ack and declared again by somebody else at once.
async fn a_consumption_that_the_broker_forgets_begins_again(broker: &mut Broker) {
    let line = Line::at(&broker.backend().url());
    let publisher = line.publisher().await;
    let mut deliveries = line.consumer(&[Queue::Orders(0), ORDERS_QUEUE]);
    publish(&publisher, ORDERS, "before").await;
    let before = take(&mut deliveries, 1).await;
    deliveries.finish(before).await;
    let forget = format!(
        "{{ok, Q}} = rabbit_amqqueue:lookup(rabbit_misc:r(<<\"/\">>, queue, <<\"{}\">>)),
         Cancel = fun(C) -> rabbit_fifo:make_checkout({{element(2, C), element(1, C)}}, cancel, #{{}}) end,
         [{{ok, _, _}} = ra:process_command(amqqueue:get_pid(Q), Cancel(C))
          || C <- rabbit_amqqueue:consumers(Q)].",
        line.queue(ORDERS_QUEUE)
    );
    let forgotten = ctl(broker, &["eval", &forget]).await;
    assert_ne!(forgotten.trim(), "[]", "somebody consumed");
    publish(&publisher, ORDERS, "after").await;
    nothing_comes(&mut deliveries).await;
    // Two checks, five seconds apart, and a new subscription.
    let batch = timeout(2 * BOUND, deliveries.next_batch(1)).await.expect("it comes");
    assert_eq!(bodies(&batch), ["after"]);
}

async fn a_consumer_that_is_refused_a_queue_comes_back_ever_more_slowly(broker: &Broker) {
    let connections = || broker.log().matches("accepting AMQP connection").count();
    let before = connections();
    let line = Line::at(&broker.backend().url());
    // There are two partitions, so nobody declares this queue.
    let mut deliveries = line.consumer(&[Queue::Orders(7)]);
    let came = timeout(Duration::from_secs(2), deliveries.next_batch(1)).await;
    assert!(came.is_err(), "there is no such queue");
    let attempts = connections() - before;
    assert!((2..=10).contains(&attempts), "{attempts} attempts in 2 s");
}

async fn a_queue_with_other_properties_is_refused_by_its_name(broker: &mut Broker) {
    let line = Line::at(&broker.backend().url());
    let declare = || shared::queue::declare(&line.config, &line.namespace, "test");
    declare().await.expect("nothing is there");
    declare().await.expect("the same is there");
    let queue = line.queue(ORDERS_QUEUE);
    ctl(broker, &["delete_queue", &queue]).await;
    let classic = format!(
        "rabbit_amqqueue:declare(rabbit_misc:r(<<\"/\">>, queue, <<\"{queue}\">>), true, false, [],
                                 none, <<\"trial\">>)."
    );
    ctl(broker, &["eval", &classic]).await;
    let error = declare().await.expect_err("a classic queue of this name is there");
    let (what, difference) = error.refusal().expect("it never passes");
    assert_eq!(what, format!("the queue {queue}"));
    assert!(difference.contains("inequivalent arg"), "{difference}");

    let nowhere =
        config::RabbitMq { url: "amqp://127.0.0.1:1".parse().expect("a URL"), ..line.config };
    let away = shared::queue::declare(&nowhere, &line.namespace, "test").await;
    assert_eq!(away.expect_err("nobody listens").refusal(), None, "it may pass");
}

async fn a_silent_broker_answers_nobody_and_everybody_is_told_in_time(broker: &mut Broker) {
    let line = Line::at(&broker.backend().url());
    let publisher = line.publisher().await;
    broker.backend().pause();
    let begun = Instant::now();
    let mut answers = Vec::new();
    // New callers keep coming, also while the connection is being given up.
    for n in 0..60 {
        let publisher = publisher.clone();
        answers.push(tokio::spawn(async move {
            let since = Instant::now();
            let outcome = publisher.publish(message(ORDERS, &n.to_string())).await;
            (outcome, since.elapsed())
        }));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let mut unknown = 0;
    for answer in answers {
        let (outcome, took) = answer.await.expect("no panic");
        assert!(took < ANSWER, "{outcome:?} after {took:?}");
        assert_ne!(outcome, PublishOutcome::Confirmed);
        unknown += usize::from(matches!(outcome, PublishOutcome::Unknown(_)));
    }
    assert!(unknown > 0, "the first were sent");
    let trouble = publisher.trouble().expect("it does not answer");
    assert!(trouble.contains(&line.address()), "{trouble}");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    broker.backend().resume();
    publish_again(&publisher, ORDERS, "after").await;
}

async fn what_was_confirmed_survives_a_kill_and_both_sides_come_back(broker: &mut Broker) {
    let line = Line::at(&broker.backend().url());
    let publisher = line.publisher().await;
    let mut deliveries = line.consumer(&[ORDERS_QUEUE]);
    let names: Vec<String> = (0..100).map(|n| format!("{n:03}")).collect();
    let outcomes = names.iter().map(|name| publisher.publish(message(ORDERS, name)));
    let outcomes = join_all(outcomes).await;
    assert!(outcomes.iter().all(|outcome| *outcome == PublishOutcome::Confirmed));
    let unfinished = take(&mut deliveries, 10).await;
    broker.blocking(|node| node.persist_queue_names()).await.expect("written");

    broker.kill().await;
    let told = || async {
        let trouble = publisher.trouble()?;
        trouble.contains(&line.address()).then_some(trouble)
    };
    eventually("the publisher says that it is away", BOUND, told).await;
    let since = Instant::now();
    let refused = publisher.publish(message(ORDERS, "refused")).await;
    assert!(matches!(refused, PublishOutcome::NotSent(_)), "{refused:?}");
    assert!(since.elapsed() < Duration::from_millis(500));

    broker.restart().await;
    let since = Instant::now();
    ready(&publisher).await;
    publish(&publisher, ORDERS, "after").await;
    // Those that wait here from before the kill are of the old connection; all come again.
    let mut came = std::collections::BTreeSet::new();
    while came.len() < names.len() + 1 {
        let left = BOUND.saturating_sub(since.elapsed());
        let batch = timeout(left, deliveries.next_batch(1_000)).await.expect("all in time");
        came.extend(bodies(&batch));
        deliveries.finish(batch).await;
    }
    assert!(names.iter().all(|name| came.contains(name)) && came.contains("after"));
    // Stale ones are told from the others by their channel, and harm nobody.
    deliveries.finish(unfinished).await;
    publish(&publisher, ORDERS, "last").await;
    let mut last = take(&mut deliveries, 1).await;
    while bodies(&last) != ["last"] {
        deliveries.finish(last).await;
        last = take(&mut deliveries, 1).await;
    }
    deliveries.finish(last).await;
    drop(deliveries);
    nothing_comes(&mut line.consumer(&[ORDERS_QUEUE])).await;
}

async fn a_memory_alarm_blocks_publishing_and_nothing_else(broker: &mut Broker) {
    let line = Line::at(&broker.backend().url());
    let publisher = line.publisher().await;
    let mut deliveries = line.consumer(&[ORDERS_QUEUE]);
    publish(&publisher, ORDERS, "before").await;
    let before = take(&mut deliveries, 1).await;

    ctl(broker, &["set_vm_memory_high_watermark", "0.0001"]).await;
    let (mut confirmed, mut not_sent) = (Vec::new(), Vec::new());
    let mut sent = 0..;
    let trouble = eventually("the publisher tells of the block", BOUND, async || {
        let n: usize = sent.next().expect("more");
        let names: Vec<String> = (0..5).map(|part| format!("{n}-{part}")).collect();
        let since = Instant::now();
        let outcomes = names.iter().map(|name| publisher.publish(message(ORDERS, name)));
        let outcomes = join_all(outcomes).await;
        assert!(since.elapsed() < ANSWER, "{:?}: {outcomes:?}", since.elapsed());
        for (name, outcome) in names.into_iter().zip(outcomes) {
            match outcome {
                PublishOutcome::Confirmed => confirmed.push(name),
                PublishOutcome::NotSent(_) => not_sent.push(name),
                PublishOutcome::Unknown(_) => {}
                PublishOutcome::Unroutable => panic!("{name} had a queue"),
            }
        }
        publisher.trouble().filter(|trouble| trouble.contains("blocks publishing"))
    })
    .await;
    assert!(trouble.contains(&line.address()), "{trouble}");
    let since = Instant::now();
    let refused = publisher.publish(message(ORDERS, "refused")).await;
    assert!(matches!(refused, PublishOutcome::NotSent(_)), "{refused:?}");
    assert!(since.elapsed() < Duration::from_millis(500));

    // Consuming goes on, acks included: the queue gets empty.
    deliveries.finish(before).await;
    let queue = line.queue(ORDERS_QUEUE);
    let mut came = Vec::new();
    while let Ok(batch) = timeout(super::SILENCE, deliveries.next_batch(100)).await {
        came.extend(bodies(&batch));
        deliveries.finish(batch).await;
    }
    let empty = format!("{queue}\t0");
    let deadline = Instant::now() + BOUND;
    while !ctl(broker, &["list_queues", "name", "messages"]).await.lines().any(|l| l == empty) {
        assert!(Instant::now() < deadline, "acks did not arrive during the alarm");
    }

    ctl(broker, &["set_vm_memory_high_watermark", "0.6"]).await;
    ready(&publisher).await;
    publish(&publisher, ORDERS, "after").await;
    confirmed.push("after".to_owned());
    while !came.contains(&"after".to_owned()) {
        let batch = take(&mut deliveries, 1).await;
        came.extend(bodies(&batch));
        deliveries.finish(batch).await;
    }
    assert!(confirmed.iter().all(|name| came.contains(name)), "{confirmed:?}: {came:?}");
    assert!(!not_sent.iter().any(|name| came.contains(name)), "{not_sent:?}: {came:?}");
    assert!(!came.contains(&"refused".to_owned()));
}
