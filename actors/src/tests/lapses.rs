//! Lapses of documents that are not signed in time.

use sakshi_kit::waiting::{TIMEOUT, assert_within};
use std::time::{Duration, Instant};

use sakshi_domain::flow::flow_id::FlowId;
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};
use sakshi_store::{CreateOutcome, LapseFlowOutcome, ReportFlowOutcome};
use serde_json::Value;

use super::flow_fixture::INVITED;
use super::{Fixture, run, wait_until, yield_often};

/// Expects exactly one webhook, which reports the document as expired.
async fn expect_one_webhook(fixture: &Fixture, receiver: &WebhookReceiver, id: FlowId) {
    let received = receiver.wait_for(1, TIMEOUT).await;
    let body: Value = serde_json::from_slice(&received[0].body).unwrap();
    assert_eq!((&body["documentId"], &body["documentStatus"]), (&Value::from(id.to_string()), &Value::from("Expired")));
    wait_until("nothing is under way", || fixture.tree.attempts_in_flight() == 0).await;
    assert_eq!(fixture.store.lapsed_flows(10).await.unwrap(), []);
    assert_eq!(receiver.received().len(), 1);
}

/// Lets the timers of this arbiter fire.
async fn tick() {
    tokio::time::advance(Duration::from_millis(1_000)).await;
    yield_often().await;
}

#[test]
fn a_document_lapses_after_its_deadline_and_not_a_millisecond_earlier() {
    run(async {
        let fixture = Fixture::new().await;
        let receiver = WebhookReceiver::start(Behaviour::Answer(200)).await.unwrap();
        let id = fixture.open_document(&receiver.url("/hook")).await;
        tokio::time::pause();
        fixture.clock.advance(INVITED - Duration::from_millis(1));
        for _ in 0..5 {
            tick().await;
        }
        assert!(receiver.received().is_empty());
        assert!(matches!(fixture.store.lapse_flow(id, INVITED).await, Ok(LapseFlowOutcome::NotDue)));
        let began = Instant::now();
        fixture.clock.advance(Duration::from_millis(1));
        tokio::time::resume();
        expect_one_webhook(&fixture, &receiver, id).await;
        assert_within(began.elapsed(), Duration::from_secs(10), "the end without the invitation's time");
        let late = fixture.flows.report(fixture.signed_report(id, ["Completed"; 2])).await;
        assert!(matches!(late, Ok(ReportFlowOutcome::Refused(_))), "{late:?}");
        fixture.end().await;
    });
}

#[test]
fn a_document_that_another_node_opened_lapses_all_the_same() {
    run(async {
        let fixture = Fixture::new().await;
        let receiver = WebhookReceiver::start(Behaviour::Answer(200)).await.unwrap();
        let open = fixture.document_opening(&receiver.url("/opened-by-another-node"));
        let id = open.flow.header().id;
        assert_eq!(fixture.store.open_flow(open).await, Ok(CreateOutcome::Created));
        fixture.clock.advance(INVITED);
        expect_one_webhook(&fixture, &receiver, id).await;
        fixture.end().await;
    });
}

#[test]
fn many_documents_that_lapse_together_send_one_webhook_each() {
    run(async {
        let fixture = Fixture::new().await;
        let receiver = WebhookReceiver::start(Behaviour::Answer(200)).await.unwrap();
        let mut ids = Vec::new();
        for _ in 0..40 {
            ids.push(fixture.open_document(&receiver.url("/hook")).await.to_string());
        }
        fixture.clock.advance(INVITED);
        let received = receiver.wait_for(40, TIMEOUT).await;
        let document_id =
            |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap()["documentId"].as_str().unwrap().to_owned();
        let mut reported: Vec<_> = received.iter().map(|webhook| document_id(&webhook.body)).collect();
        reported.sort_unstable();
        ids.sort_unstable();
        assert_eq!(reported, ids);
        assert_eq!(fixture.store.lapsed_flows(10).await.unwrap(), []);
        fixture.end().await;
    });
}
