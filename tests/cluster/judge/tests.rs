//! The models and the checker, on histories written by hand.

use std::collections::BTreeSet;
use std::time::Duration;

use super::models::{
    Bank, BankOp, BankResponse, IdempotencyKey, InitOp, InitResponse, Places, PlacesOp, PlacesResponse, Transaction,
    TransactionOp, TransactionResponse,
};
use super::order::{Fact, Verdict, find_order};

const fn ms(time: u64) -> Duration {
    Duration::from_millis(time)
}

/// Returns an operation with its response; the times of request and response are milliseconds.
fn fact<Op, Ret>(invoked: u64, ended: u64, op: Op, ret: Ret) -> Fact<Op, Ret> {
    Fact { process: 0, op, invoked: ms(invoked), ended: Some((ms(ended), ret)) }
}

/// Returns an operation that never got a response.
fn unknown<Op, Ret>(invoked: u64, op: Op) -> Fact<Op, Ret> {
    Fact { process: 0, op, invoked: ms(invoked), ended: None }
}

#[test]
fn a_transaction_has_one_outcome_that_every_later_poll_returns() {
    use TransactionOp::{Answer, Erase, Poll};
    use TransactionResponse::{Accepted, Conflict, Erased, Missing, Outcome, Pending};
    let verdict = |facts: &[Fact<TransactionOp, TransactionResponse>]| find_order(&Transaction::default(), facts);
    let first_answer_wins =
        [fact(0, 4, Answer(1), Accepted), fact(1, 5, Answer(2), Conflict), fact(2, 6, Poll, Outcome(1))];
    assert_eq!(verdict(&first_answer_wins), Verdict::Ordered);
    assert_eq!(
        verdict(&[fact(0, 4, Answer(1), Accepted), fact(5, 6, Answer(2), Accepted)]),
        Verdict::Impossible(ms(6))
    );
    assert_eq!(verdict(&[fact(0, 4, Answer(1), Accepted), fact(5, 6, Poll, Pending)]), Verdict::Impossible(ms(6)));
    assert_eq!(verdict(&[fact(0, 4, Answer(1), Accepted), fact(3, 6, Poll, Pending)]), Verdict::Ordered);
    // An operation without a response may have happened, or not.
    assert_eq!(verdict(&[unknown(0, Answer(1)), fact(5, 6, Poll, Outcome(1))]), Verdict::Ordered);
    assert_eq!(
        verdict(&[unknown(0, Answer(1)), fact(5, 6, Poll, Pending), fact(7, 8, Poll, Outcome(1))]),
        Verdict::Ordered
    );
    let forgotten = [unknown(0, Answer(1)), fact(5, 6, Poll, Outcome(1)), fact(7, 8, Poll, Pending)];
    assert_eq!(verdict(&forgotten), Verdict::Impossible(ms(8)));
    assert_eq!(
        verdict(&[fact(0, 1, Erase, Erased), fact(2, 3, Poll, Pending), fact(4, 5, Poll, Missing)]),
        Verdict::Ordered
    );
    let outcome_after_erasure =
        [fact(0, 1, Answer(1), Accepted), fact(2, 3, Erase, Erased), fact(4, 5, Poll, Outcome(1))];
    assert_eq!(verdict(&outcome_after_erasure), Verdict::Impossible(ms(5)));
}

#[test]
fn an_idempotency_key_has_one_answer() {
    let verdict = |facts: &[Fact<InitOp, InitResponse>]| find_order(&IdempotencyKey::default(), facts);
    let same_answer = [
        fact(0, 9, InitOp(0), InitResponse::Opened(7)),
        fact(1, 8, InitOp(0), InitResponse::Opened(7)),
        fact(2, 7, InitOp(1), InitResponse::Reused),
    ];
    assert_eq!(verdict(&same_answer), Verdict::Ordered);
    assert_eq!(
        verdict(&[same_answer[0].clone(), fact(10, 11, InitOp(0), InitResponse::Opened(8))]),
        Verdict::Impossible(ms(11))
    );
    assert_eq!(verdict(&[unknown(0, InitOp(1)), fact(2, 3, InitOp(0), InitResponse::Reused)]), Verdict::Ordered);
    assert_eq!(verdict(&[fact(2, 3, InitOp(0), InitResponse::Reused)]), Verdict::Impossible(ms(3)));
}

#[test]
fn a_debit_is_made_once_and_no_balance_is_negative() {
    use BankOp::{Balance, Debit, Grant, Statement};
    let verdict = |facts: &[Fact<BankOp, BankResponse>]| find_order(&Bank::default(), facts);
    let grant = fact(0, 1, Grant(0, 1), BankResponse::Granted(Some(1)));
    let debited_to_zero =
        [grant.clone(), fact(2, 9, Debit(1), BankResponse::Debited), fact(2, 9, Debit(2), BankResponse::Refused)];
    assert_eq!(verdict(&debited_to_zero), Verdict::Ordered);
    let debited_below_zero =
        [grant.clone(), fact(2, 9, Debit(1), BankResponse::Debited), fact(2, 9, Debit(2), BankResponse::Debited)];
    assert_eq!(verdict(&debited_below_zero), Verdict::Impossible(ms(9)));
    let debit_without_cost =
        [grant.clone(), fact(2, 3, Debit(1), BankResponse::Debited), fact(4, 5, Balance, BankResponse::Balance(1))];
    assert_eq!(verdict(&debit_without_cost), Verdict::Impossible(ms(5)));
    let statement_without_debit = [
        grant,
        fact(2, 3, Debit(1), BankResponse::Debited),
        fact(4, 5, Statement, BankResponse::Statement(BTreeSet::from([0]))),
    ];
    assert_eq!(verdict(&statement_without_debit), Verdict::Impossible(ms(5)));
}

#[test]
fn an_event_registers_each_person_once_and_no_more_guests_than_places() {
    use PlacesOp::{ReadEvent, ReadGuests, Register, SetMax};
    let verdict = |facts: &[Fact<PlacesOp, PlacesResponse>]| find_order(&Places::with_max(1), facts);
    let first = fact(0, 5, Register(0, 1), PlacesResponse::Registered);
    assert_eq!(verdict(&[first.clone(), fact(0, 5, Register(1, 2), PlacesResponse::Full)]), Verdict::Ordered);
    assert_eq!(
        verdict(&[first.clone(), fact(0, 5, Register(1, 2), PlacesResponse::Registered)]),
        Verdict::Impossible(ms(5))
    );
    let wider = fact(6, 7, SetMax(7, 2), PlacesResponse::Changed);
    assert_eq!(
        verdict(&[first.clone(), wider.clone(), fact(8, 9, Register(1, 1), PlacesResponse::Registered)]),
        Verdict::Impossible(ms(9))
    );
    assert_eq!(
        verdict(&[first.clone(), wider, fact(8, 9, Register(1, 1), PlacesResponse::Duplicate)]),
        Verdict::Ordered
    );
    assert_eq!(
        verdict(&[first.clone(), fact(6, 7, ReadEvent, PlacesResponse::Counts(0, 1))]),
        Verdict::Impossible(ms(7))
    );
    assert_eq!(
        verdict(&[first, fact(6, 7, ReadGuests, PlacesResponse::Guests(BTreeSet::new()))]),
        Verdict::Impossible(ms(7))
    );
}

/// The history has many concurrent operations, and many without a response.
#[test]
fn a_long_history_is_checked_within_the_search_limit() {
    let verdict = |facts: &[Fact<BankOp, BankResponse>]| find_order(&Bank::default(), facts);
    let mut facts = vec![fact(0, 1, BankOp::Grant(0, 50), BankResponse::Granted(Some(50)))];
    for round in 0..20_u32 {
        let at = u64::from(round) * 100;
        facts.extend(
            (0..4).map(|other| fact(at + 2, at + 50, BankOp::Debit(10 * round + other + 1), BankResponse::Debited)),
        );
        facts.push(unknown(at + 3, BankOp::Grant(10 * round + 9, 2)));
        // Each grant without a response takes effect at once.
        let balance = 50 + 2 * u64::from(round + 1) - 4 * u64::from(round + 1);
        facts.push(fact(at + 60, at + 61, BankOp::Balance, BankResponse::Balance(balance)));
    }
    assert_eq!(verdict(&facts), Verdict::Ordered);
    facts.push(fact(3_000, 3_001, BankOp::Balance, BankResponse::Balance(11)));
    assert_eq!(verdict(&facts), Verdict::Impossible(ms(3_001)));
}
