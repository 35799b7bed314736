//! The operators' console: sessions that end, and grants that two people decide.
#![allow(missing_docs)] // Each name is the sentence that the property states.

use std::time::Duration;

use sakshi_domain::credits::{CreditMove, EntryKind};
use sakshi_domain::grant_request::{DecisionRefusal, GrantState};
use sakshi_domain::ids::{ClientId, GrantId};
use sakshi_domain::limits::{CONSOLE_SESSION_MAX, GRANT_REQUEST_TTL};
use sakshi_domain::operator::{SignIn, Signatory};

use super::TestStore;
use crate::{AskGrant, AskGrantOutcome, ConsoleSession, DecideGrant, DecideGrantOutcome, SessionDigest};

const IDLE: Duration = Duration::from_secs(1_800);
const LIFETIME: Duration = Duration::from_secs(4_000);
const MOMENT: Duration = Duration::from_millis(1);

fn by(id: &str) -> Signatory {
    Signatory { id: id.to_owned(), name: format!("Planted {id}") }
}

/// Opens a session, and makes a grant that is decided.
pub(crate) async fn used(test: &impl TestStore) {
    let (store, asked) = (test.store(), asked(by("op_1"), 500));
    store.open_console_session(session(test, 1)).await.unwrap();
    store.ask_grant(asked.clone()).await.unwrap();
    let decided = DecideGrant { id: asked.id, by: by("op_2"), decision: GrantState::Confirmed };
    assert!(matches!(store.decide_grant(decided).await, Ok(DecideGrantOutcome::Decided(_))));
    store.end_provider_sessions("https://login.example".to_owned(), "asha".to_owned(), test.now()).await.unwrap();
}

fn asked(by: Signatory, amount: i64) -> AskGrant {
    let movement = CreditMove { kind: EntryKind::Grant, amount, reference: "planted-invoice".to_owned() };
    AskGrant { id: "gr_1".parse().unwrap(), client: ClientId::generate(), movement, by }
}

fn session(test: &impl TestStore, number: u8) -> ConsoleSession {
    ConsoleSession {
        digest: SessionDigest([number; 32]),
        sign_in: SignIn::Token([number + 100; 32]),
        idle_until: test.now() + IDLE,
        ends_at: test.now() + LIFETIME,
    }
}

pub(crate) async fn a_session_of_the_console_is_kept_while_it_is_used_and_never_beyond_its_end(test: &impl TestStore) {
    let (store, one, other) = (test.store(), session(test, 1), session(test, 2));
    for opened in [&one, &other, &one] {
        store.open_console_session(opened.clone()).await.unwrap();
    }
    assert_eq!(store.load_console_session(one.digest).await, Ok(Some(one.clone())));
    assert_eq!(store.load_session(one.digest).await, Ok(None), "it is none of the portal");
    test.advance(IDLE - MOMENT);
    assert_eq!(store.prolong_console_session(one.digest, test.now() + IDLE).await, Ok(true));
    test.advance(MOMENT);
    assert_eq!(store.load_console_session(other.digest).await, Ok(None));
    assert_eq!(store.prolong_console_session(other.digest, test.now() + IDLE).await, Ok(false));
    test.advance(IDLE - MOMENT - MOMENT);
    assert_eq!(store.prolong_console_session(one.digest, test.now() + IDLE).await, Ok(true));
    assert_eq!(store.load_console_session(one.digest).await.unwrap().unwrap().idle_until, one.ends_at);
    test.advance(one.ends_at.since(test.now()));
    assert_eq!(store.load_console_session(one.digest).await, Ok(None));
}

pub(crate) async fn a_session_of_the_console_that_was_ended_is_gone_at_once(test: &impl TestStore) {
    let (store, one) = (test.store(), session(test, 1));
    store.open_console_session(one.clone()).await.unwrap();
    for _ in 0..2 {
        store.end_console_session(one.digest).await.unwrap();
        assert_eq!(store.load_console_session(one.digest).await, Ok(None));
        assert_eq!(store.prolong_console_session(one.digest, test.now() + IDLE).await, Ok(false));
    }
}

pub(crate) async fn the_end_of_sessions_at_a_provider_is_known_by_issuer_and_name(test: &impl TestStore) {
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

pub(crate) async fn a_grant_waits_for_a_second_person_and_is_decided_once(test: &impl TestStore) {
    let (store, asked) = (test.store(), asked(by("op_1"), 500));
    let Ok(AskGrantOutcome::Kept(request)) = store.ask_grant(asked.clone()).await else { panic!() };
    assert_eq!(
        (request.state, request.asked_at, request.ends_at),
        (GrantState::Pending, test.now(), test.now() + GRANT_REQUEST_TTL)
    );
    test.advance(MOMENT);
    assert_eq!(
        store.ask_grant(asked.clone()).await,
        Ok(AskGrantOutcome::Kept(request.clone())),
        "the same again changes nothing"
    );
    let other = AskGrant { movement: CreditMove { amount: 501, ..asked.movement.clone() }, ..asked };
    assert_eq!(store.ask_grant(other).await, Ok(AskGrantOutcome::ReferenceReused));
    assert_eq!(store.grant_requests().await, Ok(vec![request.clone()]));
    let decide = |who, decision| store.decide_grant(DecideGrant { id: request.id.clone(), by: by(who), decision });
    let refused = Ok(DecideGrantOutcome::Refused(DecisionRefusal::SamePerson));
    assert_eq!(decide("op_1", GrantState::Confirmed).await, refused);
    for who in ["op_2", "op_3"] {
        let Ok(DecideGrantOutcome::Decided(decided)) = decide(who, GrantState::Confirmed).await else { panic!() };
        assert_eq!((decided.state, decided.decided), (GrantState::Confirmed, Some((by("op_2"), test.now()))));
    }
    let refused = Ok(DecideGrantOutcome::Refused(DecisionRefusal::Decided(GrantState::Confirmed)));
    assert_eq!(decide("op_1", GrantState::Refused).await, refused);
}

pub(crate) async fn a_grant_that_nobody_decides_ends_after_a_day_and_can_be_asked_for_again(test: &impl TestStore) {
    let (store, asked) = (test.store(), asked(by("op_1"), 500));
    let Ok(AskGrantOutcome::Kept(request)) = store.ask_grant(asked.clone()).await else { panic!() };
    test.advance(GRANT_REQUEST_TTL);
    let decided = DecideGrant { id: request.id, by: by("op_2"), decision: GrantState::Confirmed };
    assert_eq!(store.decide_grant(decided.clone()).await, Ok(DecideGrantOutcome::NotFound));
    assert_eq!(store.grant_requests().await, Ok(vec![]));
    let Ok(AskGrantOutcome::Kept(again)) = store.ask_grant(AskGrant { by: by("op_2"), ..asked }).await else {
        panic!()
    };
    assert_eq!((again.asked_by, again.asked_at), (by("op_2"), test.now()));
    assert_eq!(store.grant_requests().await.unwrap().len(), 1);
    let unknown = DecideGrant { id: GrantId::generate(), ..decided };
    assert_eq!(store.decide_grant(unknown).await, Ok(DecideGrantOutcome::NotFound));
}
