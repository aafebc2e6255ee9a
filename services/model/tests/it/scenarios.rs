//! One test a scenario, every rule in force.

use std::time::Instant;

use model::laws::Law;
use model::protections::Protections;
use model::scenario::Scenario;
use model::scenarios::{
    ALONE, CORRECTED, DRAINED, EMPTIED, FAILOVER, FORGOTTEN, LAST_UNIT, LETTERS, LIMIT,
    LIMIT_EMPTIED, REPLACED, THERE_AND_BACK,
};
use model::search::{Wrong, search, search_for};
use model::{report, scenarios};

#[track_caller]
fn keeps_the_law_and_always_settles(scenario: &Scenario) {
    let began = Instant::now();
    let outcome = search(scenario, Protections::ALL);
    println!("{}", report::line(scenario, &outcome, began.elapsed().as_secs_f64()));
    if let Some(finding) = &outcome.finding {
        panic!("{}", report::history(scenario, finding));
    }
    assert!(outcome.settled > 1, "a search that settles nothing has seen nothing");
}

#[test]
fn the_last_unit_is_sold_once_whatever_is_lost_or_doubled() {
    keeps_the_law_and_always_settles(&LAST_UNIT);
}

#[test]
fn letters_may_be_parked_replayed_and_discarded() {
    keeps_the_law_and_always_settles(&LETTERS);
}

#[test]
fn nobody_gets_above_the_limit() {
    keeps_the_law_and_always_settles(&LIMIT);
}

#[test]
fn a_key_whose_record_expired_is_not_sold_again() {
    keeps_the_law_and_always_settles(&FORGOTTEN);
}

#[test]
fn an_emptied_redis_is_built_anew_under_way() {
    keeps_the_law_and_always_settles(&EMPTIED);
}

#[test]
fn nobody_gets_above_the_limit_when_redis_forgets_what_they_bought() {
    keeps_the_law_and_always_settles(&LIMIT_EMPTIED);
}

#[test]
fn after_draining_the_books_agree_at_once_and_no_202_is_rejected() {
    keeps_the_law_and_always_settles(&DRAINED);
}

#[test]
fn a_failover_to_earlier_data_is_made_good() {
    keeps_the_law_and_always_settles(&FAILOVER);
}

#[test]
fn a_failover_there_and_back_is_made_good() {
    keeps_the_law_and_always_settles(&THERE_AND_BACK);
}

#[test]
fn an_old_server_that_comes_back_after_a_warm_up_is_made_good() {
    keeps_the_law_and_always_settles(&REPLACED);
}

#[test]
fn corrections_that_stall_and_overlap_correct_once() {
    keeps_the_law_and_always_settles(&CORRECTED);
}

#[test]
fn without_a_reconciler_a_hold_that_nobody_repeats_stays_for_ever() {
    let finding = search(&ALONE, Protections::ALL).finding.expect("a hold that stays");
    assert_eq!(finding.wrong, Wrong::Stuck, "{}", report::history(&ALONE, &finding));
}

/// Why a warm-up waits: undrained, it may sell the unit that a message still in the queue was
/// promised.
#[test]
fn without_draining_a_202_may_be_rejected() {
    let promised = Scenario { promises: true, ..EMPTIED };
    let outcome = search_for(&promised, Protections::ALL, Some(Law::PromiseBroken));
    let finding = outcome.finding.expect("a promise that is broken");
    println!("{}", report::history(&promised, &finding));
}

#[test]
fn scenarios_have_names_of_their_own() {
    let mut names: Vec<_> = scenarios::ALL.iter().map(|scenario| scenario.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), scenarios::ALL.len());
}
