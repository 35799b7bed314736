//! Thousands of deliveries to a receiver that at random answers, refuses, sends GOAWAY, resets streams, cuts its
//! connections and hangs.
//!
//! A receiver that reports which requests it processed gets each delivery exactly once. An unreliable receiver also
//! fails without a report. Then nothing is repeated: its application gets each delivery at most once. An answered
//! delivery is recorded as delivered, and a delivery recorded as delivered was processed. Others are `broken` or
//! `timed_out`.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::frames::{INTERNAL_ERROR, NO_ERROR, Peer, REFUSED_STREAM, STATUS_200, http2_receiver};
use crate::receiver::LONG_TIMEOUT;
use crate::sender::options;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream;
use sakshi_domain::delivery::DeliveryOutcome::{self, Broken, Delivered, TimedOut};
use sakshi_outbound::client::WebhookClientOptions;
use tokio::time::timeout;

const DELIVERIES: usize = 6_000;
const IN_FLIGHT: usize = 64;
/// The total timeout with a receiver that may hang; long enough for many refusals.
const UNRELIABLE_TIMEOUT: Duration = Duration::from_secs(2);

/// Silence after which the receiver sends delayed answers.
const QUIET: Duration = Duration::from_millis(20);

/// The fate of a delivery at the receiver.
#[derive(Clone, Copy, Debug, Default)]
struct ReceivedDelivery {
    /// Number of times that it arrived.
    arrivals: usize,
    /// Number of times that the application processed it.
    processings: usize,
    /// True if it was answered on a connection that was not cut.
    is_answered: bool,
}

/// The application behind the receiver, with a random number generator.
#[derive(Clone, Default)]
struct Application {
    /// True if the receiver also fails without a report of the requests that it processed.
    is_unreliable: bool,
    deliveries: Arc<Mutex<HashMap<Vec<u8>, ReceivedDelivery>>>,
    seed: Arc<AtomicU64>,
}

impl Application {
    /// Returns a number from 0 to 9,999, by the finaliser of splitmix64; the seed is a counter.
    fn random(&self) -> u64 {
        let mut x = self.seed.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) % 10_000
    }

    /// Changes the record of the delivery with this id.
    fn change_delivery(&self, id: &[u8], change: impl FnOnce(&mut ReceivedDelivery)) {
        change(self.deliveries.lock().unwrap().entry(id.to_vec()).or_default());
    }
}

/// One connection of the receiver.
struct Connection {
    application: Application,
    peer: Peer,
    /// Streams and ids of requests that are processed but not answered yet.
    unanswered: Vec<(u32, Vec<u8>)>,
    /// Ids of the requests that were answered on this connection.
    answered: Vec<Vec<u8>>,
    /// The last stream that was processed or refused. The streams of a connection are 1, 3, 5 and so on.
    last_stream: u32,
    /// Number of requests that have arrived. Their bodies may end in another order than their streams begin.
    arrivals: u32,
}

impl Connection {
    async fn serve(mut self) -> Option<()> {
        loop {
            // Delayed answers are sent when no frame arrives.
            match timeout(QUIET, self.peer.request()).await {
                Ok(request) => {
                    let (stream, id) = request?;
                    self.handle(stream, id).await?;
                }
                Err(_) => self.send_answers().await?,
            }
        }
    }

    /// Handles a request in a way that is drawn at random, with chances in 10,000. Returns `None` when the connection
    /// has ended.
    async fn handle(&mut self, stream: u32, id: Vec<u8>) -> Option<()> {
        self.arrivals += 1;
        // GOAWAY names a last stream, so all streams up to it must have arrived.
        let have_earlier_arrived = self.last_stream == (2 * self.arrivals - 2).saturating_sub(1);
        let have_all_arrived = self.last_stream.max(stream) == 2 * self.arrivals - 1;
        self.application.change_delivery(&id, |delivery| delivery.arrivals += 1);
        match self.application.random() {
            0..100 if have_earlier_arrived => self.go_away().await,
            100..200 if have_all_arrived => self.shut_down(stream, id).await,
            200..800 => {
                self.last_stream = self.last_stream.max(stream);
                self.peer.reset(stream, REFUSED_STREAM).await
            }
            drawn @ 800..888 if self.application.is_unreliable => self.fail_without_report(drawn, stream, id).await,
            _ => {
                self.process(stream, id);
                self.last_stream = self.last_stream.max(stream);
                if self.application.random() < 7_000 { self.send_answers().await } else { Some(()) }
            }
        }
    }

    /// Processes a request, whose answer is sent later.
    fn process(&mut self, stream: u32, id: Vec<u8>) {
        self.count_processing(&id);
        self.unanswered.push((stream, id));
    }

    /// Counts that the application processed a delivery.
    fn count_processing(&self, id: &[u8]) {
        self.application.change_delivery(id, |delivery| delivery.processings += 1);
    }

    /// Sends GOAWAY: this request and later ones are not processed; earlier ones are usually answered.
    async fn go_away(&mut self) -> Option<()> {
        let is_unreliable = self.application.is_unreliable;
        let code = if self.application.random() < 5_000 { NO_ERROR } else { INTERNAL_ERROR };
        self.peer.go_away(self.last_stream, code).await?;
        if is_unreliable && self.application.random() < 1_000 {
            return self.cut();
        }
        self.send_answers().await?;
        match self.application.random() {
            0..1_000 if is_unreliable => return self.cut(),
            1_000..5_000 => self.peer.close_sending().await,
            _ => {}
        }
        self.peer.read_until_closed().await;
        None
    }

    /// Shuts down gracefully in two steps, like proxies do.
    async fn shut_down(&mut self, stream: u32, id: Vec<u8>) -> Option<()> {
        const LARGEST_STREAM: u32 = (1 << 31) - 1;
        self.peer.go_away(LARGEST_STREAM, NO_ERROR).await?;
        self.process(stream, id);
        self.send_answers().await?;
        self.peer.go_away(self.last_stream.max(stream), NO_ERROR).await?;
        self.peer.read_until_closed().await;
        None
    }

    /// Fails in a way that does not show whether the request was processed.
    async fn fail_without_report(&mut self, drawn: u64, stream: u32, id: Vec<u8>) -> Option<()> {
        match drawn {
            // An internal error.
            800..840 => {
                self.count_processing(&id);
                self.last_stream = self.last_stream.max(stream);
                self.peer.reset(stream, INTERNAL_ERROR).await
            }
            // Cuts the connection, at once or after processing the request.
            840..860 => {
                if self.application.random() < 5_000 {
                    self.process(stream, id);
                }
                self.cut()
            }
            // Closes the connection cleanly, without GOAWAY.
            860..880 => {
                self.send_answers().await?;
                self.peer.close_sending().await;
                self.peer.read_until_closed().await;
                None
            }
            // Hangs on this request and answers others.
            880..886 => {
                self.count_processing(&id);
                self.last_stream = self.last_stream.max(stream);
                Some(())
            }
            // Hangs on the whole connection.
            _ => {
                self.process(stream, id);
                self.peer.read_until_closed().await;
                None
            }
        }
    }

    /// Resets the connection, which may lose answers that were just written.
    fn cut(&self) -> Option<()> {
        self.answered
            .iter()
            .for_each(|id| self.application.change_delivery(id, |delivery| delivery.is_answered = false));
        self.peer.reset_connection();
        None
    }

    /// Sends the answers that are due.
    async fn send_answers(&mut self) -> Option<()> {
        for (stream, id) in self.unanswered.drain(..) {
            self.peer.answer(stream, STATUS_200).await?;
            self.application.change_delivery(&id, |delivery| delivery.is_answered = true);
            self.answered.push(id);
        }
        Some(())
    }
}

/// Makes all deliveries. Returns their outcomes, each with what happened at the receiver, and the number of deliveries
/// that arrived more than once.
async fn deliver_all(is_unreliable: bool) -> (Vec<(DeliveryOutcome, ReceivedDelivery)>, usize) {
    let application = Application { is_unreliable, ..Application::default() };
    let serving_application = application.clone();
    let total_timeout = if is_unreliable { UNRELIABLE_TIMEOUT } else { LONG_TIMEOUT };
    let (client, url) = http2_receiver(WebhookClientOptions { total_timeout, ..options() }, move |peer| {
        let (unanswered, answered) = (Vec::new(), Vec::new());
        let application = serving_application.clone();
        Connection { application, peer, unanswered, answered, last_stream: 0, arrivals: 0 }.serve()
    })
    .await;
    let attempts: Vec<_> = stream::iter(0..DELIVERIES)
        .map(|number| {
            let (client, url, id) = (client.clone(), url.clone(), format!("delivery {number}").into_bytes());
            async move { (client.attempt(&url, Bytes::from(id.clone())).await.outcome, id) }
        })
        .buffer_unordered(IN_FLIGHT)
        .collect()
        .await;
    let received = application.deliveries.lock().unwrap();
    let deliveries: Vec<_> =
        attempts.into_iter().map(|(outcome, id)| (outcome, received.get(&id).copied().unwrap_or_default())).collect();
    let repeated = deliveries.iter().filter(|(_, delivery)| delivery.arrivals > 1).count();
    (deliveries, repeated)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_that_reports_unprocessed_requests_gets_each_delivery_once() {
    let is_unreliable = false;
    let (deliveries, repeated) = deliver_all(is_unreliable).await;
    for (outcome, delivery) in &deliveries {
        assert_eq!((*outcome, delivery.processings), (Delivered, 1), "{delivery:?}");
    }
    assert!(deliveries.len() == DELIVERIES && repeated > 300, "{repeated}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_that_cuts_connections_gets_no_delivery_twice() {
    let is_unreliable = true;
    let (deliveries, repeated) = deliver_all(is_unreliable).await;
    for (outcome, delivery) in &deliveries {
        assert!(delivery.processings <= 1, "{outcome:?}, {delivery:?}");
        match outcome {
            Delivered => assert_eq!(delivery.processings, 1, "{delivery:?}"),
            Broken | TimedOut => assert!(!delivery.is_answered, "{outcome:?}, {delivery:?}"),
            outcome => panic!("{outcome:?}, {delivery:?}"),
        }
    }
    let ambiguous = deliveries.iter().filter(|(outcome, _)| *outcome != Delivered).count();
    assert!(deliveries.len() == DELIVERIES && repeated > 200, "{repeated}");
    assert!((50..DELIVERIES / 2).contains(&ambiguous), "{ambiguous}");
    println!("{repeated} deliveries were repeated, {ambiguous} are ambiguous");
}
