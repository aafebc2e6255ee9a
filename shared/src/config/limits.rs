//! Every bound, its reason, and how the bounds relate. Nothing waits, grows or repeats without one.

use std::time::Duration;

use crate::domain::DrainLimits;

/// Requests in one call of `reserve`: 64–128 is where a script call stops getting cheaper per
/// request, and stays far below a millisecond, during which Redis serves nobody else.
pub const RESERVE_BATCH: usize = 128;

/// How long after units have left one bucket they may still come to another: many times what it takes,
/// so that only transfers that nobody works on any more are given back.
pub const TRANSFER_DEADLINE: Duration = Duration::from_secs(10);

/// How long it is remembered whether the units of a transfer came: longer than anything that may
/// repeat the question.
pub const TRANSFER_RETENTION: Duration = Duration::from_secs(24 * 60 * 60);

/// Unfinished transfers of a bucket that are read at once.
pub const TRANSFER_BATCH: usize = 100;

/// Purchases whose home buckets are short, and for which stock is gathered at once.
pub const GATHER_BATCH: usize = 512;

/// How often stock is gathered for a purchase that keeps missing it, before its buyer is told to come
/// back.
pub const GATHER_PASSES: usize = 3;

/// How long ingress remembers that fewer units are left than were asked for, before it looks into all
/// buckets again. Units that come back are on sale so much later at the most.
pub const FEWER_LEFT_KEPT: Duration = Duration::from_millis(100);

/// How long changing the layout of an item waits for holds that are not settled, while its buyers see
/// it frozen: consumers that keep up need some tens of milliseconds.
pub const HOLDS_SETTLED_WAIT: Duration = Duration::from_secs(2);

/// Reservations in one message: enough to spread the cost of a confirm, small enough (about
/// 20 kB) to be one frame.
pub const PUBLISH_BATCH: usize = 64;

/// Reservations of one partition that are published at once, in as many messages as it takes: a
/// message that waits for the confirm of the one before it would make a hot item's buyers wait.
pub const PUBLISH_TURN: usize = 16 * PUBLISH_BATCH;

/// Messages in one window of a publisher: all are confirmed before the next window begins.
pub const PUBLISH_WINDOW: usize = 64;

/// Messages that wait for a publisher; more are refused.
pub const PUBLISH_WAITING: usize = 1_024;

/// Messages that a service takes from its queues at once.
pub const DELIVERY_BATCH: usize = 64;

/// Messages that a consumer has read while a transaction is under way: from these comes the next one.
/// As many as a queue has in hand, so that even messages of one reservation make a good batch.
pub const TAKEN_WAITING: usize = 256;

/// Reservations in one transaction of a consumer. What a transaction costs besides its rows is little
/// by then, and the row locks are held for some milliseconds.
pub const COMMIT_BATCH: usize = 500;

/// Transactions of a consumer that are under way: while one holds its rows, the next is sent as far as
/// the lock. More would only wait behind it.
pub const COMMITS_AT_ONCE: usize = 2;

/// Transactions of a consumer that wait for Redis to hear of them, and are settled together. When Redis
/// is away, so many are acknowledged after each [`SETTLE_DEADLINE`].
pub const COMMITTED_WAITING: usize = 8;

/// Winners of a consumer are told to Redis in parts, side by side: groups of items, and of a group so
/// many at once. Redis then has the next call while it answers the last; smaller parts cost it more.
pub const SETTLE_GROUPS: u16 = 16;
pub const SETTLE_PART: usize = 128;

/// A busy consumer begins no more than one transaction in so long, unless it is full: a transaction
/// costs the ledger some hundred times what an order in it does, and nobody waits for it. After a pause
/// the first one begins at once.
pub const COMMIT_PACE: Duration = Duration::from_millis(10);

/// Requests in one call of a script that settles or warms; no script may touch more than 500.
pub const SETTLE_BATCH: usize = 256;

/// Orders that a warm-up reads from the ledger at a time, at about 0.5 kB each.
pub const WARM_PAGE: usize = 4_096;

/// Purchases that wait in one ingress, at about 1 kB each; more are told to come back.
pub const PURCHASES_WAITING: usize = 50_000;

/// Messages that a consumer holds unacknowledged per queue.
pub const PREFETCH: u16 = 256;

/// How long a script may keep its caller waiting. After it, the outcome is unknown.
pub const REDIS_DEADLINE: Duration = Duration::from_secs(1);

/// How long a publish may wait for the broker's confirm. After it, the outcome is unknown.
pub const PUBLISH_DEADLINE: Duration = Duration::from_secs(2);

/// How long any connection attempt may take.
pub const CONNECT_DEADLINE: Duration = Duration::from_secs(2);

/// How long declaring queues, or subscribing to them, may take. A broker that has just started first
/// elects a leader for each of them; one that hangs is left.
pub const TOPOLOGY_DEADLINE: Duration = Duration::from_secs(10);

/// How long the ledger lets one statement run, or wait for a lock.
pub const STATEMENT_TIMEOUT: Duration = Duration::from_secs(5);
pub const LOCK_TIMEOUT: Duration = Duration::from_secs(3);

/// How long a caller waits for a free connection to the ledger.
pub const LEDGER_ACQUIRE_DEADLINE: Duration = Duration::from_secs(2);

/// How long after its last use a connection to the ledger is used again without a ping. A ledger that
/// restarts within that moment costs the next call an error, as it costs those under way.
pub const LEDGER_TRUSTED: Duration = Duration::from_secs(1);

/// AMQP heartbeat; a silent broker is given up after twice as long.
pub const AMQP_HEARTBEAT_SECONDS: u16 = 4;

/// The least that `redis.first_look_ms` may be: nobody can still be working on a hold then.
pub const LEAST_FIRST_LOOK: Duration = Duration::from_secs(10);

/// The longest pause between two looks at an unfinished hold.
pub const LONGEST_LOOK_PAUSE: Duration = Duration::from_secs(10 * 60);

/// Overdue holds that a reconciler takes at once.
pub const CLAIM_BATCH: usize = 100;

/// How often the reconciler goes round all items: overdue holds, new terms, items to warm up.
pub const RECONCILE_ROUND: Duration = Duration::from_secs(1);

/// How often the reconciler compares the items that have changed since with the ledger, and how
/// often all of them.
pub const COMPARE_CHANGED: Duration = Duration::from_secs(60);
pub const COMPARE_ALL: Duration = Duration::from_secs(60 * 60);

/// What is read again of the changes before the last comparison: no transaction lasts that long.
pub const COMPARE_OVERLAP: Duration = Duration::from_secs(30);

/// Holds, and totals of buyers, in one call of a script: each costs it two values or more, and no
/// script may touch more than 1,000.
pub const HOLDS_PAGE: usize = 250;
pub const TOTALS_PAGE: usize = 400;

/// Holds of an item that is compared: reading and judging so many takes a few hundredths of a
/// second, during which the item is frozen. One that holds more is compared later.
pub const HOLDS_COMPARED: usize = 5_000;

/// The same for an item that nobody can reserve, because Redis has restarted or failed over.
pub const HOLDS_RECOVERED: usize = 200_000;

/// Lease of the item lock, and of the freeze, while an item is compared and corrected: a reconciler
/// that dies in the middle keeps buyers waiting no longer.
pub const CORRECTION_LEASE: Duration = Duration::from_secs(5);

/// How long ingress lets buyers wait while an item is frozen.
pub const FROZEN_WAIT: Duration = Duration::from_millis(200);

/// How long a lost item waits until what was reserved earlier is decided: a purchase waits behind one
/// message and then for its own; one statement of a consumer may take as long as the ledger lets it.
/// The ledger decides in any case; waiting only spares buyers a refusal.
pub const DRAIN: DrainLimits = DrainLimits {
    published_after: Duration::from_secs(4 * PUBLISH_DEADLINE.as_secs()),
    quiet_for: Duration::from_secs(6),
    patience: Duration::from_secs(40),
};

/// How long an ack waits for Redis to hear of winners, and for the broker to take compensations.
/// After it, the ledger's decision and the hold are the record, and the reconciler finishes them.
pub const SETTLE_DEADLINE: Duration = Duration::from_secs(5);

/// Reservations that a consumer may park in a row. More means that not they are wrong, but the
/// schema or this release, and consuming on would empty the queue into the dead letters.
pub const PARKED_IN_A_ROW: u32 = 20;

/// How often the reconciler looks after the letters that it keeps.
pub const LETTERS_ROUND: Duration = Duration::from_secs(60);

/// How long a run of a command has a dead letter for itself after it took it; a run that was killed
/// holds up the next one for so long.
pub const LETTER_LEASE: Duration = Duration::from_secs(15);

/// How long a replay waits for the broker to confirm what it took at once.
pub const LETTER_SEND_DEADLINE: Duration = Duration::from_secs(10);
/// How long a lock of an item lasts unless it is renewed, which happens three times as often. Work
/// under it survives a Redis that is replaced or stays silent for some seconds; after a holder that
/// died, the item waits as long.
pub const LOCK_LEASE: Duration = Duration::from_secs(30);

/// How long a caller waits for an item's lock: longer than any work under it usually takes, short
/// enough that a round of many items does not stand still for one.
pub const LOCK_WAIT: Duration = Duration::from_secs(2);

/// How often a waiting caller asks for the lock, give or take a quarter: an item has few callers.
pub const LOCK_POLL: Duration = Duration::from_millis(20);

/// How long a waiting caller that does not ask again keeps its place in the queue. Many times the
/// poll, so that a busy machine costs nobody the place; less than the usual wait, because nobody
/// behind a caller that died gets the lock before.
pub const LOCK_PRESENCE: Duration = Duration::from_secs(1);

/// Callers that have a place in the queue for one lock. More find it busy until a place is free.
pub const LOCK_PLACES: usize = 64;

/// How long replicas may take to have a lock.
pub const REPLICATION_DEADLINE: Duration = Duration::from_millis(500);

/// How long a settled record outlives its sale, so that late repeats find their answer.
pub const RECORD_RETENTION: Duration = Duration::from_secs(24 * 60 * 60);

/// How often ingress reads the catalog.
pub const CATALOG_REFRESH: Duration = Duration::from_millis(500);

/// How often a reconciler tells the ledger that it sees the store.
pub const STORE_SEEN_EVERY: Duration = Duration::from_secs(5);

/// For how long nobody may have seen a store until another may take its place.
pub const STORE_UNSEEN: Duration = Duration::from_secs(20);

/// How long the numbers of an item are shown after the reconciler last looked at it: longer than the
/// longest pause between two looks, so that only items that have left Redis are forgotten.
pub const NUMBERS_KEPT: Duration = Duration::from_secs(2 * 60 * 60);

/// The largest body of a purchase request; a good one has some 20 bytes.
pub const BODY_BYTES: usize = 4 * 1024;

/// How long a stopping service finishes what it has begun. Fits into the 30 s after which
/// orchestrators kill, with room to spare.
pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(15);

/// What `Retry-After` says on a 503.
pub const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Redelivery limit of our queues. Killed consumers must never push healthy messages into the dead
/// letters (RabbitMQ 4 would give up after 20).
pub const DELIVERY_LIMIT: i64 = 1_000_000_000;

/// The longest that ingress works on a purchase: it asks Redis twice, waits behind the previous
/// message of the partition, and then for its own; a message that has waited for a deadline is not
/// begun, and one that is begun takes a deadline at the most.
const LONGEST_PURCHASE: u128 =
    2 * REDIS_DEADLINE.as_millis() + 2 * (2 * PUBLISH_DEADLINE.as_millis());

const _: () = assert!(
    LONGEST_PURCHASE <= LEAST_FIRST_LOOK.as_millis(),
    "the reconciler must not look at holds that ingress still works on"
);
const _: () = assert!(
    LONGEST_PURCHASE < SHUTDOWN_GRACE.as_millis(),
    "a stopping ingress must be able to answer what it has accepted"
);
const _: () = assert!(
    LETTER_SEND_DEADLINE.as_millis() < LETTER_LEASE.as_millis(),
    "no letter is sent by two runs at the same time"
);
const _: () = assert!(
    DRAIN.quiet_for.as_millis() > STATEMENT_TIMEOUT.as_millis()
        && DRAIN.patience.as_millis()
            > DRAIN.published_after.as_millis() + DRAIN.quiet_for.as_millis(),
    "patience must not run out while a consumer may still be at work"
);
const _: () = assert!(
    HOLDS_PAGE * 4 <= 1_000 && TOTALS_PAGE * 2 <= 1_000,
    "no script touches more than 1,000 values"
);
const _: () = assert!(
    4 * REDIS_DEADLINE.as_millis() < LOCK_LEASE.as_millis() / 3 * 2,
    "a lease must outlast renewals that get no reply"
);
const _: () = assert!(
    REPLICATION_DEADLINE.as_millis() < REDIS_DEADLINE.as_millis(),
    "Redis must answer for its replicas before its caller stops listening"
);
const _: () = assert!(
    STORE_SEEN_EVERY.as_millis()
        + REDIS_DEADLINE.as_millis()
        + 2 * (LEDGER_ACQUIRE_DEADLINE.as_millis() + STATEMENT_TIMEOUT.as_millis())
        <= STORE_UNSEEN.as_millis(),
    "one slow look at a store that is there must not make it look lost"
);
const _: () = assert!(
    PUBLISH_BATCH <= COMMIT_BATCH && TAKEN_WAITING <= PREFETCH as usize,
    "a transaction has room for a message, and a consumer for what it has read"
);
const _: () =
    assert!(SETTLE_PART <= SETTLE_BATCH, "a part of what is settled is one call of a script");
const _: () = assert!(
    RESERVE_BATCH <= 500 && SETTLE_BATCH <= 500 && DELIVERY_BATCH <= SETTLE_BATCH,
    "no script touches more than 500"
);
