//! Numbers at their limits, long lists, and records at the end of their retention.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt as _};
use sakshi_domain::event::EventPatch;

use super::{test_store, test_store_with_retention};
use crate::conformance::credits::adjust;
use crate::conformance::fixture::{
    EVENT_DURATION, RETENTION, WINDOW, audited_balance, build_completion, build_declined_completion, build_event,
    build_guest_scan, build_opening, client_with, grant, load_counts, open_guest_scan, open_pending, patch_event,
    store_event,
};
use crate::conformance::{TestStore, run};
use crate::engine::redis::RedisEngine;
use crate::engine::{Batch, Engine as _, Op};
use crate::records::client::key_of_ledger;
use crate::redis::RedisOptions;
use crate::redis::store::build_shared;
use crate::{Audit, CompleteOutcome, CreditOutcome, OpenOutcome, PageRequest, Retention, StoreError};

#[test]
fn the_settings_for_replicas_and_calls_in_flight_are_applied() {
    run(async {
        let test = &test_store();
        let link = &build_shared(RedisOptions { wait_replicas: 1, max_waiting: 3, ..test.options() }).link;
        assert!(link.waits_for_replicas() && !test.store.shared.link.waits_for_replicas());
        let outcomes = join_all((0..5).map(|_| link.read(redis::cmd("PING")))).await;
        assert_eq!(outcomes.iter().filter(|answer| **answer == Err(StoreError::Overloaded)).count(), 2);
    });
}

#[test]
fn a_balance_is_exact_beyond_the_integers_of_lua() {
    run(async {
        let test = &test_store();
        let client = client_with(test, 0).await;
        let moves = [
            (grant((1 << 53) - 1, "a"), Some((1 << 53) - 1)),
            (grant(2, "b"), Some((1 << 53) + 1)),
            (adjust(i64::MAX - (1 << 53) - 1, "c"), Some(i64::MAX as u64)),
            (grant(1, "d"), None),
            (adjust(i64::MIN, "e"), None),
            (adjust(-i64::MAX, "f"), Some(0)),
            (adjust(-1, "g"), None),
            (adjust(0, "h"), Some(0)),
            (grant(i64::MAX, "i"), Some(i64::MAX as u64)),
            (adjust(i64::MIN, "j"), None),
        ];
        for (movement, after) in moves {
            let outcome = test.store().move_credits(client.clone(), movement.clone()).await.unwrap();
            match after {
                Some(after) => assert!(
                    matches!(&outcome, CreditOutcome::Moved(entry) if entry.balance_after == after),
                    "{outcome:?}"
                ),
                None => assert_eq!(outcome, CreditOutcome::OutOfRange, "{movement:?}"),
            }
        }
        open_pending(test, &client).await;
        assert_eq!(audited_balance(test, &client).await, i64::MAX as u64 - 1);
    });
}

#[test]
fn a_cost_of_any_size_is_paid_exactly_or_not_at_all() {
    run(async {
        let test = &test_store();
        let client = client_with(test, i64::MAX).await;
        for cost in [u64::MAX, i64::MAX as u64 + 1] {
            let mut open = build_opening(test, &client);
            open.cost = cost;
            assert_eq!(test.store().open_transaction(open).await, Ok(OpenOutcome::InsufficientCredits));
        }
        for (cost, left) in [(0, i64::MAX as u64), (i64::MAX as u64 - 1, 1), (2, 1), (1, 0)] {
            let mut open = build_opening(test, &client);
            open.cost = cost;
            let outcome = test.store().open_transaction(open).await.unwrap();
            let expected =
                if cost == 2 { OpenOutcome::InsufficientCredits } else { OpenOutcome::Opened { balance: left } };
            assert_eq!(outcome, expected);
        }
        assert_eq!(audited_balance(test, &client).await, 0);
    });
}

#[test]
fn a_long_ledger_is_audited_to_its_end_and_its_damage_is_found() {
    run(async {
        let test = &test_store();
        let client = client_with(test, 5_000).await;
        for slice in 0..25 {
            let opens = (0..100).map(|_| test.store().open_transaction(build_opening(test, &client)));
            join_all(opens).await;
            assert_eq!(test.store().balance(client.clone()).await, Ok(Some(5_000 - (slice + 1) * 100)));
        }
        assert_eq!(audited_balance(test, &client).await, 2_500);
        let last = test.store().statement(client.clone(), PageRequest { page: 26, page_size: 100 }).await.unwrap();
        assert_eq!((last.total, last.items.len(), last.items[0].balance_after), (2_501, 1, 2_500));
        let damage = vec!["adjust".into(), 7.into(), 9.into(), b"damage"[..].into(), 9.into()];
        let damaged = Batch::new(vec![], vec![Op::Rewrite(key_of_ledger(&client), 1_501, damage)]);
        RedisEngine::new(Arc::clone(&test.store.shared)).commit(vec![damaged]).await.unwrap();
        let audit = test.store().audit().await.unwrap().remove(0);
        assert!(!audit.is_clean() && audit.faults > 0 && audit.entries == 2_501, "{audit:?}");
    });
}

#[test]
fn an_event_without_retention_still_outlives_its_scans() {
    run(async {
        let test = &test_store_with_retention(Retention { events: Duration::ZERO, ..RETENTION });
        let client = client_with(test, 9).await;
        let event = store_event(test, build_event(test, &client, 9)).await;
        test.advance(EVENT_DURATION - Duration::from_secs(1));
        let (late, other) = (open_guest_scan(test, &event).await, open_guest_scan(test, &event).await);
        // A new end before the end of the scans does not remove the event earlier than the scans.
        let nearer = Some(test.now() + Duration::from_millis(1));
        patch_event(test, &event, EventPatch { expires_at: nearer, ..EventPatch::default() }).await;
        test.advance(WINDOW - Duration::from_millis(1));
        let outcome = test.store().complete_transaction(build_declined_completion(late, 1)).await.unwrap();
        assert!(matches!(outcome, CompleteOutcome::Completed { .. }));
        let outcome = test.store().complete_transaction(build_completion(other, 1)).await.unwrap();
        assert!(
            matches!(&outcome, CompleteOutcome::Completed { record, .. } if record.refused.is_some()),
            "{outcome:?}"
        );
        assert_eq!(load_counts(test, &event).await.scans, 2);
        test.advance(RETENTION.expired + Duration::from_millis(1));
        assert_eq!(test.store().load_event(event.id).await, Ok(None));
        assert_eq!(test.store().open_transaction(build_guest_scan(test, &event)).await, Ok(OpenOutcome::EventNotFound));
    });
}

#[test]
fn an_audit_covers_more_than_a_thousand_clients() {
    run(async {
        let test = &test_store();
        let clients: Vec<_> = stream::iter(0..1_001).map(|_| client_with(test, 0)).buffered(50).collect().await;
        let audits = test.store().audit().await.unwrap();
        assert_eq!((audits.len(), audits.iter().all(Audit::is_clean)), (clients.len(), true));
    });
}
