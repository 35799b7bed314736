//! Operators: found by their tokens, and revoked permanently.
#![allow(missing_docs)] // The name of each function states the property that it checks.

use std::time::Duration;

use sakshi_domain::ids::OperatorId;
use sakshi_domain::operator::{OperatorRecord, Role};
use sakshi_domain::tenancy::KeyDigest;

use super::TestStore;

/// Builds an operator, to be added.
pub(crate) fn build_operator(test: &impl TestStore, name: &str) -> OperatorRecord {
    let expires_at = Some(test.now() + Duration::from_secs(60));
    let operator_id = OperatorId::generate();
    OperatorRecord {
        operator_id,
        name: name.to_owned(),
        role: Role::Support,
        created_at: test.now(),
        expires_at,
        revoked_at: None,
    }
}

pub(crate) async fn an_operator_is_found_by_its_token_and_listed_by_creation(test: &impl TestStore) {
    let store = test.store();
    assert_eq!(store.operators().await, Ok(vec![]));
    let first = build_operator(test, "Planted Operator");
    store.add_operator(first.clone(), KeyDigest([1; 32])).await.unwrap();
    test.advance(Duration::from_millis(1));
    let second = build_operator(test, "Another One");
    store.add_operator(second.clone(), KeyDigest([2; 32])).await.unwrap();
    let changed = OperatorRecord { role: Role::Owner, ..first.clone() };
    store.add_operator(changed, KeyDigest([1; 32])).await.unwrap();
    assert_eq!(store.find_operator(KeyDigest([1; 32])).await.as_ref(), Ok(&Some(first.clone())));
    assert_eq!(store.find_operator(KeyDigest([3; 32])).await, Ok(None));
    assert_eq!(store.operators().await, Ok(vec![first, second]));
}

pub(crate) async fn a_revoked_operator_keeps_the_time_of_the_first_revocation(test: &impl TestStore) {
    let store = test.store();
    let (active, retired) = (build_operator(test, "Active"), build_operator(test, "Retired"));
    store.add_operator(active.clone(), KeyDigest([1; 32])).await.unwrap();
    store.add_operator(retired.clone(), KeyDigest([2; 32])).await.unwrap();
    let first = test.now();
    let revoked = Some(OperatorRecord { revoked_at: Some(first), ..retired.clone() });
    assert_eq!(store.revoke_operator(retired.operator_id.clone(), first).await.as_ref(), Ok(&revoked));
    test.advance(Duration::from_secs(1));
    assert_eq!(store.revoke_operator(retired.operator_id, test.now()).await.as_ref(), Ok(&revoked));
    assert_eq!(store.find_operator(KeyDigest([2; 32])).await, Ok(revoked));
    assert_eq!(store.find_operator(KeyDigest([1; 32])).await, Ok(Some(active)));
    assert_eq!(store.revoke_operator(OperatorId::generate(), first).await, Ok(None));
}
