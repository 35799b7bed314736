//! The operators' console: its sessions, and grants that a second operator must confirm.
#![allow(missing_docs)] // The name of each function states the property that it checks.

use std::time::Duration;

use sakshi_domain::credits::{CreditMove, EntryKind};
use sakshi_domain::grant_request::{DecisionRefusal, GrantState};
use sakshi_domain::ids::{ClientId, GrantId};
use sakshi_domain::limits::{CONSOLE_SESSION_MAX, GRANT_REQUEST_TTL};
use sakshi_domain::operator::{SignIn, Signatory};

use super::TestStore;
use crate::{ConsoleSession, DecideGrant, DecideGrantOutcome, RequestGrant, RequestGrantOutcome, SessionDigest};

/// Time for which a session may stay unused.
const IDLE: Duration = Duration::from_secs(1_800);
/// Time after which a session ends although it is used.
const LIFETIME: Duration = Duration::from_secs(4_000);
const MOMENT: Duration = Duration::from_millis(1);

/// Returns the operator who signs a request or a decision.
pub(crate) fn signatory(id: &str) -> Signatory {
    Signatory { id: id.to_owned(), name: format!("Planted {id}") }
}

/// Opens a session, requests and confirms a grant, and ends provider sessions.
pub(crate) async fn use_console(test: &impl TestStore) {
    let (store, command) = (test.store(), build_grant_request(signatory("op_1"), 500));
    store.open_console_session(build_session(test, 1)).await.unwrap();
    store.ask_grant(command.clone()).await.unwrap();
    let decided = DecideGrant { id: command.id, by: signatory("op_2"), decision: GrantState::Confirmed };
    assert!(matches!(store.decide_grant(decided).await, Ok(DecideGrantOutcome::Decided(_))));
    store.end_provider_sessions("https://login.example".to_owned(), "asha".to_owned(), test.now()).await.unwrap();
}

/// Builds an operator's request to grant credits, which a second operator must confirm.
pub(crate) fn build_grant_request(by: Signatory, amount: i64) -> RequestGrant {
    let movement = CreditMove { kind: EntryKind::Grant, amount, reference: "planted-invoice".to_owned() };
    RequestGrant { id: "gr_1".parse().unwrap(), client: ClientId::generate(), movement, by }
}

/// Builds a session of the console, identified by a number.
fn build_session(test: &impl TestStore, number: u8) -> ConsoleSession {
    ConsoleSession {
        digest: SessionDigest([number; 32]),
        sign_in: SignIn::Token([number + 100; 32]),
        idle_until: test.now() + IDLE,
        ends_at: test.now() + LIFETIME,
    }
}

pub(crate) async fn use_extends_a_console_session_up_to_its_end(test: &impl TestStore) {
    let (store, first, other) = (test.store(), build_session(test, 1), build_session(test, 2));
    for opened in [&first, &other, &first] {
        store.open_console_session(opened.clone()).await.unwrap();
    }
    assert_eq!(store.load_console_session(first.digest).await, Ok(Some(first.clone())));
    assert_eq!(store.load_session(first.digest).await, Ok(None), "it is not a portal session");
    test.advance(IDLE - MOMENT);
    assert_eq!(store.prolong_console_session(first.digest, test.now() + IDLE).await, Ok(true));
    test.advance(MOMENT);
    assert_eq!(store.load_console_session(other.digest).await, Ok(None));
    assert_eq!(store.prolong_console_session(other.digest, test.now() + IDLE).await, Ok(false));
    test.advance(IDLE - MOMENT - MOMENT);
    assert_eq!(store.prolong_console_session(first.digest, test.now() + IDLE).await, Ok(true));
    assert_eq!(store.load_console_session(first.digest).await.unwrap().unwrap().idle_until, first.ends_at);
    test.advance(first.ends_at.since(test.now()));
    assert_eq!(store.load_console_session(first.digest).await, Ok(None));
}

pub(crate) async fn an_ended_console_session_is_gone_immediately(test: &impl TestStore) {
    let (store, first) = (test.store(), build_session(test, 1));
    store.open_console_session(first.clone()).await.unwrap();
    for _ in 0..2 {
        store.end_console_session(first.digest).await.unwrap();
        assert_eq!(store.load_console_session(first.digest).await, Ok(None));
        assert_eq!(store.prolong_console_session(first.digest, test.now() + IDLE).await, Ok(false));
    }
}

pub(crate) async fn the_end_of_provider_sessions_is_found_by_issuer_and_name(test: &impl TestStore) {
    let (store, now) = (test.store(), test.now());
    let end = |issuer: &str| store.end_provider_sessions(issuer.to_owned(), "asha".to_owned(), now);
    let ended = |issuer: &str, name: &str| store.provider_sessions_ended(issuer.to_owned(), name.to_owned());
    assert_eq!(ended("one", "asha").await, Ok(None));
    end("one").await.unwrap();
    end("one").await.unwrap();
    assert_eq!(ended("one", "asha").await, Ok(Some(now)));
    assert_eq!((ended("one", "ravi").await, ended("two", "asha").await), (Ok(None), Ok(None)));
    test.advance(CONSOLE_SESSION_MAX);
    assert_eq!(ended("one", "asha").await, Ok(None));
}

pub(crate) async fn a_grant_request_is_decided_once_by_a_second_operator(test: &impl TestStore) {
    let (store, command) = (test.store(), build_grant_request(signatory("op_1"), 500));
    let Ok(RequestGrantOutcome::Requested(request)) = store.ask_grant(command.clone()).await else { panic!() };
    assert_eq!(
        (request.state, request.requested_at, request.ends_at),
        (GrantState::Pending, test.now(), test.now() + GRANT_REQUEST_TTL)
    );
    test.advance(MOMENT);
    assert_eq!(
        store.ask_grant(command.clone()).await,
        Ok(RequestGrantOutcome::Requested(request.clone())),
        "a repetition changes nothing"
    );
    let other = RequestGrant { movement: CreditMove { amount: 501, ..command.movement.clone() }, ..command };
    assert_eq!(store.ask_grant(other).await, Ok(RequestGrantOutcome::ReferenceReused));
    assert_eq!(store.grant_requests().await, Ok(vec![request.clone()]));
    let decide = |operator, decision| {
        store.decide_grant(DecideGrant { id: request.id.clone(), by: signatory(operator), decision })
    };
    let refused = Ok(DecideGrantOutcome::Refused(DecisionRefusal::SamePerson));
    assert_eq!(decide("op_1", GrantState::Confirmed).await, refused);
    for operator in ["op_2", "op_3"] {
        let Ok(DecideGrantOutcome::Decided(decided)) = decide(operator, GrantState::Confirmed).await else { panic!() };
        assert_eq!((decided.state, decided.decision), (GrantState::Confirmed, Some((signatory("op_2"), test.now()))));
    }
    let refused = Ok(DecideGrantOutcome::Refused(DecisionRefusal::Decided(GrantState::Confirmed)));
    assert_eq!(decide("op_1", GrantState::Refused).await, refused);
}

pub(crate) async fn an_undecided_grant_request_expires_and_can_be_made_again(test: &impl TestStore) {
    let (store, command) = (test.store(), build_grant_request(signatory("op_1"), 500));
    let Ok(RequestGrantOutcome::Requested(request)) = store.ask_grant(command.clone()).await else { panic!() };
    test.advance(GRANT_REQUEST_TTL);
    let command_to_decide = DecideGrant { id: request.id, by: signatory("op_2"), decision: GrantState::Confirmed };
    assert_eq!(store.decide_grant(command_to_decide.clone()).await, Ok(DecideGrantOutcome::NotFound));
    assert_eq!(store.grant_requests().await, Ok(vec![]));
    let Ok(RequestGrantOutcome::Requested(second)) =
        store.ask_grant(RequestGrant { by: signatory("op_2"), ..command }).await
    else {
        panic!()
    };
    assert_eq!((second.requested_by, second.requested_at), (signatory("op_2"), test.now()));
    assert_eq!(store.grant_requests().await.unwrap().len(), 1);
    let unknown = DecideGrant { id: GrantId::generate(), ..command_to_decide };
    assert_eq!(store.decide_grant(unknown).await, Ok(DecideGrantOutcome::NotFound));
}
