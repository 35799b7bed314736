//! Webhooks while the process has no free file descriptor for a connection, which is not the receiver's fault.
//!
//! The limit applies to a process, so each test runs this binary again under `ulimit`.

use std::fs::File;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::receiver::{read_request, start_receiver};
use crate::sender::{client, options, url};
use bytes::Bytes;
use sakshi_domain::delivery::DeliveryOutcome;
use sakshi_outbound::client::{WebhookClient, WebhookClientOptions};
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;

const BODY: Bytes = Bytes::from_static(b"{}");
/// Environment variable that marks the process with the limit.
const LIMITED: &str = "SAKSHI_TEST_LIMITED";

/// Runs a test of this file again in a process that may open 64 files.
fn run_limited(test: &str) {
    let this_binary = std::env::current_exe().unwrap();
    let mut shell = Command::new("sh");
    let command = shell
        .args(["-c", "ulimit -n 64; exec \"$0\" \"$@\""])
        .arg(this_binary)
        .args([&format!("few_descriptors::{test}"), "--exact", "--nocapture"])
        .env(LIMITED, "1");
    let output = command.output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && stdout.contains("1 passed"),
        "{stdout}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Returns true in the process with the limit.
fn is_limited() -> bool {
    std::env::var_os(LIMITED).is_some()
}

/// Uses up all remaining file descriptors, until the files are dropped.
fn take_all_descriptors() -> Vec<File> {
    let files: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    assert!(!files.is_empty());
    files
}

/// Starts a receiver. Also returns the number of requests that it has received.
async fn start_counting_receiver() -> (std::net::SocketAddr, Arc<AtomicUsize>) {
    let received = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&received);
    let address = start_receiver(move |mut stream| {
        let counter = Arc::clone(&counter);
        async move {
            if read_request(&mut stream).await.is_some() {
                counter.fetch_add(1, Ordering::SeqCst);
            }
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        }
    })
    .await;
    (address, received)
}

#[tokio::test]
async fn a_webhook_is_sent_once_as_soon_as_a_descriptor_is_free() {
    if !is_limited() {
        return run_limited("a_webhook_is_sent_once_as_soon_as_a_descriptor_is_free");
    }
    let (address, received) = start_counting_receiver().await;
    for host in [address.to_string(), format!("localhost:{}", address.port())] {
        received.store(0, Ordering::SeqCst);
        let (client, target, files) = (client(), url(&format!("http://{host}/")), take_all_descriptors());
        let mut attempt = std::pin::pin!(client.attempt(&target, BODY));
        assert!(timeout(Duration::from_millis(300), &mut attempt).await.is_err(), "the attempt waits for a descriptor");
        drop(files);
        let attempt = attempt.await;
        assert_eq!((attempt.outcome, received.load(Ordering::SeqCst)), (DeliveryOutcome::Delivered, 1), "{host}");
        assert!(attempt.duration_ms >= 300, "the wait is part of the attempt");
    }
}

#[tokio::test]
async fn an_attempt_that_never_gets_a_descriptor_is_a_local_failure() {
    if !is_limited() {
        return run_limited("an_attempt_that_never_gets_a_descriptor_is_a_local_failure");
    }
    let (address, received) = start_counting_receiver().await;
    let short_timeout = WebhookClientOptions { total_timeout: Duration::from_secs(1), ..options() };
    let client = WebhookClient::new(&short_timeout).unwrap();
    for host in [address.to_string(), format!("localhost:{}", address.port())] {
        let (files, mut durations_ms) = (take_all_descriptors(), Vec::<u32>::new());
        // A pause of the machine prolongs some attempts, and a missing limit all.
        while durations_ms.last().is_none_or(|duration_ms| *duration_ms > 1_000) {
            assert!(durations_ms.len() < 5, "{host}: {durations_ms:?}");
            let attempt = client.attempt(&url(&format!("http://{host}/")), BODY).await;
            assert_eq!((attempt.outcome, attempt.status), (DeliveryOutcome::LocalFailure, None), "{host}");
            durations_ms.push(attempt.duration_ms);
        }
        assert!(durations_ms.iter().all(|duration_ms| *duration_ms >= 300), "{host}: {durations_ms:?}");
        drop(files);
    }
    assert_eq!(received.load(Ordering::SeqCst), 0);
}
