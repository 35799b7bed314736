//! The properties of every store, over the memory engine.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use sakshi_domain::clock::{Clock as _, ManualClock};
use sakshi_domain::time::Timestamp;

use super::RecordStore;
use crate::conformance::TestStore;
use crate::conformance::fixture::{RESULT_TTL, RETENTION};
use crate::conformance::flow_fixture::{FLOW, document, opened, party};
use crate::conformance::models::{Behaviour, event, flows, transactions};
use crate::conformance::run;
use crate::engine::memory::MemoryEngine;
use crate::redis::NodeId;
use crate::vault::test_vault;
use crate::{LapseFlowOutcome, Retention, Store};

mod outbox;
mod reseal;
mod shared;

/// A store in memory, with a clock that the test moves.
struct MemoryTestStore {
    store: RecordStore,
    engine: MemoryEngine,
    clock: Arc<ManualClock>,
}

/// It does what it is asked for at once.
const BEHAVIOUR: Behaviour = Behaviour { in_order: true, expires: false };

fn test_store() -> MemoryTestStore {
    test_store_keeping(RETENTION)
}

fn test_store_keeping(retention: Retention) -> MemoryTestStore {
    let clock = Arc::new(ManualClock::starting_at(Timestamp::from_millis(1_900_000_000_000)));
    store_with(MemoryEngine::new(clock.clone()), clock, &[7, 6], NodeId::generate(), retention)
}

/// The store of a node over what is kept, with these keys; the first seals.
fn store_with(engine: MemoryEngine, clock: Arc<ManualClock>, keys: &[u8], node: NodeId, retention: Retention) -> MemoryTestStore {
    let store = RecordStore::new(Box::new(engine.clone()), Arc::new(test_vault(keys)), retention, node, None);
    MemoryTestStore { store, engine, clock }
}

impl TestStore for MemoryTestStore {
    fn store(&self) -> &dyn Store {
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

#[test]
fn a_flow_that_is_gone_leaves_the_list_of_open_invitations() {
    run(async {
        let test = test_store();
        let party = party(&test).await;
        let flow = opened(&test, document(&test, &party, None)).await;
        test.advance(FLOW + RESULT_TTL);
        assert_eq!(test.store().lapsed_flows(1).await, Ok(vec![flow.id]));
        assert_eq!(test.store().lapse_flow(flow.id, RESULT_TTL).await, Ok(LapseFlowOutcome::NotFound));
        assert_eq!(test.store().lapsed_flows(1).await, Ok(vec![]));
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_interleaving_does_what_the_model_says(steps in prop::collection::vec(transactions::step(), 1..160)) {
        run(transactions::compare(&test_store(), BEHAVIOUR, steps));
    }

    #[test]
    fn any_interleaving_at_an_event_does_what_the_model_says(steps in prop::collection::vec(event::step(), 1..200)) {
        run(event::compare(&test_store_keeping(event::KEPT), BEHAVIOUR, steps));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_interleaving_of_reports_does_what_the_model_says(steps in prop::collection::vec(flows::step(), 1..60)) {
        run(flows::compare(&test_store(), steps));
    }

    #[test]
    fn racing_reports_queue_at_most_one_delivery_for_each_key(steps in prop::collection::vec(flows::step(), 1..24)) {
        run(flows::race(&test_store(), steps));
    }
}
