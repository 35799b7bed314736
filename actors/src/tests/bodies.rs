//! Memory of webhook bodies, and delays by a receiver of large files.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use sakshi_domain::flow::flow_id::FlowId;
use sakshi_sandbox::receiver::{Arrival, Behaviour, WebhookReceiver, listen};
use sakshi_store::ReportFlowOutcome;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::{Fixture, large_bounds, run, verified, wait_until};
use crate::{ByteBounds, DispatchBounds, TreeBounds};

const TIMEOUT: Duration = Duration::from_secs(300);
/// Size of a file, and of the file in Base64.
const FILE_BYTES: usize = 7_500_000;
const BODY_BYTES: usize = FILE_BYTES / 3 * 4;
/// Maximum attempts in flight; one client alone may have two.
const IN_FLIGHT: usize = 4;

impl Fixture {
    /// Opens a document and reports it as signed, with a file, so that its webhook is due.
    async fn send_file_to(&self, receiver: &WebhookReceiver, bytes: usize) -> FlowId {
        let id = self.open_document(&receiver.url("/hook")).await;
        let outcome = self.flows.report(self.signed_report_with_file(id, bytes)).await;
        assert!(matches!(outcome, Ok(ReportFlowOutcome::Accepted { queued: Some(_), .. })), "{outcome:?}");
        id
    }

    /// Completes a transaction, so that its webhook is due.
    async fn send_verification_to(&self, receiver: &WebhookReceiver) {
        let id = self.open_with_webhook(Some(&receiver.url("/hook"))).await.unwrap();
        self.complete(id, verified(1)).await;
    }

    /// Counts the webhooks that are not claimed.
    pub(super) async fn unclaimed_deliveries(&self) -> usize {
        let mut waiting = 0;
        for due in self.store.due_deliveries(None, None, 100).await.unwrap() {
            let delivery = self.store.load_delivery(due.subject).await.unwrap().unwrap();
            waiting += usize::from(delivery.claimed_at.is_none());
        }
        waiting
    }
}

/// A receiver whose requests wait until the test answers them.
struct SlowReceiver {
    receiver: WebhookReceiver,
    arrivals: mpsc::Receiver<Arrival>,
}

impl SlowReceiver {
    async fn start() -> Self {
        let (receiver, arrivals) = listen(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        Self { receiver, arrivals }
    }

    async fn next_request(&mut self) -> Arrival {
        timeout(TIMEOUT, self.arrivals.recv()).await.expect("a request in time").unwrap()
    }
}

/// Samples the bytes that bodies take, on a thread of its own.
struct PeakWatcher {
    ended: Arc<AtomicBool>,
    watcher: JoinHandle<usize>,
}

impl PeakWatcher {
    fn watch(fixture: &Fixture) -> Self {
        let (tree, ended) = (fixture.tree.clone(), Arc::new(AtomicBool::new(false)));
        let stop = Arc::clone(&ended);
        let watcher = std::thread::spawn(move || {
            let mut peak_bytes = 0;
            while !stop.load(Ordering::Relaxed) {
                peak_bytes = peak_bytes.max(tree.webhook_body_bytes());
                std::thread::park_timeout(Duration::from_micros(200));
            }
            peak_bytes
        });
        Self { ended, watcher }
    }

    fn end(self) -> usize {
        self.ended.store(true, Ordering::Relaxed);
        self.watcher.join().unwrap()
    }
}

#[test]
fn twenty_receivers_that_hang_on_large_bodies_delay_no_other_receiver() {
    run(async {
        let mut fixture = Fixture::patient(large_bounds()).await;
        let bound = ByteBounds::OUTCOMES.total + ByteBounds::FLOWS.total;
        let peak = PeakWatcher::watch(&fixture);
        let mut hanging = Vec::new();
        // Two clients together may have more memory than one.
        for number in 0..20 {
            if number == 10 {
                fixture.become_another_client().await;
            }
            let receiver = WebhookReceiver::start(Behaviour::Hang).await.unwrap();
            fixture.send_file_to(&receiver, FILE_BYTES).await;
            hanging.push(receiver);
        }
        hanging.reverse();
        // The first receiver has memory for a second webhook, but not for a third while it hangs.
        for _ in 0..2 {
            fixture.send_file_to(&hanging[0], FILE_BYTES).await;
        }
        for (number, receiver) in hanging.iter().enumerate() {
            let expected = if number == 0 { 2 } else { 1 };
            assert_eq!(receiver.wait_for(expected, TIMEOUT).await.len(), expected);
        }
        assert_eq!(fixture.unclaimed_deliveries().await, 1, "a webhook without memory is not claimed");
        // Twenty receivers, and the first one twice. The dispatcher takes a slot for a moment to see whether an attempt
        // can begin.
        wait_until("a webhook without memory holds no slot", || fixture.tree.attempts_in_flight() == 21).await;
        let reserved = fixture.tree.webhook_body_bytes();
        assert!((21 * BODY_BYTES..21 * (BODY_BYTES + 2_048)).contains(&reserved), "{reserved}");

        let healthy = WebhookReceiver::start(Behaviour::Answer(200)).await.unwrap();
        fixture.send_file_to(&healthy, 3_000).await;
        fixture.send_verification_to(&healthy).await;
        assert_eq!(healthy.wait_for(2, TIMEOUT).await.len(), 2);
        wait_until("only those that hang are in flight", || fixture.tree.attempts_in_flight() == 21).await;
        let peak = peak.end();
        assert!((reserved..=bound).contains(&peak), "{peak}");
        fixture.end().await;
    });
}

#[test]
fn without_free_memory_files_wait_in_turn_but_verifications_do_not() {
    run(async {
        // Bounds are raised to the size of one largest body.
        let one_body = ByteBounds { total: 0, per_origin: 0 };
        let webhooks = DispatchBounds { in_flight: IN_FLIGHT, flow_bytes: one_body, ..large_bounds().webhooks };
        let fixture = Fixture::patient(TreeBounds { webhooks, ..large_bounds() }).await;
        let mut slow = Vec::new();
        for _ in 0..3 {
            let receiver = SlowReceiver::start().await;
            fixture.send_file_to(&receiver.receiver, FILE_BYTES).await;
            slow.push(receiver);
        }
        let first = slow[0].next_request().await;
        let healthy = WebhookReceiver::start(Behaviour::Answer(200)).await.unwrap();
        fixture.send_verification_to(&healthy).await;
        assert_eq!(healthy.wait_for(1, TIMEOUT).await.len(), 1, "the first file is not answered yet");
        fixture.send_file_to(&healthy, 3_000).await;
        first.respond(Behaviour::Answer(200));
        let second = slow[1].next_request().await;
        assert_eq!(
            healthy.received().len(),
            1,
            "a small body does not overtake the third file, which has waited longer"
        );
        second.respond(Behaviour::Answer(200));
        slow[2].next_request().await.respond(Behaviour::Answer(200));
        assert_eq!(healthy.wait_for(2, TIMEOUT).await.len(), 2);
        wait_until("no memory is reserved", || fixture.tree.webhook_body_bytes() == 0).await;
        assert_eq!(fixture.unclaimed_deliveries().await, 0);
        assert!(slow.iter_mut().all(|receiver| receiver.arrivals.try_recv().is_err()), "each file is sent once");
        fixture.end().await;
    });
}

#[test]
fn receivers_of_one_client_that_hang_delay_no_webhook_of_another() {
    run(async {
        let webhooks = DispatchBounds { in_flight: 8, ..large_bounds().webhooks };
        let mut fixture = Fixture::patient(TreeBounds { webhooks, ..large_bounds() }).await;
        let mut hanging = Vec::new();
        for _ in 0..12 {
            let receiver = WebhookReceiver::start(Behaviour::Hang).await.unwrap();
            fixture.send_verification_to(&receiver).await;
            hanging.push(receiver);
        }
        wait_until("half of the slots are taken", || fixture.tree.attempts_in_flight() == 4).await;
        let first = fixture.become_another_client().await;
        let healthy = WebhookReceiver::start(Behaviour::Answer(200)).await.unwrap();
        fixture.send_verification_to(&healthy).await;
        assert_eq!(healthy.wait_for(1, TIMEOUT).await.len(), 1);
        // The same receiver hangs for one client, and not for the other.
        fixture.send_verification_to(&hanging[0]).await;
        assert_eq!(hanging[0].wait_for(2, TIMEOUT).await.len(), 2);
        assert_eq!(fixture.unclaimed_deliveries().await, 8, "the webhooks of {first} wait");
        fixture.end().await;
    });
}

#[test]
fn small_payloads_to_one_origin_are_sent_concurrently() {
    run(async {
        let fixture = Fixture::patient(large_bounds()).await;
        let mut slow = SlowReceiver::start().await;
        for _ in 0..20 {
            fixture.send_file_to(&slow.receiver, 3_000).await;
        }
        let mut unanswered = Vec::new();
        for _ in 0..16 {
            unanswered.push(slow.next_request().await);
        }
        wait_until("as many as may be in flight to one origin", || fixture.tree.attempts_in_flight() == 16).await;
        assert!(slow.arrivals.try_recv().is_err());
        for arrival in unanswered {
            arrival.respond(Behaviour::Answer(200));
        }
        for _ in 0..4 {
            slow.next_request().await.respond(Behaviour::Answer(200));
        }
        wait_until("nothing is in flight", || fixture.tree.attempts_in_flight() == 0).await;
        fixture.end().await;
    });
}
