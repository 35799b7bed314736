//! The log of a client: every entry once, newest first, until its month expires.
#![allow(missing_docs)] // The name of each function states the property that it checks.

use std::time::Duration;

use futures_util::future::join_all;
use sakshi_domain::client_log::{Action, Actor, LogEntry, LogFilter, Subject};
use sakshi_domain::erasure::ErasureSubject;
use sakshi_domain::ids::{AppId, ClientId, UserId};
use sakshi_domain::request_id::RequestId;

use super::TestStore;
use super::fixture::client_with;
use crate::client_log::LogQuery;

const MONTH: Duration = Duration::from_secs(30 * 24 * 3_600);

/// Builds an entry of a client's log, by a user who is generated for it.
pub(crate) fn build_log_entry(test: &impl TestStore, action: Action) -> LogEntry {
    LogEntry {
        at: test.now(),
        actor: Actor::User { id: UserId::generate(), name: "Planted Person".parse().unwrap() },
        action,
        subjects: vec![Subject::App(AppId::generate())],
        request_id: RequestId::mint(),
    }
}

/// Returns the whole log, read in pages of `limit` entries.
async fn read_log(test: &impl TestStore, client: &ClientId, filter: LogFilter, limit: u32) -> Vec<LogEntry> {
    let (mut entries, mut before) = (Vec::new(), None);
    loop {
        let query = LogQuery { client: client.clone(), filter: filter.clone(), before, limit, now: test.now() };
        let page = test.store().client_log(query).await.unwrap();
        assert!(page.entries.len() <= limit as usize);
        entries.extend(page.entries);
        before = page.next;
        if before.is_none() {
            return entries;
        }
    }
}

pub(crate) async fn the_log_of_a_client_is_read_in_pages_newest_entry_first(test: &impl TestStore) {
    let (client, mut written) = (client_with(test, 0).await, Vec::new());
    for number in 0..7 {
        let entry = build_log_entry(test, if number % 2 == 0 { Action::SignedIn } else { Action::DetailsShown });
        test.store().append_client_log(client.clone(), entry.clone()).await.unwrap();
        written.insert(0, entry);
        if number % 3 == 0 {
            test.advance(MONTH);
        }
    }
    for limit in [1, 2, 7, 100] {
        assert_eq!(read_log(test, &client, LogFilter::default(), limit).await, written, "{limit}");
    }
    let signed_in = LogFilter { action: Some(Action::SignedIn), actor: None };
    assert_eq!(read_log(test, &client, signed_in, 2).await.len(), 4);
    let of_one_actor = LogFilter { action: None, actor: Some(written[3].actor.id().to_owned()) };
    assert_eq!(read_log(test, &client, of_one_actor, 2).await, written[3..4]);
    assert_eq!(
        read_log(test, &client_with(test, 0).await, LogFilter::default(), 10).await,
        [],
        "the log of another client is empty"
    );
}

pub(crate) async fn concurrent_first_entries_of_a_month_are_all_in_the_log(test: &impl TestStore) {
    let client = client_with(test, 0).await;
    let entries: Vec<_> = (0..20).map(|_| build_log_entry(test, Action::SignedIn)).collect();
    let appended =
        join_all(entries.iter().map(|entry| test.store().append_client_log(client.clone(), entry.clone()))).await;
    appended.into_iter().for_each(Result::unwrap);
    let mut ids: Vec<_> = read_log(test, &client, LogFilter::default(), 6)
        .await
        .into_iter()
        .map(|entry| entry.actor.id().to_owned())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 20);
}

pub(crate) async fn erasing_a_client_erases_its_log(test: &impl TestStore) {
    let (client, other) = (client_with(test, 0).await, client_with(test, 0).await);
    for owner in [&client, &other] {
        test.store().append_client_log(owner.clone(), build_log_entry(test, Action::SignedIn)).await.unwrap();
        test.advance(MONTH);
        test.store().append_client_log(owner.clone(), build_log_entry(test, Action::SignedOut)).await.unwrap();
    }
    test.store().erase(ErasureSubject::Client(client.clone())).await.unwrap();
    assert_eq!(read_log(test, &client, LogFilter::default(), 10).await, []);
    assert_eq!(read_log(test, &other, LogFilter::default(), 10).await.len(), 2);
}
