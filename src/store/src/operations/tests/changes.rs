//! Changes whose responses are lost, or that race with others.

use std::sync::atomic::Ordering;

use futures_util::future::join_all;
use futures_util::join;
use sakshi_domain::event::{EventPatch, MaxGuests};
use sakshi_domain::flow::api_type::ApiType;
use sakshi_domain::grant_request::GrantState;
use sakshi_domain::operator::Signatory;

use super::shared::SharedEngine;
use crate::conformance::consents::{declared_consent, read_whole_register};
use crate::conformance::fixture::{build_event, build_guest_scan, client_with, grant, open_pending, store_event, url};
use crate::conformance::flow_fixture::create_client_app;
use crate::conformance::{TestStore as _, run};
use crate::engine::{Engine as _, Query};
use crate::records::event::key_of_event as key;
use crate::{DecideGrant, DecideGrantOutcome, OpenOutcome, PatchEventOutcome, RequestGrant, TransactionRecord};

/// Concurrent changes. Fewer than an event remembers, so each retry finds its change.
const CHANGES: usize = 4;

#[test]
fn a_change_whose_response_is_lost_is_applied_once() {
    run(async {
        for seed in 0..500 {
            let engine = SharedEngine::new();
            let nodes: Vec<_> = (0..CHANGES).map(|_| engine.join()).collect();
            let client = client_with(&nodes[0], 1).await;
            let event = store_event(&nodes[0], build_event(&nodes[0], &client, 10)).await;
            let record = || async {
                let queries = vec![Query::Record(key(event.id.partition(), event.id))];
                engine.records.read(queries).await.unwrap().record().unwrap().unwrap()
            };
            let before = record().await.version;
            engine.begin_disorder(seed);
            let changes = nodes.iter().zip(20..).map(|(node, guests)| {
                let patch = EventPatch { max_guests: Some(MaxGuests::new(guests).unwrap()), ..EventPatch::default() };
                node.store.patch_event(event.id, event.app.clone(), patch)
            });
            let outcomes = join_all(changes).await;
            engine.end_disorder();
            let patched =
                outcomes.iter().filter(|outcome| matches!(outcome, Ok(PatchEventOutcome::Patched(_)))).count();
            let applied = usize::try_from(record().await.version - before).unwrap();
            assert!((patched..=CHANGES).contains(&applied), "{seed}: {applied} changes, {patched} responses");
        }
    });
}

#[test]
fn a_consent_whose_response_is_lost_is_added_once() {
    run(async {
        for seed in 0..200 {
            let engine = SharedEngine::new();
            let nodes: Vec<_> = (0..CHANGES).map(|_| engine.join()).collect();
            let client = client_with(&nodes[0], 1).await;
            let consents: Vec<_> = (0..4 * CHANGES).map(|id| declared_consent(id, nodes[0].now())).collect();
            engine.begin_disorder(seed);
            let kept = consents.iter().zip(nodes.iter().cycle());
            let kept = kept.map(|(consent, node)| node.store.keep_consent(client.clone(), consent.clone()));
            let outcomes = join_all(kept).await;
            engine.end_disorder();
            let register = read_whole_register(&nodes[0], &client).await;
            for (consent, outcome) in consents.iter().zip(outcomes) {
                let entries = register.iter().filter(|entry| entry.consent == *consent).count();
                assert!(
                    (usize::from(outcome.is_ok())..=1).contains(&entries),
                    "{seed}: {entries} entries, {outcome:?}"
                );
            }
        }
    });
}

/// The first call may have written to a primary that is replaced, and its answer was lost.
#[test]
fn a_change_that_was_made_before_is_confirmed_by_the_replicas() {
    run(async {
        let engine = SharedEngine::new();
        let node = engine.join();
        let client_app = create_client_app(&node).await;
        let signatory = |id: &str| Signatory { id: id.to_owned(), name: id.to_owned() };
        let registered =
            || node.store.set_webhook_url(client_app.app.clone(), ApiType::ESign, Some(url("https://a.example/")));
        let command = RequestGrant {
            id: format!("gr_{}", "1".repeat(32)).parse().unwrap(),
            client: client_app.client.clone(),
            movement: grant(1, "invoice"),
            by: signatory("One"),
        };
        node.store.ask_grant(command.clone()).await.unwrap();
        let by = signatory("Other");
        let decided = || {
            let decided = DecideGrant { id: command.id.clone(), by: by.clone(), decision: GrantState::Refused };
            node.store.decide_grant(decided)
        };
        registered().await.unwrap();
        decided().await.unwrap();
        engine.is_unconfirmed.store(true, Ordering::Relaxed);
        assert!(registered().await.is_err());
        assert!(decided().await.is_err());
        engine.is_unconfirmed.store(false, Ordering::Relaxed);
        assert!(registered().await.is_ok_and(|urls| urls.is_some()));
        assert!(matches!(decided().await, Ok(DecideGrantOutcome::Decided(_))));
    });
}

/// Between both, the node learns of the new primary.
#[test]
fn a_transaction_missing_on_a_former_primary_is_looked_up_on_the_new_one() {
    run(async {
        let engine = SharedEngine::new();
        let node = engine.join();
        let opened = open_pending(&node, &client_with(&node, 1).await).await;
        engine.reads_former_primary.store(true, Ordering::Relaxed);
        let loaded = node.store.load_transaction(opened.id).await.unwrap();
        assert!(matches!(loaded, Some(TransactionRecord::Pending(_))), "{loaded:?}");
    });
}

#[test]
fn the_response_to_a_change_counts_guests_admitted_before_it() {
    run(async {
        let mut admitted = 0;
        for seed in 0..200 {
            let engine = SharedEngine::new();
            let [door, office] = [engine.join(), engine.join()];
            let event = store_event(&door, build_event(&door, &client_with(&door, 1).await, 10)).await;
            engine.begin_disorder(seed);
            let closing = EventPatch { is_active: Some(false), ..EventPatch::default() };
            let closed = office.store.patch_event(event.id, event.app.clone(), closing);
            let (closed, opened) = join!(closed, door.store.open_transaction(build_guest_scan(&door, &event)));
            engine.end_disorder();
            if let (Ok(PatchEventOutcome::Patched(event)), Ok(OpenOutcome::Opened { .. })) = (closed, opened) {
                assert_eq!(event.counts.scans, 1, "{seed}");
                admitted += 1;
            }
        }
        assert!(admitted > 10, "{admitted}");
    });
}
