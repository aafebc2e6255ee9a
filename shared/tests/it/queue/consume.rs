//! Consuming: what is finished is gone, what is not comes again.

use std::time::{Duration, Instant};

use shared::queue::{Deliveries, Queue};

use super::{Line, ORDERS, ORDERS_QUEUE, bodies, nothing_comes, publish, sorted, take};

impl Line {
    /// With these messages in its order queue.
    async fn with(messages: &[&str]) -> Self {
        let line = Self::new().await;
        let publisher = line.publisher().await;
        for body in messages {
            publish(&publisher, ORDERS, body).await;
        }
        line
    }

    /// What is still in the queue once every earlier consumer has gone.
    async fn left(&self, expected: &[&str]) {
        let mut deliveries = self.consumer(&[ORDERS_QUEUE]);
        let came = take(&mut deliveries, expected.len()).await;
        assert_eq!(sorted(&came), expected);
        nothing_comes(&mut deliveries).await;
    }
}

/// Waits until what was acknowledged has arrived, by a message that comes after it.
async fn settle(line: &Line, deliveries: &mut Deliveries) {
    let publisher = line.publisher().await;
    publish(&publisher, ORDERS, "marker").await;
    let marker = take(deliveries, 1).await;
    assert_eq!(bodies(&marker), ["marker"]);
    deliveries.finish(marker).await;
}

#[tokio::test]
async fn a_message_waits_for_a_consumer_that_comes_later() {
    let line = Line::with(&["early"]).await;
    line.left(&["early"]).await;
}

#[tokio::test]
async fn what_is_not_finished_comes_again_to_the_next_consumer() {
    let line = Line::with(&["a", "b", "c"]).await;
    let mut deliveries = line.consumer(&[ORDERS_QUEUE]);
    assert_eq!(bodies(&take(&mut deliveries, 3).await), ["a", "b", "c"]);
    drop(deliveries);
    line.left(&["a", "b", "c"]).await;
}

#[tokio::test]
async fn what_is_finished_does_not_come_again() {
    let line = Line::with(&["a", "b", "c"]).await;
    let mut deliveries = line.consumer(&[ORDERS_QUEUE]);
    let came = take(&mut deliveries, 3).await;
    deliveries.finish(came).await;
    drop(deliveries);
    line.left(&[]).await;
}

#[tokio::test]
async fn finishing_a_later_message_does_not_finish_an_earlier_one() {
    let line = Line::with(&["a", "b", "c", "d"]).await;
    let mut deliveries = line.consumer(&[ORDERS_QUEUE]);
    let mut came = take(&mut deliveries, 4).await;
    let (d, _c, b, a) = (came.pop(), came.pop(), came.pop(), came.pop());
    // a and d are done, b and c are not: only a may be acknowledged.
    deliveries.finish(d.into_iter().chain(a).collect()).await;
    drop(b);
    drop(deliveries);
    line.left(&["b", "c", "d"]).await;
}

#[tokio::test]
async fn finishing_in_any_order_finishes_everything() {
    let line = Line::with(&["a", "b", "c", "d"]).await;
    let mut deliveries = line.consumer(&[ORDERS_QUEUE]);
    let mut came = take(&mut deliveries, 4).await;
    came.swap(0, 3);
    for one in came {
        deliveries.finish(vec![one]).await;
    }
    settle(&line, &mut deliveries).await;
    drop(deliveries);
    line.left(&[]).await;
}

#[tokio::test]
async fn a_message_of_a_later_release_is_left_and_comes_again_after_a_pause() {
    let line = Line::with(&["newer"]).await;
    let mut deliveries = line.consumer(&[ORDERS_QUEUE]);
    let [newer] = take(&mut deliveries, 1).await.try_into().expect("one");
    let since = Instant::now();
    deliveries.leave(newer);
    assert_eq!(bodies(&take(&mut deliveries, 1).await), ["newer"]);
    assert!(since.elapsed() >= Duration::from_millis(900), "it does not spin");
}

/// The ack of a run must not be given to a delivery that was already put back.
#[tokio::test]
async fn what_is_finished_beside_a_message_that_is_left_does_not_come_again() {
    let line = Line::with(&["slow", "newer"]).await;
    let mut deliveries = line.consumer(&[ORDERS_QUEUE]);
    let [slow, newer] = take(&mut deliveries, 2).await.try_into().expect("two");
    deliveries.leave(newer);
    // It has been put back by the time it is here again.
    let again = take(&mut deliveries, 1).await;
    assert_eq!(bodies(&again), ["newer"]);
    deliveries.finish(vec![slow]).await;
    drop(deliveries);
    line.left(&["newer"]).await;
}

#[tokio::test]
async fn leaving_and_finishing_side_by_side_keeps_the_channel() {
    let names: Vec<String> = (0..60).map(|n| format!("{n:02}")).collect();
    let line = Line::with(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let mut deliveries = line.consumer(&[ORDERS_QUEUE]);
    let (mut finish, mut kept) = (Vec::new(), 0);
    for (n, delivery) in take(&mut deliveries, 60).await.into_iter().enumerate() {
        if n % 3 == 0 {
            deliveries.leave(delivery);
            kept += 1;
        } else {
            finish.push(delivery);
        }
    }
    let mut back = Vec::new();
    // Each is finished at about the time when those that were left are put back.
    while let Some(delivery) = finish.pop() {
        deliveries.finish(vec![delivery]).await;
        if finish.len() == 20 {
            back.extend(take(&mut deliveries, 1).await);
        }
    }
    back.extend(take(&mut deliveries, kept - 1).await);
    let expected: Vec<_> = names.iter().step_by(3).cloned().collect();
    assert_eq!(sorted(&back), expected, "no other came: the channel was not lost");
    nothing_comes(&mut deliveries).await;
    deliveries.finish(back).await;
    drop(deliveries);
    line.left(&[]).await;
}

#[tokio::test]
async fn one_consumer_reads_many_queues_and_knows_which() {
    let line = Line::new().await;
    let publisher = line.publisher().await;
    let routes = [(0, "zero"), (1, "one"), (9, "nowhere")];
    for (partition, body) in routes {
        publish(&publisher, shared::queue::Route::Orders { partition }, body).await;
    }
    let queues = [Queue::Orders(0), Queue::Orders(1), Queue::Unrouted];
    let mut deliveries = line.consumer(&queues);
    let mut came = take(&mut deliveries, 3).await;
    came.sort_by_key(|delivery| queues.iter().position(|queue| *queue == delivery.queue));
    assert_eq!(bodies(&came), ["zero", "one", "nowhere"]);
    deliveries.finish(came).await;
    drop(deliveries);
    let mut again = line.consumer(&queues);
    nothing_comes(&mut again).await;
}

#[tokio::test]
async fn a_slow_consumer_holds_no_more_than_its_prefetch() {
    use shared::config::limits::PREFETCH;
    let line = Line::new().await;
    let publisher = line.publisher().await;
    let more = usize::from(PREFETCH) + 50;
    let messages = (0..more).map(|n| super::message(ORDERS, &n.to_string())).collect();
    publisher.publish_all(messages, &tokio_util::sync::CancellationToken::new()).await;
    let mut slow = line.consumer(&[ORDERS_QUEUE]);
    let held = take(&mut slow, PREFETCH.into()).await;
    nothing_comes(&mut slow).await;
    // The rest goes to others.
    let mut other = line.consumer(&[ORDERS_QUEUE]);
    assert_eq!(take(&mut other, 50).await.len(), 50);
    slow.finish(held).await;
}
