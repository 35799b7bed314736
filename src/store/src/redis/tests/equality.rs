//! Comparison of two stores by everything that callers can read.

use std::collections::BTreeSet;
use std::time::Duration;

use sakshi_domain::brand::LogoId;
use sakshi_domain::clock::{Clock as _, SystemClock};
use sakshi_domain::delivery::DeliveryRecord;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::ids::{AppId, TxnId};
use sakshi_domain::tenancy::Client;
use sakshi_domain::time::Timestamp;

use super::moving::ALL;
use crate::{ConsentPosition, ConsentQuery, LogQuery, SessionDigest, Store};

/// Returns a delivery without its id, which is specific to the store.
fn without_id(delivery: Option<DeliveryRecord>) -> Option<impl PartialEq + std::fmt::Debug> {
    delivery.map(|delivery| (delivery.origin, delivery.queued_at, delivery.claimed_at, delivery.attempt))
}

/// Evaluates an expression with each of two stores, asserts that the results are equal, and returns the result.
macro_rules! assert_same {
    ($from:ident, $to:ident, $store:ident => $read:expr) => {{
        let expected = {
            let $store = $from;
            $read
        };
        let found = {
            let $store = $to;
            $read
        };
        assert_eq!(expected, found, "{}", stringify!($read));
        expected
    }};
}

/// Checks that every read returns the same from both stores.
pub(super) async fn assert_equal(from: &Store, to: &Store, flows: &[(FlowId, AppId)]) {
    assert_clients_equal(from, to).await;
    assert_flows_equal(from, to, flows).await;
    assert_same!(from, to, store => store.find_signing_in("planted-one@example.com".parse().unwrap()).await.unwrap());
    assert_same!(from, to, store => store.load_session(SessionDigest([1; 32])).await.unwrap());
    assert_same!(from, to, store => store.load_logo(LogoId([1; 16])).await.unwrap());
    assert_same!(from, to, store => store.operators().await.unwrap());
    assert_same!(from, to, store => store.audit_log(0, 100).await.unwrap());
    assert_same!(from, to, store => store.audit_head().await.unwrap());
    assert_same!(from, to, store => store.chosen_intent_key().await.unwrap());
    assert!(to.audit().await.unwrap().iter().all(crate::Audit::is_clean));
}

/// Checks the clients of both stores, with everything that belongs to them.
async fn assert_clients_equal(from: &Store, to: &Store) {
    let by_id = |mut page: crate::Page<Client>| {
        page.items.sort_by(|one, other| one.client_id.cmp(&other.client_id));
        page
    };
    let mut transactions = 0;
    for client in assert_same!(from, to, store => by_id(store.list_clients(ALL).await.unwrap())).items {
        let id = client.client_id;
        assert_same!(from, to, store => store.balance(id.clone()).await.unwrap());
        assert_same!(from, to, store => store.list_keys(id.clone()).await.unwrap());
        assert_same!(from, to, store => {
            let (from, to) = (Timestamp::from_millis(0), SystemClock.now() + Duration::from_secs(30 * 24 * 3_600));
            let query = ConsentQuery { client: id.clone(), from, to, after: ConsentPosition::default(), limit: 100 };
            store.consents(query).await.unwrap()
        });
        assert_same!(from, to, store => {
            store.client_log(LogQuery::newest(id.clone(), SystemClock.now())).await.unwrap()
        });
        assert_same!(from, to, store => store.list_users(id.clone()).await.unwrap());
        assert_same!(from, to, store => store.key_uses(id.clone()).await.unwrap());
        assert_same!(from, to, store => store.imported_at(id.clone()).await.unwrap());
        let apps = assert_same!(from, to, store => store.list_apps(id.clone()).await.unwrap());
        let mut apps: BTreeSet<AppId> = apps.into_iter().map(|app| app.app_id).collect();
        for entry in assert_same!(from, to, store => store.statement(id.clone(), ALL).await.unwrap()).items {
            let Ok(txn) = entry.reference.parse::<TxnId>() else { continue };
            transactions += 1;
            assert_same!(from, to, store => without_id(store.load_delivery(txn.into()).await.unwrap()));
            assert_same!(from, to, store => store.load_evidence(txn).await.unwrap().is_some());
            let record = assert_same!(from, to, store => store.load_transaction(txn).await.unwrap());
            apps.extend(record.map(|record| record.opened().app.clone()));
        }
        for app in apps {
            assert_app_equal(from, to, &app).await;
        }
    }
    assert!(transactions > 5);
}

async fn assert_app_equal(from: &Store, to: &Store, app: &AppId) {
    assert_same!(from, to, store => store.webhook_urls(app.clone()).await.unwrap());
    assert_same!(from, to, store => store.refusals(app.clone()).await.unwrap());
    for event in assert_same!(from, to, store => store.list_events(app.clone(), ALL).await.unwrap()).items {
        assert_same!(from, to, store => store.load_event(event.id).await.unwrap());
        assert_same!(from, to, store => store.list_registrations(event.id, ALL.into()).await.unwrap());
    }
}

async fn assert_flows_equal(from: &Store, to: &Store, flows: &[(FlowId, AppId)]) {
    for (flow, app) in flows {
        assert_same!(from, to, store => store.load_flow(*flow, app.clone()).await.unwrap().is_some());
        assert_same!(from, to, store => {
            let found = store.flow_deliveries(*flow).await.unwrap().unwrap();
            let deliveries = found.deliveries.into_iter();
            let without_ids = deliveries.map(|one| (one.webhook, one.summary, without_id(Some(one.delivery))));
            let mut deliveries: Vec<_> = without_ids.collect();
            deliveries.sort_by_key(|(webhook, ..)| webhook.0);
            (found.state, found.kept_until, deliveries)
        });
    }
}
