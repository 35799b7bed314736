//! Portal sessions: extended by use, and ended permanently.
#![allow(missing_docs)] // The name of each function states the property that it checks.

use std::time::Duration;

use sakshi_domain::ids::AppId;
use sakshi_domain::tenancy::KeyDigest;

use super::TestStore;
use crate::Swept;
use crate::{SessionDigest, SessionHolder, SessionRecord};

/// Time for which a session may stay unused.
const IDLE: Duration = Duration::from_secs(1_800);
/// Time after which a session ends although it is used.
const LIFETIME: Duration = Duration::from_secs(4_000);
const MOMENT: Duration = Duration::from_millis(1);

/// Builds a session of the portal, identified by a number.
pub(crate) fn build_session(test: &impl TestStore, number: u8) -> SessionRecord {
    SessionRecord {
        digest: SessionDigest([number; 32]),
        holder: SessionHolder::Key(KeyDigest([number + 100; 32])),
        app: AppId::generate(),
        opened_at: test.now(),
        network: "planted-network".into(),
        browser: "planted-browser".into(),
        idle_until: test.now() + IDLE,
        ends_at: test.now() + LIFETIME,
    }
}

pub(crate) async fn a_session_is_stored_once_under_its_digest(test: &impl TestStore) {
    let (first, other) = (build_session(test, 1), build_session(test, 2));
    for opened in [&first, &other, &first] {
        test.store().open_session(opened.clone()).await.unwrap();
    }
    assert_eq!(test.store().load_session(first.digest).await, Ok(Some(first.clone())));
    assert_eq!(test.store().load_session(other.digest).await, Ok(Some(other.clone())));
    assert_eq!(test.store().load_session(SessionDigest([3; 32])).await, Ok(None));
    let changed = SessionRecord { app: AppId::generate(), ..first.clone() };
    test.store().open_session(changed).await.unwrap();
    assert_eq!(
        test.store().load_session(first.digest).await,
        Ok(Some(first)),
        "the holder and app of a session never change"
    );
}

pub(crate) async fn at_most_one_caller_takes_a_session_and_none_after_its_end(test: &impl TestStore) {
    let (first, late) = (build_session(test, 1), build_session(test, 2));
    for opened in [&first, &late] {
        test.store().open_session(opened.clone()).await.unwrap();
    }
    let results = futures_util::future::join_all((0..5).map(|_| test.store().take_session(first.digest))).await;
    let taken: Vec<_> = results.into_iter().filter_map(|result| result.unwrap()).collect();
    assert!(taken.is_empty() || taken == std::slice::from_ref(&first), "{taken:?}");
    assert_eq!(test.store().load_session(first.digest).await, Ok(None));
    test.advance(IDLE);
    assert_eq!(test.store().take_session(late.digest).await, Ok(None));
}

pub(crate) async fn an_idle_session_ends_permanently(test: &impl TestStore) {
    let first = build_session(test, 1);
    test.store().open_session(first.clone()).await.unwrap();
    test.advance(IDLE - MOMENT);
    assert!(test.store().load_session(first.digest).await.unwrap().is_some());
    test.advance(MOMENT);
    for _ in 0..2 {
        assert_eq!(test.store().load_session(first.digest).await, Ok(None));
        assert_eq!(test.store().prolong_session(first.digest, test.now() + IDLE).await, Ok(false));
        while test.store().sweep(test.now(), 1).await.unwrap() != Swept::default() {}
    }
}

pub(crate) async fn use_extends_a_session_up_to_its_end(test: &impl TestStore) {
    let first = build_session(test, 1);
    test.store().open_session(first.clone()).await.unwrap();
    let until = |loaded: Option<SessionRecord>| loaded.map(|session| session.idle_until);
    test.advance(IDLE - MOMENT);
    assert_eq!(test.store().prolong_session(first.digest, test.now() + IDLE).await, Ok(true));
    let prolonged = test.now() + IDLE;
    assert_eq!(until(test.store().load_session(first.digest).await.unwrap()), Some(prolonged));
    assert_eq!(test.store().prolong_session(first.digest, test.now()).await, Ok(true));
    assert_eq!(
        until(test.store().load_session(first.digest).await.unwrap()),
        Some(prolonged),
        "a session is never shortened"
    );
    test.advance(IDLE - MOMENT);
    assert_eq!(test.store().prolong_session(first.digest, test.now() + IDLE).await, Ok(true));
    let last = test.store().load_session(first.digest).await.unwrap().unwrap();
    assert_eq!((last.idle_until, last.ends_at), (first.ends_at, first.ends_at));
    test.advance(first.ends_at.since(test.now()));
    assert_eq!(test.store().load_session(first.digest).await, Ok(None));
    assert_eq!(test.store().prolong_session(SessionDigest([9; 32]), prolonged).await, Ok(false));
}

pub(crate) async fn an_ended_session_is_gone_immediately(test: &impl TestStore) {
    let (first, other) = (build_session(test, 1), build_session(test, 2));
    test.store().open_session(first.clone()).await.unwrap();
    test.store().open_session(other.clone()).await.unwrap();
    for _ in 0..2 {
        test.store().end_session(first.digest).await.unwrap();
        assert_eq!(test.store().load_session(first.digest).await, Ok(None));
        assert_eq!(test.store().prolong_session(first.digest, test.now() + IDLE).await, Ok(false));
    }
    assert!(test.store().load_session(other.digest).await.unwrap().is_some());
}
