//! Redis is made to agree with the ledger, while it sells and whatever fails meanwhile.

mod freezes;
mod in_flight;
mod late;
mod load;
mod pages;
mod retiring;
mod several;
mod warming;

use std::path::Path;

use shared::domain::{ItemId, Reason, Reservation, Verdict};
use shared::ledger::{Expiry, FindingKind};
use shared::stock::{Bucket, ConfirmReply, RestoreReply, RestoreRequest};
use trials::line::Line;
use trials::reconciling::Reconciling;
use trials::stack::Scratch;
use trials::until::until;

fn only_bucket(item: &ItemId) -> Bucket {
    Bucket { item: item.clone(), number: 0 }
}

/// What was corrected of an item so far, newest first; for a buyer's total with the buyer.
async fn corrections(line: &Line, item: &ItemId) -> Vec<(Option<String>, i64)> {
    let findings = line.ledger.findings(item, 1_000).await.expect("the ledger");
    let corrected = findings.into_iter().map(|(_, finding)| match finding.kind {
        FindingKind::BuyerTotal(buyer) => (Some(buyer.to_string()), finding.corrected),
        FindingKind::Stock | FindingKind::LedgerBehind => (None, finding.corrected),
    });
    corrected.filter(|(_, units)| *units != 0).collect()
}

/// Gives the stock of a hold back that the ledger has not decided, as the compensator does.
async fn give_back(line: &Line, held: &Reservation) {
    let Reservation { request_id, reservation_id, item, epoch, buyer, quantity, .. } = held.clone();
    let expiry = Expiry {
        request_id,
        reservation_id,
        item,
        buyer: buyer.clone(),
        quantity,
        epoch,
        reason: Reason::COMPENSATED,
    };
    line.ledger.expire(&expiry).await.expect("the ledger").expect("an order");
    let verdict = Verdict::Expired(Reason::COMPENSATED);
    let request = RestoreRequest { request_id, reservation_id, buyer, quantity, epoch, verdict };
    let replies = line.stock.restore(&held.item, &[request]).await;
    assert_eq!(replies.expect("Redis"), [RestoreReply::Done]);
}

/// Sells a hold, as a consumer does.
async fn sell(line: &Line, held: &Reservation) {
    line.ledger.commit(std::slice::from_ref(held)).await.expect("decided");
    let replies = line.stock.confirm(&held.item, std::slice::from_ref(held)).await;
    assert_eq!(replies.expect("Redis"), [ConfirmReply::Done]);
}

/// A process that corrects the item and stands still at this point of its work.
pub(crate) async fn stopped_at(line: &Line, item: &ItemId, point: &str) -> (Reconciling, Scratch) {
    let (scratch, program) = (Scratch::create(), Path::new(env!("CARGO_BIN_EXE_trial")));
    let process = Reconciling::start(program, scratch.path(), &line.config, item, point);
    until("it stands still", async || process.stands_still().then_some(())).await;
    (process, scratch)
}

/// Lets a process go on, and says how it ended.
pub(crate) async fn resumed(process: &Reconciling) -> String {
    process.resume();
    until("it ends", async || process.ended()).await
}
