//! A tree reports its own state.

use futures_util::FutureExt as _;
use sakshi_kit::waiting::TIMEOUT;

use super::dispatch::{FakeResolver, start_sending_to};
use super::{Fixture, large_bounds, run};

#[test]
fn a_tree_is_complete_when_every_shard_has_started() {
    run(async {
        let fixture = Fixture::new().await;
        let (tree, _escalations) = fixture.start_again().await;
        assert!(!tree.is_complete());
        assert!(tree.start_shard().is_some() && tree.is_complete());
        assert!(tree.start_shard().is_none(), "every place is taken");
        tree.stop();
        fixture.end().await;
    });
}

#[test]
fn a_tree_says_which_share_of_its_questions_is_in_flight() {
    run(async {
        let fixture = Fixture::new().await;
        let id = fixture.open().await;
        assert!(fixture.tree.admission_ratio().abs() < f64::EPSILON);
        let mut question = Box::pin(fixture.transactions.get(id));
        assert!((&mut question).now_or_never().is_none());
        let one_of_all = 1.0 / f64::from(u32::try_from(large_bounds().in_flight).unwrap());
        assert!((fixture.tree.admission_ratio() - one_of_all).abs() < f64::EPSILON);
        question.await.unwrap();
        assert_eq!(fixture.tree.hung_arbiter(), None);
        fixture.end().await;
    });
}

#[test]
fn a_tree_says_for_which_receivers_webhooks_wait() {
    run(async {
        let fixture = Fixture::new().await;
        fixture.tree.stop();
        let resolver = FakeResolver::new();
        let (tree, _) = start_sending_to(&fixture, &resolver, &[FakeResolver::UNANSWERED; 2]).await;
        // The notice of the second webhook has been handled when the dispatcher has paused.
        tree.pause_webhooks(TIMEOUT).await;
        let (receivers, number) = tree.receivers(10);
        let view = receivers.into_iter().next().unwrap();
        assert_eq!((view.client, view.origin.as_str()), (fixture.client.clone(), FakeResolver::UNANSWERED));
        assert_eq!((number, view.waiting, view.in_flight), (1, 2, 0));
        tree.stop();
        fixture.end().await;
    });
}
