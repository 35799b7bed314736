//! Credentials in races: an accepted credential is remembered under any concurrency.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::future::join_all;
use proptest::prelude::*;
use sakshi_domain::ids::TxnId;
use sakshi_domain::transaction::CredentialIdentity;

use super::{RedisTestStore, test_store};
use crate::conformance::fixture::{WINDOW, build_completion, build_opening, client_with, open_pending};
use crate::conformance::{TestStore, run};
use crate::{CompleteOutcome, CompleteTransaction, OpenOutcome, PresentedCredential};

/// Index of the transaction that has expired.
const EXPIRED: usize = 3;

/// The presentation of a credential with one of several answers, under one of four transactions. The last transaction
/// has expired.
#[derive(Clone, Copy, Debug)]
struct Presentation {
    transaction: usize,
    answer: u8,
    holder_bound: bool,
}

/// Generates presentations.
fn presentation() -> impl Strategy<Value = Presentation> {
    (0..4_usize, 1..4_u8, prop::bool::weighted(0.2)).prop_map(|(transaction, answer, holder_bound)| Presentation {
        transaction,
        answer,
        holder_bound,
    })
}

/// Builds the completion of a transaction that presents a credential, identified by a number.
fn build_presentation(id: TxnId, answer: u8, holder_bound: bool, credential: u8) -> CompleteTransaction {
    let credential = PresentedCredential { digest: CredentialIdentity([credential; 32]), holder_bound };
    CompleteTransaction { credential: Some(credential), ..build_completion(id, answer) }
}

/// Opens a transaction whose window has ended already.
async fn open_expired(test: &RedisTestStore, client: &sakshi_domain::ids::ClientId) -> TxnId {
    let mut open = build_opening(test, client);
    Arc::make_mut(&mut open.pending).expires_at = test.now() - WINDOW;
    let id = open.pending.id;
    assert!(matches!(test.store().open_transaction(open).await, Ok(OpenOutcome::Opened { .. })));
    id
}

/// Presents one credential many times at once. Then checks the outcome when another transaction presents it.
async fn race(test: &RedisTestStore, credential: u8, presentations: &[Presentation]) {
    let client = client_with(test, 10).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(open_pending(test, &client).await.id);
    }
    ids.push(open_expired(test, &client).await);
    let calls = presentations.iter().map(|presentation| {
        build_presentation(ids[presentation.transaction], presentation.answer, presentation.holder_bound, credential)
    });
    let outcomes = join_all(calls.map(|complete| test.store().complete_transaction(complete))).await;
    // The transactions that accepted the credential without holder binding.
    let (mut unbound, mut is_accepted) = (Vec::new(), false);
    for (presentation, outcome) in presentations.iter().zip(outcomes) {
        match outcome.unwrap() {
            CompleteOutcome::Completed { repeated: false, .. } => {
                is_accepted = true;
                unbound.extend((!presentation.holder_bound).then_some(presentation.transaction));
            }
            CompleteOutcome::Expired => assert_eq!(presentation.transaction, EXPIRED),
            CompleteOutcome::Completed { repeated: true, .. }
            | CompleteOutcome::AlreadyCompleted(_)
            | CompleteOutcome::CredentialReplayed => {}
            CompleteOutcome::NotFound => panic!("it was opened"),
        }
    }
    assert!(unbound.len() <= 1, "one credential, accepted without holder binding under {unbound:?}");
    let other_transaction = open_pending(test, &client).await.id;
    match test.store().complete_transaction(build_presentation(other_transaction, 9, false, credential)).await.unwrap()
    {
        // Without a race, the credential of a refused answer is released.
        CompleteOutcome::CredentialReplayed => assert!(is_accepted || presentations.len() > 1, "it was never accepted"),
        CompleteOutcome::Completed { .. } => assert!(!is_accepted, "it was accepted before"),
        other => panic!("{other:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_accepted_credential_is_remembered_and_a_refused_one_is_released(
        races in prop::collection::vec(prop::collection::vec(presentation(), 1..12), 1..20),
        replies_are_lost in any::<bool>(),
    ) {
        run(async {
            let test = test_store();
            test.store.shared.faults.replies_are_lost.store(replies_are_lost, Ordering::SeqCst);
            for (credential, presentations) in (1..).zip(&races) {
                race(&test, credential, presentations).await;
            }
        });
    }
}
