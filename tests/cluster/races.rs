//! Races between nodes: for credits, for places, for one transaction, for one idempotency key.

use futures_util::future::join_all;
use sakshi_kit::event::{EventCounts, TestEvent};
use sakshi_kit::identity_app::CallbackFormat;
use sakshi_kit::waiting::TIMEOUT;
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};
use serde_json::json;

use crate::nodes::Nodes;

#[tokio::test]
async fn sixty_inits_on_thirty_credits_at_three_nodes_open_exactly_thirty() {
    let nodes = Nodes::start().await;
    let backend = nodes.backend(30).await;
    let answers = nodes.call_in_turn(60, |_, node| {
        let backend = backend.through(&node.addresses);
        async move { backend.init(&json!({"claims": ["name"], "channel": "qr"})).await.status }
    });
    let answers = answers.await;
    let count = |status| answers.iter().filter(|answer| **answer == status).count();
    assert_eq!((count(200), count(402)), (30, 30), "{answers:?}");
    for node in &nodes.all {
        assert_eq!(node.operator().balance(&backend.client).await, 0);
    }
    let statement = nodes.all[2].operator().statement(&backend.client).await;
    assert_eq!(statement.len(), 31, "one grant and thirty debits");
}

/// The scan of one guest, and its registration, as numbers.
#[derive(Default)]
struct GuestCounts {
    scans: u64,
    registered: u64,
}

#[tokio::test]
async fn ninety_guests_for_twenty_places_at_three_nodes_register_exactly_twenty() {
    let nodes = Nodes::start().await;
    let (organiser, identity_app) = (nodes.backend(200).await, nodes.all[0].identity_app());
    let receiver = WebhookReceiver::start(Behaviour::Answer(200)).await.expect("a port");
    let event = TestEvent::open_reported(&nodes.all[0], &organiser, 20, &receiver.url("/hook")).await;
    let visits = nodes.call_in_turn(90, |number, scanned_on| {
        let event_here = event.through(&scanned_on.addresses);
        let answers_on = identity_app.through(&nodes.all[(number + 1) % 3].addresses);
        async move {
            let pressed = event_here.press_in_new_browser().await;
            // The event is full.
            if pressed.status == 409 {
                return GuestCounts::default();
            }
            let opened = event_here.follow(&pressed).await;
            let answer = answers_on.present(&opened, &answers_on.credential(&opened, "asha")).await;
            assert!(matches!(answer.status, 200 | 409), "{}", answer.text);
            GuestCounts { scans: 1, registered: u64::from(answer.status == 200) }
        }
    });
    let visits = visits.await;
    let scans: u64 = visits.iter().map(|guest| guest.scans).sum();
    assert_eq!(visits.iter().map(|guest| guest.registered).sum::<u64>(), 20);
    assert_eq!(receiver.wait_for(20, TIMEOUT).await.len(), 20);
    for node in &nodes.all {
        let event_here = event.through(&node.addresses);
        let counts = EventCounts { status: "at_capacity", registered: 20, scanned: scans, abandoned: 0 };
        assert_eq!(event_here.counts().await, counts);
        assert_eq!(event_here.registered_txns().await.len(), 20);
    }
    assert_eq!(nodes.all[1].operator().balance(&organiser.client).await, 200 - scans, "one credit for each scan");
    assert_eq!(receiver.received().len(), 20, "one webhook for each registration");
}

#[tokio::test]
async fn one_of_two_answers_at_two_nodes_wins_and_sends_one_webhook() {
    let nodes = Nodes::start().await;
    let (backend, identity_app) = (nodes.backend(40).await, nodes.all[0].identity_app());
    let receiver = WebhookReceiver::start(Behaviour::Answer(200)).await.expect("a port");
    for round in 0..30 {
        let opened =
            backend.through(&nodes.all[round % 3].addresses).open_reported(&["name"], &receiver.url("/hook")).await;
        let [consenting_app, declining_app] =
            [1, 2].map(|other| identity_app.through(&nodes.all[(round + other) % 3].addresses));
        let credential = consenting_app.credential(&opened, "asha");
        let (passed, failed) = tokio::join!(
            consenting_app.present(&opened, &credential),
            declining_app.fail(&opened, "301", "User Reject")
        );
        let mut statuses = [passed.status, failed.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409], "{} {}", passed.text, failed.text);
        let has_passed = passed.status == 200;
        for at_node in nodes.at_each_node(&backend) {
            assert_eq!(at_node.result(&opened.txn).await.ok()["data"]["verification_passed"], has_passed);
        }
        // Repeating the winner's answer, anywhere, changes nothing.
        let repeating_app = identity_app.through(&nodes.all[round % 3].addresses);
        let answer = if has_passed {
            repeating_app.present(&opened, &credential).await
        } else {
            repeating_app.fail(&opened, "301", "User Reject").await
        };
        CallbackFormat::Json.reply(&answer, &opened.txn, 200);
    }
    assert_eq!(receiver.wait_for(30, TIMEOUT).await.len(), 30);
    // Another delivery to the same origin ends after any duplicate.
    let last = backend.open_reported(&["name"], &receiver.url("/hook")).await;
    identity_app.approve(&last, "asha").await;
    nodes.all[0].operator().delivery(&last.txn).await;
    assert_eq!(receiver.received().len(), 31);
}

#[tokio::test]
async fn one_idempotency_key_at_three_nodes_opens_one_transaction() {
    let nodes = Nodes::start().await;
    let backend = nodes.backend(10).await;
    let body = json!({"claims": ["name"], "channel": "qr"});
    let backends = nodes.at_each_node(&backend);
    let answers = join_all((0..30).map(|number| backends[number % 3].init_once("the-same-key", &body))).await;
    assert!(answers.iter().all(|answer| answer.status == 200));
    assert!(answers.iter().all(|answer| answer.text == answers[0].text), "every answer has the same bytes");
    assert_eq!(nodes.all[1].operator().balance(&backend.client).await, 9);
    let other = backends[2].init_once("the-same-key", &json!({"claims": ["dob"], "channel": "qr"})).await;
    assert_eq!(other.status, 422, "{}", other.text);
}

#[tokio::test]
async fn a_credential_accepted_on_one_node_is_refused_on_another() {
    let nodes = Nodes::start().await;
    let (backend, identity_app) = (nodes.backend(10).await, nodes.all[0].identity_app());
    let (first, second) =
        (backend.open(&["name"]).await, backend.through(&nodes.all[1].addresses).open(&["name"]).await);
    let bare = identity_app.bare_credential(first.intent.requested(), "asha");
    assert_eq!(identity_app.through(&nodes.all[1].addresses).present(&first, &bare).await.status, 200);
    let replayed = identity_app.through(&nodes.all[2].addresses).present(&second, &bare).await;
    assert_eq!(replayed.status, 400, "{}", replayed.text);
    assert!(backend.is_pending(&second.txn).await);
}
