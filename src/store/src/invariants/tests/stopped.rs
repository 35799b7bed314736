//! A step that breaks an invariant ends with an error, and loses nothing.

use std::sync::Arc;

use sakshi_domain::clock::ManualClock;
use sakshi_domain::erasure::ErasureSubject;
use sakshi_domain::ids::ClientId;
use sakshi_domain::time::Timestamp;

use crate::conformance::fixture::{client_with, open_pending};
use crate::conformance::{TestStore as _, run};
use crate::engine::memory::MemoryEngine;
use crate::engine::{Applied, Batch, Engine as _, Guard, Op, Query};
use crate::error::StoreError;
use crate::invariants::CheckedEngine;
use crate::operations::tests::test_store;
use crate::records::client::{key_of_client, key_of_clients};
use crate::records::transaction::key_of_transaction;

const DEBIT: &str = "client: balance changes under a guard: balance has a least value";

#[test]
fn batches_and_records_that_break_an_invariant_are_refused() {
    run(async {
        let engine = MemoryEngine::new(Arc::new(ManualClock::starting_at(Timestamp::from_millis(1_000))));
        let checked = CheckedEngine::new(Box::new(engine.clone()));
        let account = key_of_client(&ClientId::generate());
        let name = |error| if let StoreError::Broken(broken) = error { broken.name() } else { "" };
        let fields = vec![("name", "A".into()), ("created_at", 5.into()), ("balance", 5.into())];
        let create = Batch::new(vec![Guard::Absent(account.clone())], vec![Op::Put(account.clone(), fields)]);
        assert!(matches!(checked.commit(vec![create.clone()]).await.unwrap()[..], [Applied::Done { .. }]));
        assert!(matches!(checked.commit(vec![create.clone()]).await.unwrap()[..], [Applied::Refused { guard: 0, .. }]));
        let balance = async || {
            engine
                .read(vec![Query::Record(account.clone())])
                .await
                .unwrap()
                .record()
                .unwrap()
                .unwrap()
                .integer("balance")
        };
        let debit = || Batch::new(vec![], vec![Op::Add(account.clone(), "balance", (-1).into())]);
        assert_eq!(name(checked.commit(vec![create.clone(), debit()]).await.unwrap_err()), DEBIT);
        assert_eq!(name(checked.commit_until_answered(vec![debit()]).await.unwrap_err()), DEBIT);
        assert_eq!(name(checked.sweep(Timestamp::from_millis(0), 1, debit()).await.unwrap_err()), DEBIT);
        assert_eq!(balance().await, 5);
        let damage = Op::Set(account.clone(), vec![("balance", (-1).into())]);
        engine.commit(vec![Batch::new(vec![], vec![damage])]).await.unwrap();
        let query = || vec![Query::count(key_of_clients()), Query::Record(account.clone())];
        let damaged = "client: balance is within its range";
        assert_eq!(name(checked.read(query()).await.unwrap_err()), damaged);
        assert_eq!(name(checked.read_confirmed(query()).await.unwrap_err()), damaged);
        // A guard that has read the broken record does not disclose it either.
        let error = checked.commit(vec![create]).await.unwrap_err();
        assert_eq!((error.code(), name(error)), ("storage_corrupt", damaged));
        // Other records are served.
        assert!(checked.read(vec![Query::count(key_of_clients())]).await.is_ok());
    });
}

#[test]
fn a_damaged_record_is_not_served_and_can_be_erased() {
    run(async {
        let test = test_store();
        let client = client_with(&test, 5).await;
        let (damaged, whole) = (open_pending(&test, &client).await, open_pending(&test, &client).await);
        let damage = Op::Set(key_of_transaction(damaged.id), vec![("passed", 2.into())]);
        test.engine.commit(vec![Batch::new(vec![], vec![damage])]).await.unwrap();
        let load = async |id| test.store().load_transaction(id).await;
        assert!(matches!(load(damaged.id).await, Err(StoreError::Broken(_))) && load(whole.id).await.is_ok());
        let erased = test.store().erase(ErasureSubject::Transaction(damaged.id)).await.unwrap();
        assert_eq!((erased.transactions, load(damaged.id).await), (1, Ok(None)));
    });
}
