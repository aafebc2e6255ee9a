//! A lock counts only when replicas have it, where that is asked for.

use std::time::Duration;

use shared::devstack::RedisRecipe;
use shared::stock::{LockError, LockStanding};

use super::{Door, LONG, SOON};
use crate::eventually::eventually;
use crate::scratch::Private;

/// A Redis, and another that follows it.
async fn pair() -> (Private<RedisRecipe>, Private<RedisRecipe>) {
    let (leader, follower) =
        tokio::join!(Private::<RedisRecipe>::start(), Private::<RedisRecipe>::start());
    follower.backend().follow(leader.backend()).expect("it obeys");
    (leader, follower)
}

#[tokio::test]
async fn a_lock_that_too_few_replicas_have_is_given_back() {
    let (leader, follower) = pair().await;
    let door = Door::on(&leader, 1);
    let taken = async || door.lock(LONG, Duration::ZERO).await.ok();
    let lock = eventually("the replica follows", SOON, taken).await;
    assert!(door.another().is_busy().await, "one has it, as without replicas");
    lock.check().expect("it is its");
    lock.release().await;
    let LockStanding::Free { fence } = door.standing().await else { panic!("it was released") };

    follower.backend().pause();
    let refused = door.lock(LONG, SOON).await.expect_err("the replica does not answer");
    let LockError::Replicas { wanted, answered, .. } = &refused else { panic!("{refused}") };
    assert_eq!((*wanted, *answered), (1, 0));
    assert!(refused.to_string().contains("redis.replicas"), "{refused}");
    assert_eq!(door.standing().await, LockStanding::Free { fence: fence + 1 }, "given back");

    follower.backend().resume();
    let lock = eventually("the replica is back", SOON, taken).await;
    assert!(lock.fence() > fence + 1, "a fence that was given back is not given again");
    lock.release().await;
}

#[tokio::test]
async fn without_the_replicas_that_are_asked_for_there_is_no_lock() {
    let leader = Private::<RedisRecipe>::start().await;
    let refused = Door::on(&leader, 2).lock(LONG, SOON).await.expect_err("nobody follows");
    assert!(matches!(refused, LockError::Replicas { wanted: 2, answered: 0, .. }), "{refused}");
    let lock = Door::on(&leader, 0).locked(LONG).await;
    lock.release().await;
}
