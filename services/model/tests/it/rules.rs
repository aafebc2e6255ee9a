//! One test a rule: what goes wrong without it.

use model::protections::Protection::{self, *};
use model::protections::Protections;
use model::scenarios::DRAINED;
use model::search::search;
use model::{report, shown};

#[track_caller]
fn is_shown(without: &[Protection]) {
    let shown = shown::ALL.iter().find(|shown| shown.without == without).expect("a history");
    let finding = shown.search().finding.expect("without the rule, something goes wrong");
    println!("{}", report::history(shown.scenario, &finding));
    assert_eq!(finding.wrong, shown.wrong);
}

#[test]
fn without_expire_before_restore_a_unit_is_sold_twice() {
    is_shown(&[ExpireBeforeRestore]);
}

#[test]
fn without_the_tombstone_test_a_late_message_sells_a_restored_unit() {
    is_shown(&[TombstoneTest]);
}

#[test]
fn without_the_hold_staying_an_unknown_publish_sells_a_restored_unit() {
    is_shown(&[HoldStaysOnUnknown]);
}

#[test]
fn without_the_stored_reservation_id_a_unit_is_sold_that_nobody_took() {
    is_shown(&[RepublishStoredId]);
}

#[test]
fn without_the_state_held_a_reservation_gives_its_units_back_twice() {
    is_shown(&[RestoreOnlyHeld]);
}

#[test]
fn without_surplus_a_second_reservation_is_confirmed_and_its_unit_lost() {
    is_shown(&[SurplusIsNotRepeated]);
}

#[test]
fn without_surplus_one_request_is_sold_twice() {
    is_shown(&[SurplusIsNotNew]);
}

#[test]
fn without_comparing_ids_the_reconciler_confirms_a_second_reservation() {
    is_shown(&[ReconcilerComparesIds]);
}

#[test]
fn without_waiting_for_the_confirm_a_replayed_202_is_lost_with_redis() {
    is_shown(&[ReplayAfterConfirm]);
}

#[test]
fn without_a_difference_a_correction_overwrites_what_settled_meanwhile() {
    is_shown(&[CorrectByDifference]);
}

#[test]
fn without_a_lasting_freeze_a_late_correction_is_applied_twice() {
    is_shown(&[CorrectUnderFreeze]);
}

#[test]
fn without_reading_redis_first_a_correction_counts_a_sale_twice() {
    is_shown(&[RedisBeforeLedger]);
}

#[test]
fn without_the_refusal_a_discard_gives_back_what_is_sold() {
    is_shown(&[CompensatorRefuses]);
}

#[test]
fn without_ids_in_restore_an_old_claim_gives_back_another_reservation() {
    is_shown(&[RestoreComparesIds]);
}

#[test]
fn without_ids_in_confirm_an_old_claim_confirms_another_reservation() {
    is_shown(&[ConfirmComparesIds]);
}

#[test]
fn without_the_judgement_of_stock_a_lost_redis_oversells() {
    is_shown(&[LedgerJudgesStock]);
}

#[test]
fn without_the_judgement_of_the_limit_a_lost_redis_lets_a_buyer_above_it() {
    is_shown(&[LedgerJudgesLimit]);
}

#[test]
fn without_looks_that_settle_a_skipped_confirm_stays_for_ever() {
    is_shown(&[LookSettles]);
}

/// Each of the two finishes what the other leaves; alone, either may be missing in this world.
#[test]
fn without_the_consumers_follow_up_and_the_reconcilers_a_decided_hold_stays_for_ever() {
    is_shown(&[DuplicateRepeats, LookSettles]);
    for one in [DuplicateRepeats, LookSettles] {
        assert!(search(&DRAINED, Protections::ALL.without(one)).finding.is_none(), "{one}");
    }
}
