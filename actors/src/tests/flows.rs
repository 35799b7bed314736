//! Guarantees to upstreams that report on flows.

use futures_util::future::join_all;
use sakshi_domain::flow::flow_state::FlowState;
use sakshi_domain::ids::AppId;
use sakshi_kit::waiting::TIMEOUT;
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};
use sakshi_store::ReportFlowOutcome;

use super::dispatch::stop_scans;
use super::{Fixture, run, wait_until};

const NOWHERE: &str = "http://127.0.0.1:9/hook";
/// The statuses of two signers who have signed.
const SIGNED: [&str; 2] = ["Completed"; 2];

#[test]
fn three_identical_reports_make_one_delivery() {
    run(async {
        let fixture = Fixture::new().await;
        let receiver = WebhookReceiver::start(Behaviour::Answer(200)).await.unwrap();
        let id = fixture.open_locker_flow(&receiver.url("/hook")).await;
        stop_scans(&fixture.tree).await;
        let reports = (0..3).map(|_| fixture.flows.report(fixture.locker_report(id, 300)));
        let outcomes = join_all(reports).await;
        let queued = outcomes
            .iter()
            .filter(|outcome| matches!(outcome, Ok(ReportFlowOutcome::Accepted { queued: Some(_), .. })))
            .count();
        let repeated = outcomes.iter().filter(|outcome| **outcome == Ok(ReportFlowOutcome::Repeated)).count();
        assert_eq!((queued, repeated), (1, 2), "{outcomes:?}");
        assert_eq!(receiver.wait_for(1, TIMEOUT).await.len(), 1);
        wait_until("nothing is under way", || fixture.tree.attempts_in_flight() == 0).await;
        assert_eq!(fixture.store.due_deliveries(None, None, 10).await.unwrap(), []);
        assert_eq!(receiver.received().len(), 1);
        fixture.end().await;
    });
}

#[test]
fn only_the_app_of_a_flow_can_read_it() {
    run(async {
        let fixture = Fixture::new().await;
        let id = fixture.open_locker_flow(NOWHERE).await;
        let record = fixture.flows.get(id, fixture.app.clone()).await.unwrap().unwrap();
        assert!(matches!(record.state, FlowState::DocLocker(_)));
        assert_eq!(fixture.flows.get(id, AppId::generate()).await, Ok(None));
        let unknown = fixture.flows.new_id(&fixture.client);
        assert_eq!(fixture.flows.report(fixture.locker_report(unknown, 3)).await, Ok(ReportFlowOutcome::NotFound));
        fixture.end().await;
    });
}

#[test]
fn a_report_during_a_drain_is_accepted_and_its_webhook_sent_after_a_restart() {
    run(async {
        let fixture = Fixture::new().await;
        let receiver = WebhookReceiver::start(Behaviour::Answer(200)).await.unwrap();
        let id = fixture.open_document(&receiver.url("/hook")).await;
        assert_eq!(fixture.tree.drain(TIMEOUT).await, 0);
        let outcome = fixture.flows.report(fixture.signed_report(id, SIGNED)).await;
        assert!(matches!(outcome, Ok(ReportFlowOutcome::Accepted { queued: Some(_), .. })), "{outcome:?}");
        assert_eq!(fixture.store.due_deliveries(None, None, 10).await.unwrap().len(), 1);
        assert_eq!((fixture.tree.attempts_in_flight(), receiver.received().len()), (0, 0));
        let (next, _escalations) = fixture.start_again().await;
        assert_eq!(receiver.wait_for(1, TIMEOUT).await.len(), 1);
        next.stop();
        fixture.end().await;
    });
}
