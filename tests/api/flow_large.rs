//! Files of the largest size: byte for byte through a report, its webhook and its poll, and never more
//! of them in memory than a number that is known beforehand.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::join_all;
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};
use serde_json::{Value, json};

use sakshi_kit::answer::Answer;
use sakshi_kit::connector::told;
use sakshi_kit::flow::{Begun, Flow};
use sakshi_kit::goldens::*;
use sakshi_kit::office::{Office, body_of};
use sakshi_kit::upstream::Manner;
use sakshi_kit::waiting::{PLENTY, eventually};

/// The largest file: 10 MiB before Base64.
const FILE_BYTES: usize = 10 * 1_024 * 1_024;

/// A file of the largest size that is like no other.
fn file(seed: u8) -> String {
    let bytes: Vec<u8> = (0..FILE_BYTES).map(|index| (index.wrapping_mul(31) >> 3) as u8 ^ seed).collect();
    STANDARD.encode(bytes)
}

/// The bytes of a golden payload that holds another file.
fn sent_with(begun: &Begun, golden: &str, file: &str) -> String {
    begun.sent(golden).replace(sakshi_kit::flow::PDF, file)
}

/// Compares without printing ten megabytes.
fn assert_same(one: &str, other: &str) {
    assert!(one == other, "{} bytes are not the {} that were meant", one.len(), other.len());
}

#[tokio::test]
async fn ten_megabytes_of_signed_pdf_arrive_byte_for_byte_in_webhook_and_poll() {
    let office = Office::registered().await;
    let file = file(7);
    let body = Flow::Esign.body_with(&[("/documentInfo/content", Some(json!(file)))]);
    let begun = office.backend.begin_with(Flow::Esign, &body).await;
    assert_same(office.upstream.last().body["document"]["content"].as_str().expect("a document"), &file);
    office.connector.tell("esign", &begun.report_with(ESIGN_COMPLETED, &[("/content", Some(json!(file)))])).await;
    let expected = sent_with(&begun, ESIGN_COMPLETED, &file);
    assert_same(body_of(&office.webhooks(1).await[0]), &expected);
    assert_same(&office.backend.poll(&begun).await.text, &expected);
    assert_eq!(office.universe.operator().outcomes(&begun.id).await, ["delivered"]);
}

#[tokio::test]
async fn the_other_flows_carry_files_of_the_same_size() {
    let office = Office::registered().await;
    let file = file(11);
    let stamp_body = Flow::EStamp.body_with(&[("/document/base64FileData", Some(json!(file)))]);
    let stamp = office.backend.begin_with(Flow::EStamp, &stamp_body).await;
    assert_same(office.upstream.last().body["document"]["base64FileData"].as_str().expect("a document"), &file);
    office.connector.tell("estamp", &stamp.report_with(ESTAMP_COMPLETED, &[("/data/fileList/0/base64FileData", Some(json!(file)))])).await;
    assert_same(body_of(&office.webhooks(1).await[0]), &sent_with(&stamp, ESTAMP_COMPLETED, &file));

    let locker = office.backend.begin(Flow::DocLocker).await;
    office.connector.tell("doclocker", &locker.report_with(DOCLOCKER_FETCHED, &[("/data/docs/0/dataPdf", Some(json!(file)))])).await;
    let expected = sent_with(&locker, DOCLOCKER_FETCHED, &file);
    assert_same(&ordered_details(body_of(&office.webhooks(2).await[1])), &expected);
    assert_same(&ordered_details(&office.backend.poll(&locker).await.text), &expected);
}

#[tokio::test]
async fn a_file_one_byte_too_large_is_refused_in_orders_and_reports() {
    let office = Office::registered().await;
    let file = STANDARD.encode(vec![b'%'; FILE_BYTES + 1]);
    let orders = office.upstream.orders().len();
    let body = Flow::Esign.body_with(&[("/documentInfo/content", Some(json!(file)))]);
    assert_eq!(office.backend.begin_as(Flow::Esign, &body).await.refused_fields(), ["documentInfo.content"]);
    assert_eq!(office.upstream.orders().len(), orders);
    let begun = office.backend.begin(Flow::Esign).await;
    let report = begun.report_with(ESIGN_COMPLETED, &[("/content", Some(json!(file)))]);
    assert_eq!(office.connector.report("esign", &report).await.refused_fields(), ["content"]);
    assert!(office.universe.operator().deliveries(&begun.id).await.is_empty());
}

/// Reports until there is room: a connector is told when to come again.
async fn tell_when_there_is_room(office: &Office, begun: &Begun, report: &Value) {
    let result = eventually("room for a report", 3 * PLENTY, || async {
        // Who is refused in the middle of a large body may find the connection closed before the answer.
        let answer = office.connector.attempt(begun.flow.kind(), report).await.ok()?;
        if answer.status != 503 {
            return Some(told(&answer));
        }
        answer.refusal(503);
        assert!(answer.header("retry-after").is_some(), "{}", answer.text);
        None
    });
    // A store that answers late may have kept what was answered with 503, and then knows it.
    assert!(["accepted", "repeated"].contains(&&*result.await));
}

/// Reports two at a time, as many as there is room for; all of their webhooks are on their way at once.
async fn tell_all(office: &Office, flows: &[Begun], reports: &[Value]) {
    for (flows, reports) in flows.chunks(2).zip(reports.chunks(2)) {
        join_all(flows.iter().zip(reports).map(|(begun, report)| tell_when_there_is_room(office, begun, report))).await;
    }
}

/// What the process may have resident in these tests: 64 MiB for itself; 24 MiB of webhooks, which is the
/// room of one origin; two reports at a time, each of them four times (as it came, as it was read, as it is
/// sent and sealed), 112 MiB; polls, 96 MiB; and 88 MiB that the allocator has not given back. A dozen files in
/// memory at once would be 147 MiB more than the webhooks' share.
const RESIDENT_BYTES_MAX: u64 = 384 * 1_024 * 1_024;

#[tokio::test]
async fn a_dozen_large_webhooks_to_a_hanging_receiver_hold_up_nobody_and_fill_no_memory() {
    // The first webhook is under way from its start to the end of the test, however slow the machine is.
    let office = Office::with(&[("SERVER__DRAIN_TIMEOUT_S", "1"), ("WEBHOOKS__TIMEOUT_MS", "600000")]).await;
    let hanging = WebhookReceiver::start(Behaviour::Hang).await.expect("a port");
    let neighbour = office.universe.backend(0).await;
    neighbour.register("ESign", &office.hook("ESign")).await;
    office.backend.register("ESign", &hanging.url("/secret-path/ESign")).await;
    let before = office.universe.process().resident_at_most();
    let file = file(3);
    let mut large = Vec::new();
    for _ in 0..12 {
        large.push(office.backend.begin(Flow::Esign).await);
    }
    let reports: Vec<Value> = large.iter().map(|begun| begun.report_with(ESIGN_COMPLETED, &[("/content", Some(json!(file)))])).collect();
    tell_all(&office, &large, &reports).await;
    assert_eq!(hanging.wait_for(1, PLENTY).await.len(), 1, "the first is under way");
    for number in 1..=5 {
        let begun = neighbour.begin(Flow::Esign).await;
        office.connector.tell("esign", &begun.report(ESIGN_COMPLETED)).await;
        office.webhooks(number).await;
    }
    let large_too = neighbour.begin(Flow::Esign).await;
    office.connector.tell("esign", &large_too.report_with(ESIGN_COMPLETED, &[("/content", Some(json!(file)))])).await;
    assert_same(body_of(&office.webhooks(6).await[5]), &sent_with(&large_too, ESIGN_COMPLETED, &file));
    for begun in &large {
        assert_same(&office.backend.poll(begun).await.text, &sent_with(begun, ESIGN_COMPLETED, &file));
    }
    assert_eq!(hanging.received().len(), 1, "one large file at a time for one origin, and the others are not in memory");
    let most = office.universe.process().resident_at_most();
    eprintln!("resident: {} MiB before, {} MiB at most", before >> 20, most >> 20);
    assert!(most < RESIDENT_BYTES_MAX, "{} MiB were resident", most >> 20);
}

#[tokio::test]
async fn a_dozen_large_webhooks_to_a_healthy_receiver_all_arrive() {
    let office = Office::registered().await;
    let file = file(5);
    let mut large = Vec::new();
    for _ in 0..12 {
        large.push(office.backend.begin(Flow::Esign).await);
    }
    let reports: Vec<Value> = large.iter().map(|begun| begun.report_with(ESIGN_COMPLETED, &[("/content", Some(json!(file)))])).collect();
    tell_all(&office, &large, &reports).await;
    let arrived = office.webhooks(12).await;
    for begun in &large {
        let expected = sent_with(begun, ESIGN_COMPLETED, &file);
        assert_eq!(arrived.iter().filter(|one| body_of(one) == expected).count(), 1, "each arrives once and whole");
    }
    let most = office.universe.process().resident_at_most();
    assert!(most < RESIDENT_BYTES_MAX, "{} MiB were resident", most >> 20);
}

#[tokio::test]
async fn large_orders_at_a_hanging_upstream_leave_room_for_one_of_every_other_client_while_there_is_any() {
    let office = Office::with(&[("SERVER__DRAIN_TIMEOUT_S", "1"), ("UPSTREAMS__TIMEOUT_MS", "60000")]).await;
    let large = Flow::Esign.body_with(&[("/documentInfo/content", Some(json!(file(9))))]);
    let (second, third) = (office.universe.backend(0).await, office.universe.backend(0).await);
    let fourth = office.universe.backend(0).await;
    office.upstream.answer(Manner::Never);
    let mut hanging = Vec::new();
    for (number, backend) in (1..).zip([&office.backend, &office.backend, &second, &third]) {
        let request = backend.beginning(Flow::Esign, &large);
        hanging.push(tokio::spawn(async move { Answer::attempt(request).await.is_ok() }));
        office.upstream.ordered(number).await;
    }
    for backend in [&office.backend, &second, &fourth] {
        // Who is refused in the middle of a large body may find the connection closed before the answer.
        let refused =
            eventually("a refusal", PLENTY, || async { Answer::attempt(backend.beginning(Flow::Esign, &large)).await.ok() }).await;
        assert_eq!(refused.refusal(503), "no_room");
        assert!(refused.header("retry-after").is_some());
    }
    office.upstream.answer(Manner::Well);
    office.backend.begin(Flow::DocLocker).await;
    fourth.begin(Flow::Esign).await;
    let most = office.universe.process().resident_at_most();
    eprintln!("resident with four large orders under way: {} MiB at most", most >> 20);
    assert!(most < RESIDENT_BYTES_MAX, "{} MiB were resident", most >> 20);
    hanging.iter().for_each(tokio::task::JoinHandle::abort);
}
