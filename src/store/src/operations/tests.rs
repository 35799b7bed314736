//! The conformance suite over the memory engine, and tests of operations on it.

use std::sync::Arc;
use std::time::Duration;

use sakshi_domain::clock::{Clock as _, ManualClock};
use sakshi_domain::time::Timestamp;

use super::Store;
use crate::conformance::TestStore;
use crate::conformance::fixture::{RESULT_TTL, RETENTION};
use crate::conformance::flow_fixture::{FLOW_TTL, create_client_app, document_flow, open_flow};
use crate::conformance::run;
use crate::engine::memory::MemoryEngine;
use crate::redis::NodeId;
use crate::vault::test_vault;
use crate::{LapseFlowOutcome, Retention};

mod changes;
pub(crate) mod large;
mod outbox;
mod reseal;
mod shared;

/// The keys of the tests' stores, each named by the byte that it repeats. The first seals.
pub(crate) const VAULT_KEYS: [u8; 2] = [7, 6];

/// A store in memory, with a clock that the test advances.
pub(crate) struct MemoryTestStore {
    store: Store,
    pub(crate) engine: MemoryEngine,
    pub(crate) clock: Arc<ManualClock>,
}

/// Returns an empty store.
pub(crate) fn test_store() -> MemoryTestStore {
    test_store_with_retention(RETENTION)
}

fn test_store_with_retention(retention: Retention) -> MemoryTestStore {
    let clock = Arc::new(ManualClock::starting_at(Timestamp::from_millis(1_900_000_000_000)));
    store_with(MemoryEngine::new(clock.clone()), clock, &VAULT_KEYS, NodeId::generate(), retention)
}

/// Opens the store of a node over the records of an engine, with these keys (see [`VAULT_KEYS`]).
fn store_with(
    engine: MemoryEngine,
    clock: Arc<ManualClock>,
    keys: &[u8],
    node: NodeId,
    retention: Retention,
) -> MemoryTestStore {
    let store = Store::new(Box::new(engine.clone()), Arc::new(test_vault(keys)), retention, node, None);
    MemoryTestStore { store, engine, clock }
}

impl TestStore for MemoryTestStore {
    fn store(&self) -> &Store {
        &self.store
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn advance(&self, span: Duration) {
        self.clock.advance(span);
    }
}

mod conformance {
    use super::test_store;

    crate::store_conformance!(test_store());
}

mod models {
    use super::{test_store, test_store_with_retention};

    // The memory engine executes every call immediately.
    crate::conformance::models::store_models!(
        Behaviour { executes_in_order: true, removes_expired: false }, test_store(),
        test_store_with_retention(event::EVENT_RETENTION),
        transactions: 64, events: 64, flows: 48
    );
}

#[test]
fn a_removed_flow_leaves_the_list_of_open_invitations() {
    run(async {
        let test = test_store();
        let client_app = create_client_app(&test).await;
        let flow = open_flow(&test, document_flow(&test, &client_app, None)).await;
        test.advance(FLOW_TTL + RESULT_TTL);
        assert_eq!(test.store().lapsed_flows(1).await, Ok(vec![flow.id]));
        assert_eq!(test.store().lapse_flow(flow.id, RESULT_TTL).await, Ok(LapseFlowOutcome::NotFound));
        assert_eq!(test.store().lapsed_flows(1).await, Ok(vec![]));
    });
}
