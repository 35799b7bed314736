//! Files of the largest size: byte for byte through a report, its webhook and its poll, and within a fixed bound of
//! memory.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::join_all;
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};
use serde_json::{Value, json};

use sakshi_kit::answer::Answer;
use sakshi_kit::connector::result_of;
use sakshi_kit::flow::{Flow, OpenedFlow};
use sakshi_kit::flow_fixture::{FlowFixture, body_of};
use sakshi_kit::goldens::*;
use sakshi_kit::upstream::UpstreamBehaviour;
use sakshi_kit::waiting::{TIMEOUT, eventually};

/// The largest file: 10 MiB before Base64.
const FILE_BYTES: usize = 10 * 1_024 * 1_024;

/// Returns a file of the largest size, in Base64. Files of different seeds differ.
fn largest_file(seed: u8) -> String {
    let bytes: Vec<u8> = (0..FILE_BYTES).map(|index| (index.wrapping_mul(31) >> 3) as u8 ^ seed).collect();
    STANDARD.encode(bytes)
}

/// Returns the expected bytes of a golden payload with another file.
fn expected_with_file(opened: &OpenedFlow, golden: &str, file: &str) -> String {
    opened.expected_body(golden).replace(sakshi_kit::flow::PDF, file)
}

/// Compares without printing ten megabytes.
fn assert_same(actual: &str, expected: &str) {
    assert!(actual == expected, "{} bytes differ from the expected {}", actual.len(), expected.len());
}

#[tokio::test]
async fn ten_megabytes_of_signed_pdf_arrive_byte_for_byte_in_webhook_and_poll() {
    let fixture = FlowFixture::with_webhooks().await;
    let file = largest_file(7);
    let body = Flow::Esign.body_with(&[("/documentInfo/content", Some(json!(file)))]);
    let opened = fixture.backend.open_flow_with(Flow::Esign, &body).await;
    assert_same(fixture.upstream.last_order().body["document"]["content"].as_str().expect("a document"), &file);
    report_until_accepted(&fixture, &opened, &opened.report_with(ESIGN_COMPLETED, &[("/content", Some(json!(file)))]))
        .await;
    let expected = expected_with_file(&opened, ESIGN_COMPLETED, &file);
    assert_same(body_of(&fixture.webhooks(1).await[0]), &expected);
    assert_same(&fixture.backend.poll(&opened).await.text, &expected);
    assert_eq!(fixture.node.operator().outcomes(&opened.id).await, ["delivered"]);
}

#[tokio::test]
async fn e_stamps_and_document_lockers_carry_files_of_ten_megabytes() {
    let fixture = FlowFixture::with_webhooks().await;
    let file = largest_file(11);
    let stamp_body = Flow::EStamp.body_with(&[("/document/base64FileData", Some(json!(file)))]);
    let stamp = fixture.backend.open_flow_with(Flow::EStamp, &stamp_body).await;
    assert_same(fixture.upstream.last_order().body["document"]["base64FileData"].as_str().expect("a document"), &file);
    let report = stamp.report_with(ESTAMP_COMPLETED, &[("/data/fileList/0/base64FileData", Some(json!(file)))]);
    report_until_accepted(&fixture, &stamp, &report).await;
    assert_same(body_of(&fixture.webhooks(1).await[0]), &expected_with_file(&stamp, ESTAMP_COMPLETED, &file));

    let locker = fixture.backend.open_flow(Flow::DocLocker).await;
    report_until_accepted(
        &fixture,
        &locker,
        &locker.report_with(DOCLOCKER_FETCHED, &[("/data/docs/0/dataPdf", Some(json!(file)))]),
    )
    .await;
    let expected = expected_with_file(&locker, DOCLOCKER_FETCHED, &file);
    assert_same(&ordered_details(body_of(&fixture.webhooks(2).await[1])), &expected);
    assert_same(&ordered_details(&fixture.backend.poll(&locker).await.text), &expected);
}

#[tokio::test]
async fn a_file_one_byte_too_large_is_refused_in_orders_and_reports() {
    let fixture = FlowFixture::with_webhooks().await;
    let file = STANDARD.encode(vec![b'%'; FILE_BYTES + 1]);
    let orders_before = fixture.upstream.orders().len();
    let body = Flow::Esign.body_with(&[("/documentInfo/content", Some(json!(file)))]);
    assert_eq!(fixture.backend.try_open_flow(Flow::Esign, &body).await.refused_fields(), ["documentInfo.content"]);
    assert_eq!(fixture.upstream.orders().len(), orders_before);
    let opened = fixture.backend.open_flow(Flow::Esign).await;
    let report = opened.report_with(ESIGN_COMPLETED, &[("/content", Some(json!(file)))]);
    assert_eq!(fixture.connector.report("esign", &report).await.refused_fields(), ["content"]);
    assert!(fixture.node.operator().deliveries(&opened.id).await.is_empty());
}

/// Retries a report while the service is out of memory for large bodies.
async fn report_until_accepted(fixture: &FlowFixture, opened: &OpenedFlow, report: &Value) {
    let result = eventually("acceptance of a report", 3 * TIMEOUT, || async {
        // A refusal in the middle of a large body may close the connection before the answer.
        let answer = fixture.connector.attempt(opened.flow.kind(), report).await.ok()?;
        match answer.status {
            // On a busy machine a body may arrive too slowly. Then nothing was accepted.
            408 => None,
            503 => {
                answer.refusal(503);
                assert!(answer.header("retry-after").is_some(), "{}", answer.text);
                None
            }
            _ => Some(result_of(&answer)),
        }
    });
    // A slow store may have stored a report that got a 503. The retry is then a repetition.
    assert!(["accepted", "repeated"].contains(&&*result.await));
}

/// Sends the reports two at a time, with retries.
async fn report_all(fixture: &FlowFixture, flows: &[OpenedFlow], reports: &[Value]) {
    for (flows, reports) in flows.chunks(2).zip(reports.chunks(2)) {
        join_all(flows.iter().zip(reports).map(|(opened, report)| report_until_accepted(fixture, opened, report)))
            .await;
    }
}

/// Resident memory allowed in these tests: 64 MiB for the process; 24 MiB of webhooks, the room of one origin; two
/// reports at a time, four copies of each (as received, read, sent and sealed), 112 MiB; polls, 96 MiB; and 88 MiB not
/// yet returned by the allocator. A dozen files in memory at once would exceed the webhooks' share by 147 MiB.
const RESIDENT_BYTES_MAX: u64 = 384 * 1_024 * 1_024;

#[tokio::test]
async fn large_webhooks_to_a_hanging_receiver_delay_nobody_and_fill_no_memory() {
    // The first webhook is in flight from its start to the end of the test, on any machine.
    let fixture =
        FlowFixture::start_with(&[("SERVER__DRAIN_TIMEOUT_S", "1"), ("WEBHOOKS__TIMEOUT_MS", "600000")]).await;
    let hanging = WebhookReceiver::start(Behaviour::Hang).await.expect("a port");
    let neighbour = fixture.node.backend_with_credits(0).await;
    neighbour.register("ESign", &fixture.hook("ESign")).await;
    fixture.backend.register("ESign", &hanging.url("/secret-path/ESign")).await;
    let before = fixture.node.process().peak_resident_bytes();
    let file = largest_file(3);
    let mut large_flows = Vec::new();
    for _ in 0..12 {
        large_flows.push(fixture.backend.open_flow(Flow::Esign).await);
    }
    let reports: Vec<Value> = large_flows
        .iter()
        .map(|opened| opened.report_with(ESIGN_COMPLETED, &[("/content", Some(json!(file)))]))
        .collect();
    report_all(&fixture, &large_flows, &reports).await;
    assert_eq!(hanging.wait_for(1, TIMEOUT).await.len(), 1, "the first webhook is in flight");
    for number in 1..=5 {
        let opened = neighbour.open_flow(Flow::Esign).await;
        fixture.connector.report_new("esign", &opened.report(ESIGN_COMPLETED)).await;
        fixture.webhooks(number).await;
    }
    let neighbours_large = neighbour.open_flow(Flow::Esign).await;
    report_until_accepted(
        &fixture,
        &neighbours_large,
        &neighbours_large.report_with(ESIGN_COMPLETED, &[("/content", Some(json!(file)))]),
    )
    .await;
    assert_same(body_of(&fixture.webhooks(6).await[5]), &expected_with_file(&neighbours_large, ESIGN_COMPLETED, &file));
    for opened in &large_flows {
        assert_same(&fixture.backend.poll(opened).await.text, &expected_with_file(opened, ESIGN_COMPLETED, &file));
    }
    assert_eq!(hanging.received().len(), 1, "one large webhook at a time is in flight to one origin");
    let peak = fixture.node.process().peak_resident_bytes();
    eprintln!("resident: {} MiB before, {} MiB at peak", before >> 20, peak >> 20);
    assert!(peak < RESIDENT_BYTES_MAX, "{} MiB were resident", peak >> 20);
}

#[tokio::test]
async fn a_dozen_large_webhooks_to_a_healthy_receiver_all_arrive() {
    let fixture = FlowFixture::with_webhooks().await;
    let file = largest_file(5);
    let mut large_flows = Vec::new();
    for _ in 0..12 {
        large_flows.push(fixture.backend.open_flow(Flow::Esign).await);
    }
    let reports: Vec<Value> = large_flows
        .iter()
        .map(|opened| opened.report_with(ESIGN_COMPLETED, &[("/content", Some(json!(file)))]))
        .collect();
    report_all(&fixture, &large_flows, &reports).await;
    let webhooks = fixture.webhooks(12).await;
    for opened in &large_flows {
        let expected = expected_with_file(opened, ESIGN_COMPLETED, &file);
        assert_eq!(
            webhooks.iter().filter(|webhook| body_of(webhook) == expected).count(),
            1,
            "each arrives once and whole"
        );
    }
    let peak = fixture.node.process().peak_resident_bytes();
    assert!(peak < RESIDENT_BYTES_MAX, "{} MiB were resident", peak >> 20);
}

#[tokio::test]
async fn large_orders_at_a_hanging_upstream_leave_room_for_other_clients() {
    let fixture =
        FlowFixture::start_with(&[("SERVER__DRAIN_TIMEOUT_S", "1"), ("UPSTREAMS__TIMEOUT_MS", "600000")]).await;
    let large_body = Flow::Esign.body_with(&[("/documentInfo/content", Some(json!(largest_file(9))))]);
    let (second, third) = (fixture.node.backend_with_credits(0).await, fixture.node.backend_with_credits(0).await);
    let fourth = fixture.node.backend_with_credits(0).await;
    fixture.upstream.set_behaviour(UpstreamBehaviour::Hang);
    let mut waiting_requests = Vec::new();
    for (number, backend) in (1..).zip([&fixture.backend, &fixture.backend, &second, &third]) {
        let request = backend.flow_request(Flow::Esign, &large_body);
        waiting_requests.push(tokio::spawn(async move { Answer::attempt(request).await.is_ok() }));
        fixture.upstream.wait_for_orders(number).await;
    }
    for backend in [&fixture.backend, &second, &fourth] {
        // A refusal in the middle of a large body may close the connection before the answer.
        let refused = eventually("a refusal", 3 * TIMEOUT, || async {
            Answer::attempt(backend.flow_request(Flow::Esign, &large_body)).await.ok()
        })
        .await;
        assert_eq!(refused.refusal(503), "overloaded");
        assert!(refused.header("retry-after").is_some());
    }
    fixture.upstream.set_behaviour(UpstreamBehaviour::Accept);
    fixture.backend.open_flow(Flow::DocLocker).await;
    fourth.open_flow(Flow::Esign).await;
    let peak = fixture.node.process().peak_resident_bytes();
    eprintln!("resident with four large orders in flight: {} MiB at peak", peak >> 20);
    assert!(peak < RESIDENT_BYTES_MAX, "{} MiB were resident", peak >> 20);
    waiting_requests.iter().for_each(tokio::task::JoinHandle::abort);
}
