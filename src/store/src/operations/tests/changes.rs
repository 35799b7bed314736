//! Changes of an event whose responses are lost or that race with guests.

use futures_util::future::join_all;
use futures_util::join;
use sakshi_domain::event::{EventPatch, MaxGuests};

use super::shared::SharedEngine;
use crate::conformance::fixture::{build_guest_scan, client_with, event, store_event};
use crate::conformance::run;
use crate::engine::{Engine as _, Query};
use crate::records::event::event as key;
use crate::{OpenOutcome, PatchEventOutcome};

/// Concurrent changes. Fewer than an event remembers, so each retry finds its change.
const CHANGES: usize = 4;

#[test]
fn a_change_whose_response_is_lost_is_applied_once() {
    run(async {
        for seed in 0..500 {
            let engine = SharedEngine::new();
            let nodes: Vec<_> = (0..CHANGES).map(|_| engine.join()).collect();
            let client = client_with(&nodes[0], 1).await;
            let event = store_event(&nodes[0], event(&nodes[0], &client, 10)).await;
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
fn the_response_to_a_change_counts_guests_admitted_before_it() {
    run(async {
        let mut admitted = 0;
        for seed in 0..200 {
            let engine = SharedEngine::new();
            let [door, office] = [engine.join(), engine.join()];
            let event = store_event(&door, event(&door, &client_with(&door, 1).await, 10)).await;
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
