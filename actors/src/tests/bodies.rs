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

use super::{Fixture, roomy, run, until, verified};
use crate::{ByteBounds, DispatchBounds, TreeBounds};

const PATIENCE: Duration = Duration::from_secs(300);
/// Bytes of a file, and of the file in Base64.
const FILE: usize = 7_500_000;
const BODY: usize = FILE / 3 * 4;
/// Attempts in flight, of which one client has two.
const IN_FLIGHT: usize = 4;

impl Fixture {
    /// Opens a document and reports it as signed, with a file, so that its webhook is due.
    async fn file_for(&self, receiver: &WebhookReceiver, bytes: usize) -> FlowId {
        let id = self.open_document(&receiver.url("/hook")).await;
        let outcome = self.flows.report(self.signed_file(id, bytes)).await;
        assert!(matches!(outcome, Ok(ReportFlowOutcome::Accepted { queued: Some(_), .. })), "{outcome:?}");
        id
    }

    async fn verification_for(&self, receiver: &WebhookReceiver) {
        let id = self.open_for(Some(&receiver.url("/hook"))).await.unwrap();
        self.complete(id, verified(1)).await;
    }

    /// Counts the webhooks that nobody has claimed.
    pub(super) async fn not_begun(&self) -> usize {
        let mut waiting = 0;
        for due in self.store.due_deliveries(None, None, 100).await.unwrap() {
            let kept = self.store.load_delivery(due.subject).await.unwrap().unwrap();
            waiting += usize::from(kept.claimed_at.is_none());
        }
        waiting
    }
}

/// A receiver whose requests wait until the test answers them.
struct Slow {
    receiver: WebhookReceiver,
    arrivals: mpsc::Receiver<Arrival>,
}

impl Slow {
    async fn start() -> Self {
        let (receiver, arrivals) = listen(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        Self { receiver, arrivals }
    }

    async fn next(&mut self) -> Arrival {
        timeout(PATIENCE, self.arrivals.recv()).await.expect("a request in time").unwrap()
    }
}

/// Samples the bytes that bodies take, on a thread of its own.
struct Peak {
    ended: Arc<AtomicBool>,
    watcher: JoinHandle<usize>,
}

impl Peak {
    fn watch(fixture: &Fixture) -> Self {
        let (tree, ended) = (fixture.tree.clone(), Arc::new(AtomicBool::new(false)));
        let over = Arc::clone(&ended);
        let watcher = std::thread::spawn(move || {
            let mut most = 0;
            while !over.load(Ordering::Relaxed) {
                most = most.max(tree.webhook_body_bytes());
                std::thread::park_timeout(Duration::from_micros(200));
            }
            most
        });
        Self { ended, watcher }
    }

    fn end(self) -> usize {
        self.ended.store(true, Ordering::Relaxed);
        self.watcher.join().unwrap()
    }
}

#[test]
fn twenty_receivers_that_hang_on_bodies_of_ten_megabytes_delay_no_healthy_one() {
    run(async {
        let mut fixture = Fixture::patient(roomy()).await;
        let bound = ByteBounds::OUTCOMES.in_all + ByteBounds::FLOWS.in_all;
        let peak = Peak::watch(&fixture);
        let mut hanging = Vec::new();
        // All clients together may have more than one client may.
        for number in 0..20 {
            if number == 10 {
                fixture.become_another_client().await;
            }
            let receiver = WebhookReceiver::start(Behaviour::Hang).await.unwrap();
            fixture.file_for(&receiver, FILE).await;
            hanging.push(receiver);
        }
        hanging.reverse();
        // The first of them has room for one more, and a third to come, which it must not get while it hangs.
        for _ in 0..2 {
            fixture.file_for(&hanging[0], FILE).await;
        }
        for (number, receiver) in hanging.iter().enumerate() {
            let most = if number == 0 { 2 } else { 1 };
            assert_eq!(receiver.wait_for(most, PATIENCE).await.len(), most);
        }
        assert_eq!(fixture.not_begun().await, 1, "what finds no room is not claimed");
        // The dispatcher takes a slot for a moment to see whether an attempt can begin.
        until("what finds no room holds no place", || fixture.tree.attempts_in_flight() == 21).await;
        let taken = fixture.tree.webhook_body_bytes();
        assert!((21 * BODY..21 * (BODY + 2_048)).contains(&taken), "{taken}");

        let healthy = WebhookReceiver::start(Behaviour::Answer(200)).await.unwrap();
        fixture.file_for(&healthy, 3_000).await;
        fixture.verification_for(&healthy).await;
        assert_eq!(healthy.wait_for(2, PATIENCE).await.len(), 2);
        until("only those that hang are in flight", || fixture.tree.attempts_in_flight() == 21).await;
        let peak = peak.end();
        assert!((taken..=bound).contains(&peak), "{peak}");
        fixture.end().await;
    });
}

#[test]
fn when_all_memory_is_reserved_files_wait_their_turn_and_verifications_do_not() {
    run(async {
        let least = ByteBounds { in_all: 0, per_origin: 0 };
        let webhooks = DispatchBounds { in_flight: IN_FLIGHT, flow_bytes: least, ..roomy().webhooks };
        let fixture = Fixture::patient(TreeBounds { webhooks, ..roomy() }).await;
        let mut slow = Vec::new();
        for _ in 0..3 {
            let receiver = Slow::start().await;
            fixture.file_for(&receiver.receiver, FILE).await;
            slow.push(receiver);
        }
        let first = slow[0].next().await;
        let healthy = WebhookReceiver::start(Behaviour::Answer(200)).await.unwrap();
        fixture.verification_for(&healthy).await;
        assert_eq!(healthy.wait_for(1, PATIENCE).await.len(), 1, "while the first file waits for its answer");
        fixture.file_for(&healthy, 3_000).await;
        first.respond(Behaviour::Answer(200));
        let second = slow[1].next().await;
        assert_eq!(
            healthy.received().len(),
            1,
            "what is small does not overtake the third file, which has waited longer"
        );
        second.respond(Behaviour::Answer(200));
        slow[2].next().await.respond(Behaviour::Answer(200));
        assert_eq!(healthy.wait_for(2, PATIENCE).await.len(), 2);
        until("nothing takes room", || fixture.tree.webhook_body_bytes() == 0).await;
        assert_eq!(fixture.not_begun().await, 0);
        assert!(slow.iter_mut().all(|receiver| receiver.arrivals.try_recv().is_err()), "each file is sent once");
        fixture.end().await;
    });
}

#[test]
fn receivers_of_one_client_that_hang_delay_no_webhook_of_another() {
    run(async {
        let webhooks = DispatchBounds { in_flight: 8, ..roomy().webhooks };
        let mut fixture = Fixture::patient(TreeBounds { webhooks, ..roomy() }).await;
        let mut hanging = Vec::new();
        for _ in 0..12 {
            let receiver = WebhookReceiver::start(Behaviour::Hang).await.unwrap();
            fixture.verification_for(&receiver).await;
            hanging.push(receiver);
        }
        until("half of the slots are taken", || fixture.tree.attempts_in_flight() == 4).await;
        let first = fixture.become_another_client().await;
        let healthy = WebhookReceiver::start(Behaviour::Answer(200)).await.unwrap();
        fixture.verification_for(&healthy).await;
        assert_eq!(healthy.wait_for(1, PATIENCE).await.len(), 1);
        // The same receiver hangs for one client, and not for the other.
        fixture.verification_for(&hanging[0]).await;
        assert_eq!(hanging[0].wait_for(2, PATIENCE).await.len(), 2);
        assert_eq!(fixture.not_begun().await, 8, "those of {first} wait");
        fixture.end().await;
    });
}

#[test]
fn small_payloads_to_one_origin_are_sent_side_by_side() {
    run(async {
        let fixture = Fixture::patient(roomy()).await;
        let mut slow = Slow::start().await;
        for _ in 0..20 {
            fixture.file_for(&slow.receiver, 3_000).await;
        }
        let mut unanswered = Vec::new();
        for _ in 0..16 {
            unanswered.push(slow.next().await);
        }
        until("as many as may be in flight to one origin", || fixture.tree.attempts_in_flight() == 16).await;
        assert!(slow.arrivals.try_recv().is_err());
        for arrival in unanswered {
            arrival.respond(Behaviour::Answer(200));
        }
        for _ in 0..4 {
            slow.next().await.respond(Behaviour::Answer(200));
        }
        until("nothing is in flight", || fixture.tree.attempts_in_flight() == 0).await;
        fixture.end().await;
    });
}
