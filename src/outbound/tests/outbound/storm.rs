//! Thousands of deliveries to a receiver that at random answers, refuses, sends GOAWAY, resets streams,
//! cuts its connections and hangs.
//!
//! A fair receiver says which requests it processed: each is delivered exactly once. A cruel one also cuts connections
//! without saying so. Then nothing is repeated: its application gets each delivery at most once. An answered delivery
//! is recorded as delivered, a delivery recorded as delivered was processed, and the rest is `broken` or `timed_out`.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::frames::{INTERNAL_ERROR, NO_ERROR, Peer, REFUSED_STREAM, STATUS_200, http2_receiver};
use crate::receiver::PLENTY;
use crate::sender::options;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream;
use sakshi_domain::delivery::DeliveryOutcome::{self, Broken, Delivered, TimedOut};
use sakshi_outbound::client::WebhookClientOptions;
use tokio::time::timeout;

const DELIVERIES: usize = 6_000;
const IN_FLIGHT: usize = 64;
/// The timeout with a receiver that hangs; long enough for many refusals.
const PATIENCE: Duration = Duration::from_secs(2);

const QUIET: Duration = Duration::from_millis(20);

/// Fate of a delivery at the receiver.
#[derive(Clone, Copy, Debug, Default)]
struct Fate {
    /// Number of its arrivals.
    came: usize,
    /// Number of times that the application processed it.
    processed: usize,
    /// True if it was answered on a connection that was not cut.
    answered: bool,
}

/// The application, with a random number generator.
#[derive(Clone, Default)]
struct Application {
    cruel: bool,
    fates: Arc<Mutex<HashMap<Vec<u8>, Fate>>>,
    chance: Arc<AtomicU64>,
}

impl Application {
    /// Returns a number from 0 to 9,999, by the finaliser of splitmix64; the seed is a counter.
    fn chance(&self) -> u64 {
        let mut x = self.chance.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) % 10_000
    }

    fn fate<T>(&self, id: &[u8], change: impl FnOnce(&mut Fate) -> T) -> T {
        change(self.fates.lock().unwrap().entry(id.to_vec()).or_default())
    }

    async fn serve(self, mut peer: Peer) -> Option<()> {
        // Processed but not answered yet.
        let mut open: Vec<(u32, Vec<u8>)> = Vec::new();
        let mut answered = Vec::new();
        // The last stream that was processed or refused, and how many have come. Bodies may end in another order than
        // streams begin; those of a connection are 1, 3, 5 and so on.
        let (mut last, mut came) = (0, 0);
        loop {
            // Delayed answers are sent when no frame arrives.
            let Ok(request) = timeout(QUIET, peer.request()).await else {
                self.answer(&mut peer, &mut open, &mut answered).await?;
                continue;
            };
            let (stream, id) = request?;
            came += 1;
            let (no_gap_before, no_gap) =
                (last == (2 * came - 2_u32).saturating_sub(1), last.max(stream) == 2 * came - 1);
            self.fate(&id, |fate| fate.came += 1);
            let process = |open: &mut Vec<_>| {
                self.fate(&id, |fate| fate.processed += 1);
                open.push((stream, id.clone()));
            };
            match self.chance() {
                // GOAWAY: this request and later ones are not processed; the others are usually answered.
                0..100 if no_gap_before => {
                    let code = if self.chance() < 5_000 { NO_ERROR } else { INTERNAL_ERROR };
                    peer.go_away(last, code).await?;
                    if self.cruel && self.chance() < 1_000 {
                        return self.cut(peer, &answered);
                    }
                    self.answer(&mut peer, &mut open, &mut answered).await?;
                    match self.chance() {
                        0..1_000 if self.cruel => return self.cut(peer, &answered),
                        1_000..5_000 => peer.close_sending().await,
                        _ => {}
                    }
                    peer.until_closed().await;
                    return None;
                }
                // A graceful shutdown in two steps, like proxies do.
                100..200 if no_gap => {
                    peer.go_away((1 << 31) - 1, NO_ERROR).await?;
                    process(&mut open);
                    self.answer(&mut peer, &mut open, &mut answered).await?;
                    peer.go_away(last.max(stream), NO_ERROR).await?;
                    peer.until_closed().await;
                    return None;
                }
                200..800 => {
                    last = last.max(stream);
                    peer.reset(stream, REFUSED_STREAM).await?;
                }
                // An internal error, which does not prove that the request was not processed.
                800..840 if self.cruel => {
                    process(&mut open);
                    open.pop();
                    last = last.max(stream);
                    peer.reset(stream, INTERNAL_ERROR).await?;
                }
                // Cuts the connection, at once or after processing the request.
                840..860 if self.cruel => {
                    if self.chance() < 5_000 {
                        process(&mut open);
                    }
                    return self.cut(peer, &answered);
                }
                // Closes the connection cleanly, without GOAWAY.
                860..880 if self.cruel => {
                    self.answer(&mut peer, &mut open, &mut answered).await?;
                    peer.close_sending().await;
                    peer.until_closed().await;
                    return None;
                }
                // Hangs on this request and answers others.
                880..886 if self.cruel => {
                    process(&mut open);
                    open.pop();
                    last = last.max(stream);
                }
                // Hangs on the whole connection.
                886..888 if self.cruel => {
                    process(&mut open);
                    peer.until_closed().await;
                    return None;
                }
                _ => {
                    process(&mut open);
                    last = last.max(stream);
                    if self.chance() < 7_000 {
                        self.answer(&mut peer, &mut open, &mut answered).await?;
                    }
                }
            }
        }
    }

    /// Resets the connection, which may lose answers that were just written.
    fn cut(&self, peer: Peer, answered: &[Vec<u8>]) -> Option<()> {
        answered.iter().for_each(|id| self.fate(id, |fate| fate.answered = false));
        peer.reset_connection();
        None
    }

    async fn answer(&self, peer: &mut Peer, open: &mut Vec<(u32, Vec<u8>)>, answered: &mut Vec<Vec<u8>>) -> Option<()> {
        for (stream, id) in open.drain(..) {
            peer.answer(stream, STATUS_200).await?;
            self.fate(&id, |fate| fate.answered = true);
            answered.push(id);
        }
        Some(())
    }
}

/// Returns the results of the deliveries, the receiver's view of each, and the number that arrived more than once.
async fn storm(cruel: bool) -> (Vec<(DeliveryOutcome, Fate)>, usize) {
    let application = Application { cruel, ..Application::default() };
    let serving = application.clone();
    let patient = WebhookClientOptions { total_timeout: if cruel { PATIENCE } else { PLENTY }, ..options() };
    let (client, url) = http2_receiver(patient, move |peer| serving.clone().serve(peer)).await;
    let attempts: Vec<_> = stream::iter(0..DELIVERIES)
        .map(|number| {
            let (client, url, id) = (client.clone(), url.clone(), format!("delivery {number}").into_bytes());
            async move { (client.attempt(&url, Bytes::from(id.clone())).await.outcome, id) }
        })
        .buffer_unordered(IN_FLIGHT)
        .collect()
        .await;
    let fates = application.fates.lock().unwrap();
    let known = attempts.into_iter().map(|(outcome, id)| (outcome, fates.get(&id).copied().unwrap_or_default()));
    let known: Vec<_> = known.collect();
    let again = known.iter().filter(|(_, fate)| fate.came > 1).count();
    (known, again)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_that_says_what_it_has_not_processed_gets_everything_exactly_once() {
    let (deliveries, again) = storm(false).await;
    for (outcome, fate) in &deliveries {
        assert_eq!((*outcome, fate.processed), (Delivered, 1), "{fate:?}");
    }
    assert!(deliveries.len() == DELIVERIES && again > 300, "{again}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_that_breaks_off_without_a_word_gets_nothing_twice_and_the_record_is_honest() {
    let (deliveries, again) = storm(true).await;
    for (outcome, fate) in &deliveries {
        assert!(fate.processed <= 1, "{outcome:?}, {fate:?}");
        match outcome {
            Delivered => assert_eq!(fate.processed, 1, "{fate:?}"),
            Broken | TimedOut => assert!(!fate.answered, "{outcome:?}, {fate:?}"),
            outcome => panic!("{outcome:?}, {fate:?}"),
        }
    }
    let ambiguous = deliveries.iter().filter(|(outcome, _)| *outcome != Delivered).count();
    assert!(deliveries.len() == DELIVERIES && again > 200, "{again}");
    assert!((50..DELIVERIES / 2).contains(&ambiguous), "{ambiguous}");
    println!("{again} went again, {ambiguous} are ambiguous");
}
