//! What flow actors promise to upstreams that report.

use sakshi_kit::waiting::assert_within;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use sakshi_domain::flow::flow_state::FlowState;
use sakshi_domain::ids::AppId;
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};
use sakshi_store::ReportFlowOutcome;

use super::panics::{Panic, PanicIn};
use super::{Fixture, roomy, run, until};
use crate::{AskError, TreeBounds};

const PATIENCE: Duration = Duration::from_secs(20);
const NOWHERE: &str = "http://127.0.0.1:9/hook";
const SIGNED: [&str; 2] = ["Completed"; 2];

fn accepted(outcome: &Result<ReportFlowOutcome, AskError>) -> bool {
    matches!(outcome, Ok(ReportFlowOutcome::Accepted { .. }))
}

#[test]
fn three_identical_reports_make_one_delivery() {
    run(async {
        let fixture = Fixture::new().await;
        let receiver = WebhookReceiver::start(Behaviour::Answer(200)).await.unwrap();
        let id = fixture.open_locker(&receiver.url("/hook")).await;
        let reports = (0..3).map(|_| fixture.flows.report(fixture.fetched(id, 300)));
        let outcomes = join_all(reports).await;
        let began = Instant::now();
        let queued = outcomes.iter().filter(|outcome| matches!(outcome, Ok(ReportFlowOutcome::Accepted { queued: Some(_), .. }))).count();
        let repeated = outcomes.iter().filter(|outcome| **outcome == Ok(ReportFlowOutcome::Repeated)).count();
        assert_eq!((queued, repeated), (1, 2), "{outcomes:?}");
        assert_eq!(receiver.wait_for(1, PATIENCE).await.len(), 1);
        assert_within(began.elapsed(), Duration::from_secs(1), "a webhook whose dispatcher was told");
        until("nothing is under way", || fixture.tree.live_flows() == 0 && fixture.tree.attempts_in_flight() == 0).await;
        assert_eq!(fixture.store.due_deliveries(None, None, 10).await.unwrap(), []);
        assert_eq!(receiver.received().len(), 1);
        fixture.end().await;
    });
}

#[test]
fn reports_of_one_flow_are_taken_in_the_order_in_which_they_arrive() {
    run(async {
        let fixture = Fixture::new().await;
        let id = fixture.open_document(NOWHERE).await;
        let first = fixture.flows.report(fixture.signed(id, ["Completed", "Pending"]));
        let last = fixture.flows.report(fixture.signed(id, SIGNED));
        let late = fixture.flows.report(fixture.signed(id, ["Completed", "Pending"]));
        let (first, last, late) = tokio::join!(first, last, late);
        assert!(accepted(&first) && accepted(&last));
        assert!(matches!(late, Ok(ReportFlowOutcome::Refused(_))), "{late:?}");
        until("its actor has ended", || fixture.tree.live_flows() == 0).await;
        fixture.end().await;
    });
}

#[test]
fn a_flow_actor_that_panics_loses_no_report_that_waits_behind() {
    run(async {
        let fixture = Fixture::new().await;
        let id = fixture.open_document(NOWHERE).await;
        assert_eq!(fixture.tree.live_flows(), 1);
        fixture.tree.flows.get(0).unwrap().do_send(PanicIn(id));
        let reports = [["Completed", "Pending"], SIGNED].map(|signers| fixture.flows.report(fixture.signed(id, signers)));
        assert!(join_all(reports).await.iter().all(accepted));
        let shard = fixture.tree.view().children.into_iter().find(|node| node.name == "flows-0").unwrap();
        assert_eq!((shard.restarts, shard.state), (1, "running"));
        fixture.tree.flows.get(0).unwrap().do_send(Panic);
        assert_eq!(fixture.flows.report(fixture.signed(id, SIGNED)).await, Ok(ReportFlowOutcome::Repeated), "after the shard's panic");
        fixture.end().await;
    });
}

#[test]
fn a_full_shard_takes_reports_and_keeps_no_further_actor() {
    run(async {
        let fixture = Fixture::with(TreeBounds { live_flows: 1, ..roomy() }).await;
        let waiting = fixture.open_document(NOWHERE).await;
        let beyond = fixture.open_document(NOWHERE).await;
        until("the one beyond the bound has ended", || fixture.tree.live_flows() == 1).await;
        assert!(accepted(&fixture.flows.report(fixture.signed(beyond, ["Completed", "Pending"])).await));
        until("it has ended again", || fixture.tree.live_flows() == 1).await;
        let reports = [waiting, beyond].map(|id| fixture.flows.report(fixture.signed(id, SIGNED)));
        assert!(join_all(reports).await.iter().all(accepted));
        until("all have ended", || fixture.tree.live_flows() == 0).await;
        fixture.end().await;
    });
}

#[test]
fn a_flow_is_seen_by_its_app_alone_and_a_question_starts_no_actor() {
    run(async {
        let fixture = Fixture::new().await;
        let id = fixture.open_locker(NOWHERE).await;
        until("its actor has ended", || fixture.tree.live_flows() == 0).await;
        let record = fixture.flows.get(id, fixture.app.clone()).await.unwrap().unwrap();
        assert!(matches!(record.state, FlowState::DocLocker(_)));
        assert_eq!(fixture.flows.get(id, AppId::generate()).await, Ok(None));
        let unknown = fixture.flows.new_id(&fixture.client);
        assert_eq!(fixture.flows.report(fixture.fetched(unknown, 3)).await, Ok(ReportFlowOutcome::NotFound));
        until("no actor is left", || fixture.tree.live_flows() == 0).await;
        fixture.end().await;
    });
}

#[test]
fn a_report_during_a_drain_is_taken_and_its_webhook_sent_by_the_next_start() {
    run(async {
        let fixture = Fixture::new().await;
        let receiver = WebhookReceiver::start(Behaviour::Answer(200)).await.unwrap();
        let id = fixture.open_document(&receiver.url("/hook")).await;
        assert_eq!(fixture.tree.drain(PATIENCE).await, 0);
        let outcome = fixture.flows.report(fixture.signed(id, SIGNED)).await;
        assert!(matches!(outcome, Ok(ReportFlowOutcome::Accepted { queued: Some(_), .. })), "{outcome:?}");
        assert_eq!(fixture.store.due_deliveries(None, None, 10).await.unwrap().len(), 1);
        assert_eq!((fixture.tree.attempts_in_flight(), receiver.received().len()), (0, 0));
        let (next, _escalations) = fixture.start_again().await;
        assert_eq!(receiver.wait_for(1, PATIENCE).await.len(), 1);
        next.stop();
        fixture.end().await;
    });
}

#[test]
fn a_report_that_nobody_waits_for_any_more_is_not_begun() {
    run(async {
        let fixture = Fixture::new().await;
        let id = fixture.open_document(NOWHERE).await;
        let under_way = fixture.flows.report(fixture.signed(id, ["Completed", "Pending"]));
        let mut given_up = Box::pin(fixture.flows.report(fixture.signed(id, SIGNED)));
        let (under_way, ()) = tokio::join!(under_way, async {
            assert!(given_up.as_mut().now_or_never().is_none());
            drop(given_up);
        });
        assert!(accepted(&under_way));
        assert_eq!(fixture.flows.report(fixture.signed(id, ["Completed", "Pending"])).await, Ok(ReportFlowOutcome::Repeated));
        fixture.end().await;
    });
}
