//! Requests that are repeated, because HTTP/2 proves that the receiver did not process them, and others that are not.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::frames::{
    CONNECTION, END_HEADERS, END_STREAM, GOAWAY, HEADERS, INTERNAL_ERROR, NO_ERROR, NO_FLAGS, Peer, REFUSED_STREAM,
    RST_STREAM, STATUS_200, frame, http2_receiver, http2_receiver_without_settings,
};
use crate::http2::answer_all;
use crate::sender::options;
use bytes::Bytes;
use sakshi_domain::delivery::DeliveryOutcome::{self, Broken, Delivered, TimedOut, Unreachable};
use sakshi_outbound::client::WebhookClientOptions;

/// The processed requests: the number of the connection, and the body.
type RequestLog = Arc<Mutex<Vec<(usize, Vec<u8>)>>>;

const LARGEST_STREAM: u32 = (1 << 31) - 1;

/// Numbers connections from 0.
#[derive(Clone, Default)]
struct Counter(Arc<AtomicUsize>);

impl Counter {
    fn next(&self) -> usize {
        self.0.fetch_add(1, Ordering::SeqCst)
    }

    fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// Delivers one webhook to a receiver that runs `serve_first` on its first connection, and answers every request on
/// others. Returns the outcome and the number of connections.
async fn deliver_to<F, Served>(serve_first: F) -> (DeliveryOutcome, usize)
where
    F: Fn(Peer) -> Served + Clone + Send + Sync + 'static,
    Served: Future<Output = Option<()>> + Send + 'static,
{
    let connections = Counter::default();
    let counter = connections.clone();
    let (client, url) = http2_receiver(options(), move |peer| {
        let (number, serve_first) = (counter.next(), serve_first.clone());
        async move { if number == 0 { serve_first(peer).await } else { answer_all(peer).await } }
    })
    .await;
    let attempt = client.attempt(&url, Bytes::from_static(b"{}")).await;
    (attempt.outcome, connections.get())
}

#[tokio::test]
async fn only_requests_above_the_last_stream_of_a_goaway_are_repeated() {
    for code in [NO_ERROR, INTERNAL_ERROR] {
        let received: RequestLog = Arc::default();
        let (connections, log) = (Counter::default(), Arc::clone(&received));
        let (client, url) = http2_receiver(options(), move |mut peer| {
            let (number, log) = (connections.next(), Arc::clone(&log));
            async move {
                if number > 0 {
                    while let Some((stream, body)) = peer.request().await {
                        log.lock().unwrap().push((number, body));
                        peer.answer(stream, STATUS_200).await?;
                    }
                    return None;
                }
                let (first, body) = peer.request().await?;
                let (second, _) = peer.request().await?;
                assert!(second > first);
                log.lock().unwrap().push((number, body));
                peer.go_away(first, code).await?;
                peer.answer(first, STATUS_200).await?;
                peer.read_until_closed().await;
                Some(())
            }
        })
        .await;
        let (first, second) =
            (client.attempt(&url, Bytes::from_static(b"1")), client.attempt(&url, Bytes::from_static(b"2")));
        let (first, second) = tokio::join!(first, second);
        assert_eq!((first.outcome, second.outcome), (Delivered, Delivered));
        let mut received = received.lock().unwrap().clone();
        received.sort();
        assert_eq!(received.iter().map(|(connection, _)| *connection).collect::<Vec<_>>(), [0, 1]);
        let mut bodies: Vec<&[u8]> = received.iter().map(|(_, body)| body.as_slice()).collect();
        bodies.sort_unstable();
        assert_eq!(bodies, [b"1", b"2"]);
    }
}

#[tokio::test]
async fn a_request_up_to_the_last_stream_is_broken_if_the_connection_ends() {
    for code in [NO_ERROR, INTERNAL_ERROR] {
        for last in [None, Some(LARGEST_STREAM)] {
            let outcome = deliver_to(move |mut peer| async move {
                let (stream, _) = peer.request().await?;
                peer.go_away(last.unwrap_or(stream), code).await
            })
            .await;
            assert_eq!(outcome, (Broken, 1), "{code} {last:?}");
        }
    }
}

#[tokio::test]
async fn a_drain_proves_unprocessed_requests_with_its_final_goaway() {
    let outcome = deliver_to(|mut peer| async move {
        peer.request().await?;
        peer.go_away(LARGEST_STREAM, NO_ERROR).await?;
        tokio::time::sleep(Duration::from_millis(20)).await;
        peer.go_away(0, NO_ERROR).await
    });
    assert_eq!(outcome.await, (Delivered, 2));
}

#[tokio::test]
async fn a_goaway_with_a_higher_last_stream_than_before_proves_nothing() {
    let outcome = deliver_to(|mut peer| async move {
        let (stream, _) = peer.request().await?;
        peer.go_away(stream, NO_ERROR).await?;
        peer.go_away(LARGEST_STREAM, NO_ERROR).await
    });
    assert_eq!(outcome.await, (Broken, 1));
}

#[tokio::test]
async fn a_refused_stream_is_repeated_over_the_same_connection() {
    let outcome = deliver_to(|mut peer| async move {
        for _ in 0..2 {
            let (stream, _) = peer.request().await?;
            peer.reset(stream, REFUSED_STREAM).await?;
        }
        answer_all(peer).await
    });
    assert_eq!(outcome.await, (Delivered, 1));
}

#[tokio::test]
async fn a_stream_reset_with_another_code_is_broken_and_not_repeated() {
    for code in (0..=13).chain([u32::MAX]).filter(|code| *code != REFUSED_STREAM) {
        let outcome = deliver_to(move |mut peer| async move {
            let (stream, _) = peer.request().await?;
            peer.reset(stream, code).await?;
            answer_all(peer).await
        });
        assert_eq!(outcome.await, (Broken, 1), "{code}");
    }
}

#[tokio::test]
async fn repeats_to_a_receiver_that_always_refuses_slow_down() {
    let requests = Counter::default();
    let counter = requests.clone();
    let long_timeout = WebhookClientOptions { total_timeout: Duration::from_secs(3), ..options() };
    let (client, url) = http2_receiver(long_timeout, move |mut peer| {
        let counter = counter.clone();
        async move {
            loop {
                let (stream, _) = peer.request().await?;
                counter.next();
                peer.reset(stream, REFUSED_STREAM).await?;
            }
        }
    })
    .await;
    let attempt = client.attempt(&url, Bytes::from_static(b"{}")).await;
    assert_eq!((attempt.outcome, attempt.status), (TimedOut, None));
    // Pauses of 50, 100, 200, 400, 800 and 1,000 ms fit in.
    assert!((2..=7).contains(&requests.get()), "{}", requests.get());
}

#[tokio::test]
async fn repeats_to_a_receiver_that_always_goes_away_slow_down() {
    let connections = Counter::default();
    let counter = connections.clone();
    let long_timeout = WebhookClientOptions { total_timeout: Duration::from_secs(3), ..options() };
    let (client, url) = http2_receiver(long_timeout, move |mut peer| {
        counter.next();
        async move {
            peer.request().await?;
            peer.go_away(0, NO_ERROR).await
        }
    })
    .await;
    assert_eq!(client.attempt(&url, Bytes::from_static(b"{}")).await.outcome, TimedOut);
    // Three times at once, and after each of the pauses above.
    assert!((4..=10).contains(&connections.get()), "{}", connections.get());
}

#[tokio::test]
async fn an_answer_counts_whatever_frames_follow_it() {
    for code in [NO_ERROR, REFUSED_STREAM, INTERNAL_ERROR] {
        let outcome = deliver_to(move |mut peer| async move {
            let (stream, _) = peer.request().await?;
            // One write, so that the client reads the frames together.
            let answer = frame(HEADERS, END_HEADERS, stream, &[STATUS_200]);
            let reset = frame(RST_STREAM, NO_FLAGS, stream, &code.to_be_bytes());
            let no_stream: u32 = 0;
            let go_away = frame(GOAWAY, NO_FLAGS, CONNECTION, &[no_stream.to_be_bytes(), code.to_be_bytes()].concat());
            peer.send_bytes(&[answer, reset, go_away].concat()).await
        });
        assert_eq!(outcome.await, (Delivered, 1), "{code}");
    }
}

#[tokio::test]
async fn a_connection_cut_within_the_answer_is_broken() {
    // Bytes of the answer that arrive before the cut; the whole answer has ten.
    for bytes in 0..10 {
        for is_reset in [true, false] {
            let outcome = deliver_to(move |mut peer| async move {
                let (stream, _) = peer.request().await?;
                peer.send_bytes(&frame(HEADERS, END_HEADERS | END_STREAM, stream, &[STATUS_200])[..bytes]).await?;
                if is_reset {
                    peer.reset_connection();
                }
                None
            });
            assert_eq!(outcome.await, (Broken, 1), "{bytes} {is_reset}");
        }
    }
}

#[tokio::test]
async fn a_connection_cut_within_the_request_is_broken() {
    let outcome = deliver_to(|mut peer| async move {
        while peer.next().await?.kind != HEADERS {}
        peer.reset_connection();
        None
    });
    assert_eq!(outcome.await, (Broken, 1));
}

#[tokio::test]
async fn a_request_is_repeated_if_the_connection_breaks_before_the_settings() {
    let connections = Counter::default();
    let counter = connections.clone();
    let (client, url) = http2_receiver_without_settings(options(), move |mut peer| {
        let number = counter.next();
        async move {
            if number == 0 {
                peer.reset_connection();
                return None;
            }
            peer.handshake(&[]).await?;
            answer_all(peer).await
        }
    })
    .await;
    assert_eq!(client.attempt(&url, Bytes::from_static(b"{}")).await.outcome, Delivered);
    assert_eq!(connections.get(), 2);
}

#[tokio::test]
async fn a_receiver_that_sends_no_settings_is_unreachable_after_the_timeout() {
    let short_timeout = WebhookClientOptions { connect_timeout: Duration::from_millis(100), ..options() };
    let (client, url) = http2_receiver_without_settings(short_timeout, |mut peer| async move {
        peer.read_until_closed().await;
        None
    })
    .await;
    let attempt = client.attempt(&url, Bytes::from_static(b"{}")).await;
    assert_eq!(attempt.outcome, Unreachable);
    assert!(attempt.duration_ms < 5_000);
}

#[tokio::test]
async fn a_connection_is_not_used_after_a_goaway() {
    let connections = Counter::default();
    let counter = connections.clone();
    let (client, url) = http2_receiver(options(), move |mut peer| {
        counter.next();
        async move {
            let (stream, _) = peer.request().await?;
            peer.go_away(stream, NO_ERROR).await?;
            peer.answer(stream, STATUS_200).await?;
            peer.read_until_closed().await;
            None
        }
    })
    .await;
    for number in 1..=200 {
        assert_eq!(client.attempt(&url, Bytes::from_static(b"{}")).await.outcome, Delivered, "delivery {number}");
        assert_eq!(connections.get(), number);
    }
}
