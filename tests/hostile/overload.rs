//! Twice as many inits as a node can make, then half as many. `sakshi-benches overload` has the figures; here it is held that most of the
//! capacity is used meanwhile, and that the clients who repeat do not keep it down afterwards.

use std::sync::Arc;
use std::time::Duration;

use sakshi_kit::crowd::Crowd;
use sakshi_kit::node::TestNode;
use sakshi_kit::overload::{Parts, overload};

/// The bench has 0.9 on a quiet machine; here others may take half of the processors in any part of the run.
const GOODPUT_MIN: f64 = 0.4;
const CREDITS: u64 = 10_000_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_overloaded_node_serves_on_and_recovers_while_clients_repeat() {
    let is_long = std::env::var("SAKSHI_TESTS").is_ok_and(|form| form == "long");
    let mut node = TestNode::unlaunched(&[("SERVER__WORKERS", "2")]);
    node.set_variable("SAKSHI_LOG", "off");
    node.launch().await;
    let backend = node.backend(CREDITS).await;
    let address = node.addresses.public("").trim_start_matches("http://").parse().expect("an address");
    let body = r#"{"claims":["name"],"channel":"qr"}"#;
    let head = format!(
        "POST /api/v1/nationalid-ovse/init HTTP/1.1\r\nhost: x\r\nx-api-key: {}\r\nx-api-app-id: {}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n",
        backend.key,
        backend.app,
        body.len()
    );
    let request = move |number| format!("{head}idempotency-key: {number}\r\n\r\n{body}").into_bytes();
    let crowd = Crowd::of(address, true, Arc::new(request));
    let seconds = Duration::from_secs;
    let (span, afterwards) = if is_long { (seconds(60), seconds(30)) } else { (seconds(6), seconds(14)) };
    let outcome = overload(&crowd, Parts { capacity: seconds(2), overload: span, afterwards }).await;
    for (number, second) in outcome.seconds.iter().enumerate() {
        let (came, served, refused) = (second.came, second.served, second.refused);
        eprintln!("{number:>3} s: {came} came, {served} served, {refused} refused, p99 {:?}", second.p99());
    }
    let share = outcome.goodput / outcome.capacity;
    eprintln!(
        "{:.0} inits a second; twice as many: {share:.2} of it; as before after {} s; {:.1} % gave up",
        outcome.capacity,
        outcome.normal,
        outcome.gave_up * 100.0
    );
    assert!(share >= GOODPUT_MIN, "{share:.2} of the capacity was used");
    let last = outcome.seconds.last().expect("a second");
    assert!(last.served > 0 && last.refused == 0, "clients are still refused: {last:?}");
}
