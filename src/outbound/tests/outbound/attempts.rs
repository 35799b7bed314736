//! Results of attempts, with receivers on real sockets.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::receiver::{read_request, start_receiver};
use crate::sender::{client, options, url};
use bytes::Bytes;
use sakshi_domain::delivery::{Attempt, DeliveryOutcome};
use sakshi_outbound::client::{WebhookClient, WebhookClientOptions};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

const BODY: Bytes = Bytes::from_static(br#"{"success":true}"#);
const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// Makes an attempt to a receiver that sends `answer`.
async fn attempt_answered_with(answer: &'static str) -> Attempt {
    let address = start_receiver(move |mut stream| async move {
        read_request(&mut stream).await;
        let _ = stream.write_all(answer.as_bytes()).await;
    })
    .await;
    client().attempt(&url(&format!("http://{address}/hook")), BODY).await
}

#[tokio::test]
async fn a_webhook_is_a_post_of_json_with_no_custom_headers() {
    let (record, mut requests) = mpsc::unbounded_channel();
    let address = start_receiver(move |mut stream| {
        let record = record.clone();
        async move {
            let _ = record.send(read_request(&mut stream).await.unwrap());
            let _ = stream.write_all(OK.as_bytes()).await;
        }
    })
    .await;
    let attempt = client().attempt(&url(&format!("http://{address}/hook?a=1")), BODY).await;
    assert_eq!((attempt.outcome, attempt.status), (DeliveryOutcome::Delivered, Some(200)));

    let request = requests.recv().await.unwrap();
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert_eq!(body.as_bytes(), BODY);
    let mut lines = head.lines();
    assert_eq!(lines.next(), Some("POST /hook?a=1 HTTP/1.1"));
    let mut headers: Vec<String> = lines.map(str::to_owned).collect();
    headers.sort();
    assert_eq!(
        headers,
        ["accept: */*", "content-length: 16", "content-type: application/json", &format!("host: {address}")]
    );
}

#[tokio::test]
async fn any_2xx_is_delivered_and_any_other_status_is_rejected_with_its_number() {
    for (answer, outcome, status) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", DeliveryOutcome::Delivered, 200),
        ("HTTP/1.1 204 No Content\r\n\r\n", DeliveryOutcome::Delivered, 204),
        ("HTTP/1.1 299 Odd\r\nconnection: close\r\n\r\nx", DeliveryOutcome::Delivered, 299),
        (
            "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n",
            DeliveryOutcome::Delivered,
            202,
        ),
        ("HTTP/1.1 304 Not Modified\r\n\r\n", DeliveryOutcome::Rejected, 304),
        ("HTTP/1.1 410 Gone\r\ncontent-length: 0\r\n\r\n", DeliveryOutcome::Rejected, 410),
        ("HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n", DeliveryOutcome::Rejected, 500),
        ("HTTP/1.1 503 Busy\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n", DeliveryOutcome::Rejected, 503),
    ] {
        let attempt = attempt_answered_with(answer).await;
        assert_eq!((attempt.outcome, attempt.status), (outcome, Some(status)), "{answer}");
    }
}

#[test]
fn proxy_settings_of_the_environment_are_ignored() {
    // The environment belongs to the whole process, so another process runs the deliveries: through
    // the proxy named here they would all fail.
    let deliveries = "attempts::any_2xx_is_delivered_and_any_other_status_is_rejected_with_its_number";
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    for variable in ["http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"] {
        command.env(variable, "http://127.0.0.1:9");
    }
    let output = command.env_remove("no_proxy").env_remove("NO_PROXY").args([deliveries, "--exact"]).output().unwrap();
    assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains("1 passed"));
}

#[tokio::test]
async fn a_redirect_is_rejected_and_not_followed() {
    let requests = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&requests);
    let target = start_receiver(move |_stream| {
        counter.fetch_add(1, Ordering::SeqCst);
        async {}
    })
    .await;
    for status in [301_u16, 302, 303, 307, 308] {
        let address = start_receiver(move |mut stream| async move {
            read_request(&mut stream).await;
            let answer = format!("HTTP/1.1 {status} Moved\r\nlocation: http://{target}/\r\ncontent-length: 0\r\n\r\n");
            let _ = stream.write_all(answer.as_bytes()).await;
        })
        .await;
        let attempt = client().attempt(&url(&format!("http://{address}/")), BODY).await;
        assert_eq!((attempt.outcome, attempt.status), (DeliveryOutcome::Rejected, Some(status)));
    }
    assert_eq!(requests.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_receiver_that_closes_idle_connections_loses_no_delivery() {
    const DELIVERIES: usize = 4_000;
    let received = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&received);
    // The receiver keeps the connection alive, but its idle timer fires a moment later: a client that reuses
    // connections would send into the close.
    let address = start_receiver(move |mut stream| {
        let counter = Arc::clone(&counter);
        async move {
            read_request(&mut stream).await;
            counter.fetch_add(1, Ordering::SeqCst);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: keep-alive\r\ncontent-length: 0\r\n\r\n").await;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    let (client, url) = (client(), url(&format!("http://{address}/")));
    for number in 0..DELIVERIES {
        let attempt = client.attempt(&url, BODY).await;
        assert_eq!(attempt.outcome, DeliveryOutcome::Delivered, "delivery {number}");
    }
    assert_eq!(received.load(Ordering::SeqCst), DELIVERIES);
}

#[tokio::test]
async fn a_receiver_that_hangs_times_out_after_the_total_timeout() {
    let address = start_receiver(|mut stream| async move {
        read_request(&mut stream).await;
        std::future::pending::<()>().await;
    })
    .await;
    let client =
        WebhookClient::new(&WebhookClientOptions { total_timeout: Duration::from_millis(150), ..options() }).unwrap();
    let started = Instant::now();
    let attempt = client.attempt(&url(&format!("http://{address}/")), BODY).await;
    assert_eq!((attempt.outcome, attempt.status), (DeliveryOutcome::TimedOut, None));
    assert!(attempt.duration_ms >= 150 && started.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_status_line_that_trickles_in_does_not_extend_the_total_timeout() {
    let address = start_receiver(|mut stream| async move {
        read_request(&mut stream).await;
        let mut pace = tokio::time::interval(Duration::from_millis(20));
        for byte in b"HTTP/1.1 200 OK\r\nx: ".iter().chain(std::iter::repeat(&b'y')) {
            pace.tick().await;
            if stream.write_all(&[*byte]).await.is_err() {
                return;
            }
        }
    })
    .await;
    let client =
        WebhookClient::new(&WebhookClientOptions { total_timeout: Duration::from_millis(200), ..options() }).unwrap();
    assert_eq!(client.attempt(&url(&format!("http://{address}/")), BODY).await.outcome, DeliveryOutcome::TimedOut);
}

#[tokio::test]
async fn a_slow_answer_within_the_total_timeout_is_delivered() {
    let address = start_receiver(|mut stream| async move {
        read_request(&mut stream).await;
        tokio::time::sleep(Duration::from_millis(150)).await;
        let _ = stream.write_all(OK.as_bytes()).await;
    })
    .await;
    let attempt = client().attempt(&url(&format!("http://{address}/")), BODY).await;
    assert_eq!(attempt.outcome, DeliveryOutcome::Delivered);
    assert!(attempt.duration_ms >= 150);
}

#[tokio::test]
async fn a_connection_that_breaks_before_the_status_is_not_retried() {
    let connections = Arc::new(AtomicUsize::new(0));
    for answer in ["", "HTTP/1.1 2", "HTTP/1.1 200 OK\r\ncontent-le", "garbage\r\n\r\n"] {
        let counter = Arc::clone(&connections);
        let address = start_receiver(move |mut stream| {
            counter.fetch_add(1, Ordering::SeqCst);
            async move {
                read_request(&mut stream).await;
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        })
        .await;
        let attempt = client().attempt(&url(&format!("http://{address}/")), BODY).await;
        assert_eq!((attempt.outcome, attempt.status), (DeliveryOutcome::Broken, None), "{answer}");
    }
    assert_eq!(connections.load(Ordering::SeqCst), 4);
}

#[tokio::test]
async fn a_receiver_that_drops_the_connection_while_the_body_is_sent_is_broken() {
    let address = start_receiver(|mut stream| async move {
        let _ = stream.read(&mut [0; 64]).await;
        let _ = stream.set_zero_linger();
    })
    .await;
    let body = Bytes::from(vec![b' '; 8 << 20]);
    assert_eq!(client().attempt(&url(&format!("http://{address}/")), body).await.outcome, DeliveryOutcome::Broken);
}

#[tokio::test]
async fn an_endless_body_is_read_to_its_bound_and_the_status_decides() {
    let (record_total, mut totals) = mpsc::unbounded_channel();
    let address = start_receiver(move |mut stream| {
        let record_total = record_total.clone();
        async move {
            read_request(&mut stream).await;
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await;
            let mut total = 0_usize;
            while stream.write_all(&[b"1000\r\n".as_slice(), &[b'x'; 0x1000], b"\r\n"].concat()).await.is_ok() {
                total += 0x1000;
            }
            let _ = record_total.send(total);
        }
    })
    .await;
    let attempt = client().attempt(&url(&format!("http://{address}/")), BODY).await;
    assert_eq!((attempt.outcome, attempt.status), (DeliveryOutcome::Delivered, Some(200)));
    // Some of these bytes are in socket buffers; the connection is closed.
    assert!(totals.recv().await.unwrap() < 32 << 20);
}

#[tokio::test]
async fn a_slow_or_missing_body_does_not_undo_a_delivery() {
    for body in ["", "1\r\nx\r\n"] {
        let address = start_receiver(move |mut stream| async move {
            read_request(&mut stream).await;
            let _ = stream.write_all(b"HTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\n\r\n").await;
            let _ = stream.write_all(body.as_bytes()).await;
            // Reading notices that the client closes, which ends this receiver.
            while stream.read(&mut [0; 64]).await.is_ok_and(|read| read > 0) {}
        })
        .await;
        let started = Instant::now();
        let attempt = client().attempt(&url(&format!("http://{address}/")), BODY).await;
        assert_eq!((attempt.outcome, attempt.status), (DeliveryOutcome::Delivered, Some(201)));
        assert!(started.elapsed() < Duration::from_secs(5), "the body must not delay the result");
    }
}

#[tokio::test]
async fn endless_headers_are_cut_off() {
    let address = start_receiver(|mut stream| async move {
        read_request(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nx: ").await;
        while stream.write_all(&[b'y'; 4_096]).await.is_ok() {}
    })
    .await;
    assert_eq!(client().attempt(&url(&format!("http://{address}/")), BODY).await.outcome, DeliveryOutcome::Broken);
}

#[tokio::test]
async fn refused_connections_and_unknown_names_have_different_outcomes() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let refused = client().attempt(&url(&format!("http://{address}/")), BODY).await;
    assert_eq!(refused.outcome, DeliveryOutcome::Unreachable);
    let unknown = client().attempt(&url("http://no-such-host.invalid/"), BODY).await;
    assert_eq!(unknown.outcome, DeliveryOutcome::Unresolved);
}

#[tokio::test]
async fn non_public_targets_are_blocked_and_never_contacted() {
    let contacted = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&contacted);
    let port = start_receiver(move |_stream| {
        counter.fetch_add(1, Ordering::SeqCst);
        async {}
    })
    .await
    .port();
    let client = WebhookClient::new(&WebhookClientOptions { allow_private: false, ..options() }).unwrap();
    for host in [
        "127.0.0.1",
        "2130706433",
        "0x7f.1",
        "127.1",
        "[::ffff:127.0.0.1]",
        "[::1]",
        "0",
        "localhost",
        "localhost.",
        "LOCALHOST",
    ] {
        for scheme in ["http", "https"] {
            let attempt = client.attempt(&url(&format!("{scheme}://{host}:{port}/")), BODY).await;
            assert_eq!((attempt.outcome, attempt.status), (DeliveryOutcome::Blocked, None), "{scheme} {host}");
        }
    }
    assert_eq!(contacted.load(Ordering::SeqCst), 0);
}
