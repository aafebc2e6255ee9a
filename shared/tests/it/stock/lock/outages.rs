//! Redis stays silent, or goes away, under a lock.

use std::time::{Duration, Instant};

use shared::config::limits::REDIS_DEADLINE;
use shared::devstack::RedisRecipe;
use shared::stock::{ItemLock, LockStanding};

use super::{Door, LONG, SOON};
use crate::eventually::eventually;
use crate::scratch::Private;

/// Longer than a call may take, so that a renewal fails while the lease still runs.
const LEASE: Duration = Duration::from_secs(4);

/// Freezes Redis for a time that is the test's claim.
async fn freeze(redis: &Private<RedisRecipe>, time: Duration) {
    redis.backend().pause();
    tokio::time::sleep(time).await;
    redis.backend().resume();
}

/// Waits for the lock, and notes whether the first holder knew that it had lost it.
async fn second(door: &Door, first: &ItemLock) -> (ItemLock, bool) {
    let lock = door.lock(LONG, LONG).await.expect("its turn comes");
    (lock, first.lost().is_cancelled() && first.check().is_err())
}

#[tokio::test]
async fn a_redis_that_is_silent_for_half_a_lease_twice_takes_no_lock_away_unnoticed() {
    let redis = Private::<RedisRecipe>::start().await;
    let door = Door::on(&redis, 0);
    let rival = door.another();
    let first = door.locked(LEASE).await;
    let freezing = async {
        freeze(&redis, LEASE / 2).await;
        freeze(&redis, LEASE / 2).await;
        let settled = async || match door.standing().await {
            LockStanding::Held(now) if now.fence == first.fence() => {
                (now.left > LEASE * 2 / 3).then_some(())
            }
            _ => first.lost().is_cancelled().then_some(()),
        };
        eventually("it is renewed, or known to be lost", LEASE, settled).await;
    };
    let rival = tokio::select! {
        () = freezing => None,
        rival = second(&rival, &first) => Some(rival),
    };
    if let Some((_, knew)) = rival {
        // The machine was too busy to renew it in time.
        assert!(knew, "two holders, and the first does not know");
    } else if first.check().is_ok() {
        assert_eq!(door.holder().await.fence, first.fence());
    }
}

#[tokio::test]
async fn the_end_of_a_lease_is_noticed_in_time_although_renewals_hang() {
    const SHORT: Duration = Duration::from_millis(900);
    let redis = Private::<RedisRecipe>::start().await;
    let door = Door::on(&redis, 0);
    let rival = door.another();
    let first = door.locked(SHORT).await;
    let mut before = SHORT;
    let renewed = async || {
        let left = door.holder().await.left;
        std::mem::replace(&mut before, left).lt(&left).then_some(())
    };
    eventually("it is renewed", SHORT, renewed).await;
    let since = Instant::now();
    redis.backend().pause();
    first.lost().cancelled().await;
    // The next renewal begins a third of the lease later, and gets no reply for so long.
    let hangs = SHORT / 3 + REDIS_DEADLINE;
    assert!(since.elapsed() < hangs - Duration::from_millis(50), "{:?}", since.elapsed());
    let lost = first.check().expect_err("its lease has run out");
    assert!(lost.to_string().contains("ran out"), "{lost}");
    redis.backend().resume();
    let (second, knew) = second(&rival, &first).await;
    assert!(knew && second.fence() > first.fence());
    // Late news of an old renewal do not bring it back.
    first.check().expect_err("lost stays lost");
    second.check().expect("the second has it");
}

#[tokio::test]
async fn a_silence_longer_than_the_lease_ends_the_work_before_another_begins() {
    let redis = Private::<RedisRecipe>::start().await;
    let door = Door::on(&redis, 0);
    let rival = door.another();
    let first = door.locked(LEASE / 4).await;
    let frozen = freeze(&redis, LEASE / 2);
    let (((), (second, knew)), ()) =
        tokio::join!(async { tokio::join!(frozen, second(&rival, &first)) }, async {
            first.lost().cancelled().await
        });
    assert!(knew, "two holders, and the first does not know");
    assert!(second.fence() > first.fence());
}

#[tokio::test]
async fn a_lock_survives_a_redis_that_restarts() {
    let mut redis = Private::<RedisRecipe>::start().await;
    redis.backend().write_before_answering().expect("it obeys");
    let door = Door::on(&redis, 0);
    let first = door.locked(Duration::from_secs(15)).await;
    redis.kill().await;
    let waiting = door.another();
    let refused = waiting.lock(LONG, Duration::from_millis(50)).await.expect_err("nobody answers");
    assert!(refused.to_string().starts_with("cannot reach Redis"), "{refused}");
    redis.restart().await;
    for owner in [&door, &waiting] {
        let works = async || owner.stock.probe().await.ok();
        eventually("Redis is used again", SOON, works).await;
    }
    assert!(waiting.is_busy().await);
    first.check().expect("its lease has not run out, and Redis kept it");
    first.release().await;
    assert!(!door.is_busy().await);
}
