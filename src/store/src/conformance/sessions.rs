//! Sessions: kept for their time, extended by use, ended permanently.
#![allow(missing_docs)] // Each name is the sentence that the property states.

use std::time::Duration;

use sakshi_domain::ids::AppId;
use sakshi_domain::tenancy::KeyDigest;

use super::TestStore;
use crate::Swept;
use crate::{SessionDigest, SessionHolder, SessionRecord};

const IDLE: Duration = Duration::from_secs(1_800);
const LIFETIME: Duration = Duration::from_secs(4_000);
const MOMENT: Duration = Duration::from_millis(1);

pub(crate) fn session(test: &impl TestStore, number: u8) -> SessionRecord {
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

pub(crate) async fn a_session_is_kept_once_under_its_digest_and_no_other(test: &impl TestStore) {
    let (one, other) = (session(test, 1), session(test, 2));
    for opened in [&one, &other, &one] {
        test.store().open_session(opened.clone()).await.unwrap();
    }
    assert_eq!(test.store().load_session(one.digest).await, Ok(Some(one.clone())));
    assert_eq!(test.store().load_session(other.digest).await, Ok(Some(other.clone())));
    assert_eq!(test.store().load_session(SessionDigest([3; 32])).await, Ok(None));
    let changed = SessionRecord { app: AppId::generate(), ..one.clone() };
    test.store().open_session(changed).await.unwrap();
    assert_eq!(test.store().load_session(one.digest).await, Ok(Some(one)), "what it stands for never changes");
}

pub(crate) async fn a_session_is_taken_by_one_caller_at_most_and_by_none_after_its_end(test: &impl TestStore) {
    let (one, late) = (session(test, 1), session(test, 2));
    for opened in [&one, &late] {
        test.store().open_session(opened.clone()).await.unwrap();
    }
    let taken = futures_util::future::join_all((0..5).map(|_| test.store().take_session(one.digest))).await;
    let taken: Vec<_> = taken.into_iter().filter_map(|taken| taken.unwrap()).collect();
    assert!(taken.is_empty() || taken == std::slice::from_ref(&one), "{taken:?}");
    assert_eq!(test.store().load_session(one.digest).await, Ok(None));
    test.advance(IDLE);
    assert_eq!(test.store().take_session(late.digest).await, Ok(None));
}

pub(crate) async fn a_session_ends_when_it_was_idle_for_too_long_and_is_not_brought_back(test: &impl TestStore) {
    let one = session(test, 1);
    test.store().open_session(one.clone()).await.unwrap();
    test.advance(IDLE - MOMENT);
    assert!(test.store().load_session(one.digest).await.unwrap().is_some());
    test.advance(MOMENT);
    for _ in 0..2 {
        assert_eq!(test.store().load_session(one.digest).await, Ok(None));
        assert_eq!(test.store().prolong_session(one.digest, test.now() + IDLE).await, Ok(false));
        while test.store().sweep(test.now(), 1).await.unwrap() != Swept::default() {}
    }
}

pub(crate) async fn use_prolongs_a_session_and_never_beyond_its_end(test: &impl TestStore) {
    let one = session(test, 1);
    test.store().open_session(one.clone()).await.unwrap();
    let until = |loaded: Option<SessionRecord>| loaded.map(|session| session.idle_until);
    test.advance(IDLE - MOMENT);
    assert_eq!(test.store().prolong_session(one.digest, test.now() + IDLE).await, Ok(true));
    let prolonged = test.now() + IDLE;
    assert_eq!(until(test.store().load_session(one.digest).await.unwrap()), Some(prolonged));
    assert_eq!(test.store().prolong_session(one.digest, test.now()).await, Ok(true));
    assert_eq!(until(test.store().load_session(one.digest).await.unwrap()), Some(prolonged), "nothing shortens it");
    test.advance(IDLE - MOMENT);
    assert_eq!(test.store().prolong_session(one.digest, test.now() + IDLE).await, Ok(true));
    let last = test.store().load_session(one.digest).await.unwrap().unwrap();
    assert_eq!((last.idle_until, last.ends_at), (one.ends_at, one.ends_at));
    test.advance(one.ends_at.since(test.now()));
    assert_eq!(test.store().load_session(one.digest).await, Ok(None));
    assert_eq!(test.store().prolong_session(SessionDigest([9; 32]), prolonged).await, Ok(false));
}

pub(crate) async fn a_session_that_was_ended_is_gone_at_once(test: &impl TestStore) {
    let (one, other) = (session(test, 1), session(test, 2));
    test.store().open_session(one.clone()).await.unwrap();
    test.store().open_session(other.clone()).await.unwrap();
    for _ in 0..2 {
        test.store().end_session(one.digest).await.unwrap();
        assert_eq!(test.store().load_session(one.digest).await, Ok(None));
        assert_eq!(test.store().prolong_session(one.digest, test.now() + IDLE).await, Ok(false));
    }
    assert!(test.store().load_session(other.digest).await.unwrap().is_some());
}
