//! Requests that are sent again, because HTTP/2 proves that the receiver did not process them, and others that are not.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::frames::{
    GOAWAY, INTERNAL_ERROR, NO_ERROR, Peer, REFUSED_STREAM, STATUS_200, frame, http2_receiver,
    http2_receiver_without_settings,
};
use crate::sender::options;
use bytes::Bytes;
use sakshi_domain::delivery::DeliveryOutcome::{self, Broken, Delivered, TimedOut, Unreachable};
use sakshi_outbound::client::WebhookClientOptions;

/// Connections, and the bodies that came over them.
type Log = Arc<Mutex<Vec<(usize, Vec<u8>)>>>;

const LARGEST: u32 = (1 << 31) - 1;

/// Numbers connections from 0.
#[derive(Clone, Default)]
struct Count(Arc<AtomicUsize>);

impl Count {
    fn next(&self) -> usize {
        self.0.fetch_add(1, Ordering::SeqCst)
    }

    fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// Delivers to a receiver that runs `first` on the first connection and answers on others; returns the result and the
/// number of connections.
async fn one<F, Served>(first: F) -> (DeliveryOutcome, usize)
where
    F: Fn(Peer) -> Served + Clone + Send + Sync + 'static,
    Served: Future<Output = Option<()>> + Send + 'static,
{
    let connections = Count::default();
    let counter = connections.clone();
    let (client, url) = http2_receiver(options(), move |peer| {
        let (number, first) = (counter.next(), first.clone());
        async move { if number == 0 { first(peer).await } else { answer_all(peer).await } }
    })
    .await;
    let attempt = client.attempt(&url, Bytes::from_static(b"{}")).await;
    (attempt.outcome, connections.get())
}

async fn answer_all(mut peer: Peer) -> Option<()> {
    loop {
        let (stream, _) = peer.request().await?;
        peer.answer(stream, STATUS_200).await?;
    }
}

#[tokio::test]
async fn what_is_above_the_last_stream_of_a_goaway_goes_again_and_what_is_not_is_answered_where_it_is() {
    for code in [NO_ERROR, INTERNAL_ERROR] {
        let seen: Log = Arc::default();
        let (connections, log) = (Count::default(), Arc::clone(&seen));
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
                peer.until_closed().await;
                Some(())
            }
        })
        .await;
        let (one, other) =
            (client.attempt(&url, Bytes::from_static(b"1")), client.attempt(&url, Bytes::from_static(b"2")));
        let (one, other) = tokio::join!(one, other);
        assert_eq!((one.outcome, other.outcome), (Delivered, Delivered));
        let mut seen = seen.lock().unwrap().clone();
        seen.sort();
        assert_eq!(seen.iter().map(|(connection, _)| *connection).collect::<Vec<_>>(), [0, 1]);
        let mut bodies: Vec<&[u8]> = seen.iter().map(|(_, body)| body.as_slice()).collect();
        bodies.sort_unstable();
        assert_eq!(bodies, [b"1", b"2"]);
    }
}

#[tokio::test]
async fn what_is_not_above_the_last_stream_and_dies_with_the_connection_is_broken_and_never_sent_again() {
    for code in [NO_ERROR, INTERNAL_ERROR] {
        for last in [None, Some(LARGEST)] {
            let died = one(move |mut peer| async move {
                let (stream, _) = peer.request().await?;
                peer.go_away(last.unwrap_or(stream), code).await
            })
            .await;
            assert_eq!(died, (Broken, 1), "{code} {last:?}");
        }
    }
}

#[tokio::test]
async fn a_drain_that_names_the_last_stream_at_its_end_proves_it_then() {
    let drained = one(|mut peer| async move {
        peer.request().await?;
        peer.go_away(LARGEST, NO_ERROR).await?;
        tokio::time::sleep(Duration::from_millis(20)).await;
        peer.go_away(0, NO_ERROR).await
    });
    assert_eq!(drained.await, (Delivered, 2));
}

#[tokio::test]
async fn a_goaway_that_takes_back_less_than_one_before_proves_nothing_more() {
    let raised = one(|mut peer| async move {
        let (stream, _) = peer.request().await?;
        peer.go_away(stream, NO_ERROR).await?;
        peer.go_away(LARGEST, NO_ERROR).await
    });
    assert_eq!(raised.await, (Broken, 1));
}

#[tokio::test]
async fn a_refused_stream_goes_again_over_the_same_connection() {
    let refused = one(|mut peer| async move {
        for _ in 0..2 {
            let (stream, _) = peer.request().await?;
            peer.reset(stream, REFUSED_STREAM).await?;
        }
        answer_all(peer).await
    });
    assert_eq!(refused.await, (Delivered, 1));
}

#[tokio::test]
async fn a_stream_reset_with_any_other_code_is_broken_and_never_sent_again() {
    for code in (0..=13).chain([u32::MAX]).filter(|code| *code != REFUSED_STREAM) {
        let reset = one(move |mut peer| async move {
            let (stream, _) = peer.request().await?;
            peer.reset(stream, code).await?;
            answer_all(peer).await
        });
        assert_eq!(reset.await, (Broken, 1), "{code}");
    }
}

#[tokio::test]
async fn who_refuses_for_the_whole_time_is_asked_ever_less_often_until_it_is_over() {
    let requests = Count::default();
    let counter = requests.clone();
    let patient = WebhookClientOptions { total_timeout: Duration::from_secs(3), ..options() };
    let (client, url) = http2_receiver(patient, move |mut peer| {
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
async fn who_goes_away_at_every_connection_is_asked_ever_less_often() {
    let connections = Count::default();
    let counter = connections.clone();
    let patient = WebhookClientOptions { total_timeout: Duration::from_secs(3), ..options() };
    let (client, url) = http2_receiver(patient, move |mut peer| {
        counter.next();
        async move {
            peer.request().await?;
            peer.go_away(0, NO_ERROR).await
        }
    })
    .await;
    assert_eq!(client.attempt(&url, Bytes::from_static(b"{}")).await.outcome, TimedOut);
    // Three times at once, and after each of those pauses.
    assert!((4..=10).contains(&connections.get()), "{}", connections.get());
}

#[tokio::test]
async fn an_answer_counts_whatever_follows_it() {
    for after in [NO_ERROR, REFUSED_STREAM, INTERNAL_ERROR] {
        let answered = one(move |mut peer| async move {
            let (stream, _) = peer.request().await?;
            // All in one write, so that the client sees them together.
            let answer = frame(crate::frames::HEADERS, 4, stream, &[STATUS_200]);
            let reset = frame(crate::frames::RST_STREAM, 0, stream, &after.to_be_bytes());
            let away = frame(GOAWAY, 0, 0, &[0_u32.to_be_bytes(), after.to_be_bytes()].concat());
            peer.send_bytes(&[answer, reset, away].concat()).await
        });
        assert_eq!(answered.await, (Delivered, 1), "{after}");
    }
}

#[tokio::test]
async fn a_connection_that_is_cut_after_the_request_is_broken_wherever_it_is_cut() {
    // Bytes of the answer that come before the end; ten are the whole of it.
    for bytes in 0..10 {
        for abruptly in [true, false] {
            let cut = one(move |mut peer| async move {
                let (stream, _) = peer.request().await?;
                peer.send_bytes(&frame(crate::frames::HEADERS, 5, stream, &[STATUS_200])[..bytes]).await?;
                if abruptly {
                    peer.reset_connection();
                }
                None
            });
            assert_eq!(cut.await, (Broken, 1), "{bytes} {abruptly}");
        }
    }
}

#[tokio::test]
async fn a_connection_that_is_cut_while_the_request_is_sent_is_broken() {
    let cut = one(|mut peer| async move {
        while peer.next().await?.kind != crate::frames::HEADERS {}
        peer.reset_connection();
        None
    });
    assert_eq!(cut.await, (Broken, 1));
}

#[tokio::test]
async fn a_connection_that_breaks_before_the_receiver_has_said_its_settings_has_carried_nothing() {
    let connections = Count::default();
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
async fn a_receiver_that_never_says_its_settings_is_unreachable_after_the_connect_time() {
    let hasty = WebhookClientOptions { connect_timeout: Duration::from_millis(100), ..options() };
    let (client, url) = http2_receiver_without_settings(hasty, |mut peer| async move {
        peer.until_closed().await;
        None
    })
    .await;
    let attempt = client.attempt(&url, Bytes::from_static(b"{}")).await;
    assert_eq!(attempt.outcome, Unreachable);
    assert!(attempt.duration_ms < 5_000);
}

#[tokio::test]
async fn a_connection_that_the_receiver_has_said_goodbye_on_is_not_used_again() {
    let connections = Count::default();
    let counter = connections.clone();
    let (client, url) = http2_receiver(options(), move |mut peer| {
        counter.next();
        async move {
            let (stream, _) = peer.request().await?;
            peer.go_away(stream, NO_ERROR).await?;
            peer.answer(stream, STATUS_200).await?;
            peer.until_closed().await;
            None
        }
    })
    .await;
    for number in 1..=200 {
        assert_eq!(client.attempt(&url, Bytes::from_static(b"{}")).await.outcome, Delivered, "delivery {number}");
        assert_eq!(connections.get(), number);
    }
}
