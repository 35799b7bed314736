//! The audit log: one chain of entries from all nodes.
#![allow(missing_docs)] // The name of each function states the property that it checks.

use futures_util::future::join_all;

use std::time::Duration;

use super::TestStore;
use crate::audit_log::{AuditHash, AuditHead, AuditRecord, UnsentAudit};

/// Builds the text of an entry, identified by a number.
fn build_entry(number: u32) -> String {
    format!("{{\"asked\":{{\"name\":\"planted-entry {number}\"}}}}")
}

/// Asserts that the entries form a chain from the first on. Returns the newest.
fn assert_chain(records: &[AuditRecord]) -> AuditHead {
    let mut head = AuditHead::NONE;
    for record in records {
        assert_eq!((record.number, record.previous), (head.number + 1, head.hash));
        assert_eq!(record.hash, head.hash.hash_of_next(&record.entry));
        head = AuditHead { number: record.number, hash: record.hash };
    }
    head
}

pub(crate) async fn entries_of_the_audit_log_form_one_chain(test: &impl TestStore) {
    assert_eq!(test.store().audit_head().await, Ok(AuditHead::NONE));
    assert_eq!(test.store().audit_log(0, 10).await, Ok(vec![]));
    let mut appended = Vec::new();
    // The third entry has the text of the first.
    for text in [build_entry(1), build_entry(2), build_entry(1)] {
        appended.push(test.store().append_audit(text).await.unwrap());
    }
    assert_eq!(appended[2].entry, build_entry(1));
    assert_ne!(appended[2].hash, appended[0].hash);
    assert_eq!(appended[0].hash.to_string().parse(), Ok(appended[0].hash));
    assert_eq!(test.store().audit_head().await, Ok(assert_chain(&appended)));
    assert_eq!(test.store().audit_log(0, 10).await.as_ref(), Ok(&appended));
    assert_eq!(test.store().audit_log(1, 1).await.as_deref(), Ok(&appended[1..2]));
    assert_eq!(test.store().audit_log(3, 10).await, Ok(vec![]));
    assert_ne!(AuditHash::NONE.hash_of_next("a"), AuditHash::NONE.hash_of_next("b"));
}

pub(crate) async fn racing_entries_are_all_in_the_audit_log(test: &impl TestStore) {
    let appended = join_all((0..20).map(|number| test.store().append_audit(build_entry(number)))).await;
    let mut appended: Vec<_> = appended.into_iter().map(Result::unwrap).collect();
    appended.sort_by_key(|record| record.number);
    assert_chain(&appended);
    assert_eq!(test.store().audit_log(0, 100).await.as_ref(), Ok(&appended));
    let mut texts: Vec<_> = appended.into_iter().map(|record| record.entry).collect();
    texts.sort_unstable();
    let mut all: Vec<_> = (0..20).map(build_entry).collect();
    all.sort_unstable();
    assert_eq!(texts, all);
}

pub(crate) async fn the_receiver_of_the_audit_log_gets_every_entry_in_order(test: &impl TestStore) {
    const PUSH_TIME: Duration = Duration::from_secs(60);
    let store = test.store();
    let unsent = async |limit| store.take_audit_push(PUSH_TIME, limit).await.unwrap();
    assert_eq!(unsent(2).await, UnsentAudit { waiting: 0, next: None });
    let mut all = Vec::new();
    for number in 0..5 {
        all.push(store.append_audit(build_entry(number)).await.unwrap());
    }
    let first = all.clone();
    let unsent_after = |head, waiting, range: std::ops::Range<usize>| UnsentAudit {
        waiting,
        next: Some((head, first[range].to_vec())),
    };
    assert_eq!(unsent(2).await, unsent_after(AuditHead::NONE, 5, 0..2));
    assert_eq!(unsent(2).await, unsent_after(AuditHead::NONE, 5, 0..2), "unsettled entries are returned again");
    let second = AuditHead::NONE.after(&all[..2]);
    assert_eq!(store.settle_audit_push(AuditHead::NONE, second, PUSH_TIME).await, Ok(true));
    assert_eq!(store.settle_audit_push(AuditHead::NONE, second, PUSH_TIME).await, Ok(false), "settled already");
    assert_eq!(unsent(10).await, unsent_after(second, 3, 2..5));
    let last = AuditHead::NONE.after(&all);
    store.settle_audit_push(second, last, PUSH_TIME).await.unwrap();
    assert_eq!(unsent(10).await, UnsentAudit { waiting: 0, next: None });
    // After a rollback, another entry has the number of the last sent entry.
    store.settle_audit_push(last, AuditHead { hash: second.hash, ..last }, PUSH_TIME).await.unwrap();
    all.push(store.append_audit(build_entry(5)).await.unwrap());
    assert_eq!(unsent(10).await, UnsentAudit { waiting: 6, next: Some((AuditHead::NONE, all)) });
}
