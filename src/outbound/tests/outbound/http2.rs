//! Webhooks over HTTP/2: requests, connections, and misbehaving receivers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::authority::authority;
use crate::frames::{
    CANCEL, CONNECTION, CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, NO_FLAGS, PING, Peer, RST_STREAM,
    SETTINGS, STATUS_200, STATUS_500, WINDOW_UPDATE, frame, http2_receiver, http2_receiver_without_settings,
};
use crate::receiver::{read_request, start_receiver};
use crate::sender::{egress_trusting, options, url};
use bytes::Bytes;
use futures_util::future::join_all;
use sakshi_domain::delivery::DeliveryOutcome::{Broken, Delivered, Rejected, TimedOut};
use sakshi_domain::http_url::WebhookUrl;
use sakshi_outbound::client::{WebhookClient, WebhookClientOptions};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::{ALL_VERSIONS, HandshakeKind, SupportedProtocolVersion};

const BODY: Bytes = Bytes::from_static(br#"{"success":true}"#);
/// Id of the setting `SETTINGS_MAX_CONCURRENT_STREAMS` (RFC 9113 §6.5.2).
const MAX_CONCURRENT_STREAMS: u16 = 3;

/// For each connection: true if HTTP/2 was agreed on, and the kind of handshake.
type Handshakes = Arc<Mutex<Vec<(bool, Option<HandshakeKind>)>>>;

/// Answers every request with status 200.
pub(crate) async fn answer_all(mut peer: Peer) -> Option<()> {
    loop {
        let (stream, _) = peer.request().await?;
        peer.answer(stream, STATUS_200).await?;
    }
}

/// Starts a receiver that counts its connections and answers every request.
async fn start_counting_receiver(
    options: WebhookClientOptions,
    settings: &'static [(u16, u32)],
) -> (WebhookClient, WebhookUrl, Arc<AtomicUsize>) {
    let connections = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&connections);
    let (client, url) = http2_receiver_without_settings(options, move |mut peer| {
        counter.fetch_add(1, Ordering::SeqCst);
        async move {
            peer.handshake(settings).await?;
            answer_all(peer).await
        }
    })
    .await;
    (client, url, connections)
}

#[tokio::test]
async fn a_webhook_over_http2_is_a_post_that_a_library_reads() {
    let (root, config) = authority("localhost", &["h2", "http/1.1"], ALL_VERSIONS);
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let (record, mut requests) = mpsc::unbounded_channel();
    let address = start_receiver(move |stream| {
        let (acceptor, record) = (acceptor.clone(), record.clone());
        async move {
            let mut connection = h2::server::handshake(acceptor.accept(stream).await.unwrap()).await.unwrap();
            while let Some(Ok((mut request, mut respond))) = connection.accept().await {
                let record = record.clone();
                tokio::spawn(async move {
                    let mut body = Vec::new();
                    while let Some(Ok(part)) = request.body_mut().data().await {
                        let _ = request.body_mut().flow_control().release_capacity(part.len());
                        body.extend_from_slice(&part);
                    }
                    let _ = respond.send_response(hyper::Response::new(()), true);
                    let (head, _) = request.into_parts();
                    let _ = record.send((head, body));
                });
            }
        }
    })
    .await;
    let client = WebhookClient::new(&WebhookClientOptions { egress: egress_trusting(root), ..options() }).unwrap();
    let authority = format!("localhost:{}", address.port());
    // The second body fits neither into one frame nor into the initial window of a stream.
    for body in [BODY, Bytes::from(vec![b'x'; 3 << 20])] {
        let attempt = client.attempt(&url(&format!("https://{authority}/hook?a=1")), body.clone()).await;
        assert_eq!((attempt.outcome, attempt.status), (Delivered, Some(200)));
        let (head, received) = requests.recv().await.unwrap();
        assert!(received == body);
        assert_eq!((head.method.as_str(), head.uri.to_string()), ("POST", format!("https://{authority}/hook?a=1")));
        let mut headers: Vec<String> =
            head.headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
        headers.sort();
        assert_eq!(
            headers,
            ["accept: */*", &format!("content-length: {}", body.len()), "content-type: application/json"]
        );
    }
}

#[tokio::test]
async fn many_deliveries_share_one_connection() {
    let (client, url, connections) = start_counting_receiver(options(), &[]).await;
    for _ in 0..10 {
        let attempts = join_all((0..64).map(|_| client.attempt(&url, BODY))).await;
        assert!(attempts.iter().all(|attempt| (attempt.outcome, attempt.status) == (Delivered, Some(200))));
    }
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_receiver_with_a_low_stream_limit_gets_more_connections() {
    const STREAMS_MAX: u32 = 2;
    let (most_streams, connections) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (peak, counter) = (Arc::clone(&most_streams), Arc::clone(&connections));
    let (client, url) = http2_receiver_without_settings(options(), move |mut peer| {
        counter.fetch_add(1, Ordering::SeqCst);
        let peak = Arc::clone(&peak);
        async move {
            peer.handshake(&[(MAX_CONCURRENT_STREAMS, STREAMS_MAX)]).await?;
            let mut unanswered = Vec::new();
            loop {
                match timeout(Duration::from_millis(20), peer.request()).await {
                    Ok(request) => {
                        let (stream, _) = request?;
                        unanswered.push(stream);
                    }
                    Err(_quiet) => {
                        peak.fetch_max(unanswered.len(), Ordering::SeqCst);
                        for stream in unanswered.drain(..) {
                            peer.answer(stream, STATUS_200).await?;
                        }
                    }
                }
            }
        }
    })
    .await;
    let attempts = join_all((0..10).map(|_| client.attempt(&url, BODY))).await;
    assert!(attempts.iter().all(|attempt| attempt.outcome == Delivered));
    assert_eq!(most_streams.load(Ordering::SeqCst), STREAMS_MAX as usize);
    assert!((5..=10).contains(&connections.load(Ordering::SeqCst)));
}

#[tokio::test]
async fn a_redirect_and_a_failure_are_rejected_with_their_status() {
    // A header whose name is of the static table and whose value is not indexed (RFC 7541 §6.2.2): `:status: 307`,
    // `location: /`.
    let redirect: &[u8] = b"\x08\x03307\x0f\x1f\x01/";
    for (head, status) in [(redirect, 307), (&[STATUS_500], 500)] {
        let requests = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&requests);
        let (client, url) = http2_receiver(options(), move |mut peer| {
            let counter = Arc::clone(&counter);
            async move {
                loop {
                    let (stream, _) = peer.request().await?;
                    counter.fetch_add(1, Ordering::SeqCst);
                    peer.send(HEADERS, END_HEADERS | END_STREAM, stream, head).await?;
                }
            }
        })
        .await;
        let attempt = client.attempt(&url, BODY).await;
        assert_eq!((attempt.outcome, attempt.status), (Rejected, Some(status)));
        assert_eq!(requests.load(Ordering::SeqCst), 1);
    }
}

/// Starts a receiver over TLS that answers HTTP/1.1. On an HTTP/2 connection it sends `greeting` and closes.
async fn start_http1_receiver(
    protocols: &[&str],
    versions: &[&'static SupportedProtocolVersion],
    greeting: &'static [u8],
) -> (WebhookClient, WebhookUrl, Handshakes) {
    let (root, config) = authority("localhost", protocols, versions);
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let connections = Handshakes::default();
    let log = Arc::clone(&connections);
    let address = start_receiver(move |stream| {
        let (acceptor, log) = (acceptor.clone(), Arc::clone(&log));
        async move {
            let Ok(mut stream) = acceptor.accept(stream).await else { return };
            let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            log.lock().unwrap().push((http2, stream.get_ref().1.handshake_kind()));
            let answer: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
            if !http2 && read_request(&mut stream).await.is_none() {
                return;
            }
            let _ = stream.write_all(if http2 { greeting } else { answer }).await;
            let _ = stream.shutdown().await;
        }
    })
    .await;
    let client = WebhookClient::new(&WebhookClientOptions { egress: egress_trusting(root), ..options() }).unwrap();
    (client, url(&format!("https://localhost:{}/", address.port())), connections)
}

#[tokio::test]
async fn a_receiver_without_http2_gets_a_connection_for_each_delivery() {
    for protocols in [&["http/1.1"][..], &[]] {
        let (client, url, connections) = start_http1_receiver(protocols, ALL_VERSIONS, &[]).await;
        let attempts = join_all((0..20).map(|_| client.attempt(&url, BODY))).await;
        assert!(attempts.iter().all(|attempt| attempt.outcome == Delivered));
        assert_eq!(connections.lock().unwrap().len(), 20);
    }
}

#[tokio::test]
async fn new_connections_resume_tls_sessions() {
    for version in ALL_VERSIONS {
        let (client, url, connections) = start_http1_receiver(&["http/1.1"], &[version], &[]).await;
        for _ in 0..10 {
            assert_eq!(client.attempt(&url, BODY).await.outcome, Delivered);
        }
        let kinds: Vec<_> = connections.lock().unwrap().iter().map(|(_, kind)| kind.unwrap()).collect();
        assert_eq!(kinds[0], HandshakeKind::Full);
        assert!(kinds[1..].iter().all(|kind| *kind == HandshakeKind::Resumed), "{version:?} {kinds:?}");
    }
}

#[tokio::test]
async fn a_receiver_with_broken_http2_gets_http1() {
    for greeting in [&b""[..], b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\0\0\x04\0\0\0\0\x01"] {
        let (client, url, connections) = start_http1_receiver(&["h2", "http/1.1"], ALL_VERSIONS, greeting).await;
        for _ in 0..4 {
            assert_eq!(client.attempt(&url, BODY).await.outcome, Delivered, "{greeting:?}");
        }
        let http2 = connections.lock().unwrap().iter().filter(|(http2, _)| *http2).count();
        assert!((1..=2).contains(&http2), "{http2}");
    }
}

#[tokio::test]
async fn a_window_that_never_opens_delays_only_its_own_delivery() {
    let short_timeout = WebhookClientOptions { total_timeout: Duration::from_secs(2), ..options() };
    let (client, url) = http2_receiver(short_timeout, |mut peer| async move {
        loop {
            // No window update is sent, so a large body stalls.
            let (stream, _) = peer.request().await?;
            peer.answer(stream, STATUS_200).await?;
        }
    })
    .await;
    let large = client.attempt(&url, Bytes::from(vec![b'x'; 100_000]));
    let small = async {
        for _ in 0..100 {
            assert_eq!(client.attempt(&url, BODY).await.outcome, Delivered);
        }
    };
    let (large, ()) = tokio::join!(large, small);
    assert_eq!(large.outcome, TimedOut);
}

#[tokio::test]
async fn an_idle_connection_is_closed_soon_and_the_next_delivery_opens_another() {
    let (record_close, mut close_times) = mpsc::unbounded_channel();
    let (client, url) = http2_receiver(options(), move |mut peer| {
        let record_close = record_close.clone();
        async move {
            let (stream, _) = peer.request().await?;
            peer.answer(stream, STATUS_200).await?;
            peer.read_until_closed().await;
            record_close.send(Instant::now()).ok()
        }
    })
    .await;
    for _ in 0..2 {
        let began = Instant::now();
        assert_eq!(client.attempt(&url, BODY).await.outcome, Delivered);
        let duration = close_times.recv().await.unwrap() - began;
        assert!(duration >= Duration::from_secs(1) && duration < Duration::from_secs(10), "{duration:?}");
    }
}

#[tokio::test]
async fn a_silent_connection_gets_no_further_deliveries() {
    let connections = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&connections);
    let short_timeout = WebhookClientOptions { total_timeout: Duration::from_secs(2), ..options() };
    let (client, url) = http2_receiver(short_timeout, move |mut peer| {
        let number = counter.fetch_add(1, Ordering::SeqCst);
        async move {
            if number == 0 {
                // The first answer is read together with the settings of the connection.
                let (stream, _) = peer.request().await?;
                peer.answer(stream, STATUS_200).await?;
                peer.read_until_closed().await;
                return None;
            }
            answer_all(peer).await
        }
    })
    .await;
    for outcome in [Delivered, TimedOut, Delivered] {
        assert_eq!(client.attempt(&url, BODY).await.outcome, outcome);
    }
    assert_eq!(connections.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn an_abandoned_delivery_resets_only_its_own_stream() {
    let (record_reset, mut resets) = mpsc::unbounded_channel();
    let (record_arrival, mut arrivals) = mpsc::unbounded_channel();
    let short_timeout = WebhookClientOptions { total_timeout: Duration::from_secs(2), ..options() };
    let (client, url) = http2_receiver(short_timeout, move |mut peer| {
        let (record_reset, record_arrival) = (record_reset.clone(), record_arrival.clone());
        async move {
            let (hanging, _) = peer.request().await?;
            let _ = record_arrival.send(());
            loop {
                let frame = peer.next().await?;
                if frame.kind == RST_STREAM {
                    let _ = record_reset.send((hanging, frame.stream));
                } else if frame.ends_stream() {
                    peer.answer(frame.stream, STATUS_200).await?;
                }
            }
        }
    })
    .await;
    let hanging = client.attempt(&url, BODY);
    let others = async {
        arrivals.recv().await.unwrap();
        join_all((0..10).map(|_| client.attempt(&url, BODY))).await
    };
    let (hanging, others) = tokio::join!(hanging, others);
    assert_eq!(hanging.outcome, TimedOut);
    assert!(others.iter().all(|attempt| attempt.outcome == Delivered));
    let (expected, stream) = resets.recv().await.unwrap();
    assert_eq!(stream, expected);
}

#[tokio::test]
async fn an_endless_or_missing_response_body_does_not_undo_a_delivery() {
    for endless in [true, false] {
        let (client, url) = http2_receiver(options(), move |mut peer| async move {
            let (stream, _) = peer.request().await?;
            peer.begin_answer(stream, STATUS_200).await?;
            if endless {
                while peer.send(DATA, NO_FLAGS, stream, &[b'x'; 4_096]).await.is_some() {}
            }
            peer.read_until_closed().await;
            None
        })
        .await;
        let started = Instant::now();
        assert_eq!(client.attempt(&url, BODY).await.outcome, Delivered);
        assert!(started.elapsed() < Duration::from_secs(5));
    }
}

#[tokio::test]
async fn oversized_response_headers_are_refused() {
    // A literal header that is not indexed, `x` with 120,000 bytes of `y` (RFC 7541 §5.1, §6.2.2).
    let mut block = vec![STATUS_200, 0x00, 0x01, b'x', 0x7f];
    let mut length = 120_000 - 127;
    while length >= 128 {
        block.push((length % 128 + 128) as u8);
        length /= 128;
    }
    block.push(length as u8);
    block.extend(std::iter::repeat_n(b'y', 120_000));
    let (client, url) = http2_receiver(options(), move |mut peer| {
        let block = block.clone();
        async move {
            let (stream, _) = peer.request().await?;
            let mut parts = block.chunks(16_384);
            peer.send(HEADERS, END_STREAM, stream, parts.next()?).await?;
            while let Some(part) = parts.next() {
                let flags = if parts.len() == 0 { END_HEADERS } else { NO_FLAGS };
                peer.send(CONTINUATION, flags, stream, part).await?;
            }
            peer.read_until_closed().await;
            None
        }
    })
    .await;
    assert_eq!(client.attempt(&url, BODY).await.outcome, Broken);
}

#[tokio::test]
async fn a_receiver_that_floods_is_disconnected_and_delays_no_other() {
    const UNKNOWN_TYPE: u8 = 0x42;
    const ENDED_STREAM: u32 = 1;
    /// `:status: 103`, with a value that is not indexed (RFC 7541 §6.2.2).
    const EARLY_HINTS: &[u8] = b"\x08\x03103";
    /// Builds the frame to repeat; the argument is the stream of the request.
    type Flood = fn(u32) -> Vec<u8>;
    let floods: [Flood; 6] = [
        |_| frame(PING, NO_FLAGS, CONNECTION, &[0; 8]),
        |_| frame(SETTINGS, NO_FLAGS, CONNECTION, &[]),
        |_| frame(WINDOW_UPDATE, NO_FLAGS, CONNECTION, &1_u32.to_be_bytes()),
        |_| frame(RST_STREAM, NO_FLAGS, ENDED_STREAM, &CANCEL.to_be_bytes()),
        |stream| frame(HEADERS, END_HEADERS, stream, EARLY_HINTS),
        |_| frame(UNKNOWN_TYPE, NO_FLAGS, CONNECTION, &[0; 64]),
    ];
    let (healthy, healthy_url, _) = start_counting_receiver(options(), &[]).await;
    for (number, flood) in floods.into_iter().enumerate() {
        let (record_total, mut totals) = mpsc::unbounded_channel();
        let (client, url) = http2_receiver(options(), move |mut peer| {
            let record_total = record_total.clone();
            async move {
                let (stream, _) = peer.request().await?;
                let many = flood(stream).repeat(100);
                let mut total = 0;
                while peer.send_bytes(&many).await.is_some() {
                    total += many.len();
                }
                record_total.send(total).ok()
            }
        })
        .await;
        let others = async {
            for _ in 0..20 {
                assert_eq!(healthy.attempt(&healthy_url, BODY).await.outcome, Delivered);
            }
        };
        let (flooded, ()) = tokio::join!(client.attempt(&url, BODY), others);
        assert_eq!((flooded.outcome, flooded.duration_ms < 10_000), (Broken, true), "{number}");
        // Some of these bytes are in socket buffers.
        assert!(totals.recv().await.unwrap() < 32 << 20, "{number}");
    }
}
