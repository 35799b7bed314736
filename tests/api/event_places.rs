//! Specification, "Event": only registrations take places, and every scan costs a credit.

use futures_util::future::join_all;
use reqwest::Method;
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};
use serde_json::{Value, json};

use sakshi_kit::answer::Answer;
use sakshi_kit::backend::Opened;
use sakshi_kit::event::{BROWSER, EventCounts, TestEvent, terms};
use sakshi_kit::identity_app::{CallbackFormat, IdentityApp};
use sakshi_kit::node::TestNode;
use sakshi_kit::outbox::txn_of;
use sakshi_kit::waiting::{TIMEOUT, eventually};

async fn start_receiver() -> WebhookReceiver {
    WebhookReceiver::start(Behaviour::Answer(200)).await.expect("a port")
}

/// Returns true if a webhook was ever queued for a transaction.
async fn is_reported(node: &TestNode, txn: &str) -> bool {
    let answer = node.operator().get(&format!("/admin/v1/transactions/{txn}/delivery")).await;
    assert!(matches!(answer.status, 200 | 404), "{}", answer.text);
    answer.status == 200
}

/// Posts the guest's credential, and returns the answer, whatever it is.
async fn post_credential(identity_app: &IdentityApp, opened: &Opened) -> Answer {
    identity_app.present(opened, &identity_app.credential(opened, "asha")).await
}

#[tokio::test]
async fn repeated_scans_cost_no_more_than_the_pending_maximum() {
    let node = TestNode::start().await;
    let (organiser, identity_app) = (node.backend_with_credits(100).await, node.identity_app());
    let event = TestEvent::open(&node, &organiser, &terms(5)).await;
    let answers = join_all((0..60).map(|_| event.press_in_new_browser())).await;
    let (admitted, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 303);
    // Without its own maximum, a small event admits twenty pending guests.
    assert_eq!((admitted.len(), refused.len()), (20, 40));
    for answer in refused {
        assert_eq!(answer.status, 429, "{}", answer.text);
        assert!(answer.header("retry-after").is_some() && answer.text.contains("<html"), "{}", answer.text);
    }
    assert_eq!(node.operator().balance(&organiser.client).await, 80);
    assert_eq!(
        organiser.init(&json!({"claims": ["name"], "channel": "web"})).await.status,
        200,
        "the client's own requests are not refused"
    );
    // A verified guest makes room for the next.
    let opened = event.follow(admitted[0]).await;
    assert_eq!(post_credential(&identity_app, &opened).await.status, 200);
    event.scan().await;
    assert_eq!(event.press_in_new_browser().await.status, 429);
    assert_eq!(event.patch(&json!({"max_pending": 21})).await.ok()["max_pending"], 21);
    event.scan().await;
    assert_eq!(event.press_in_new_browser().await.status, 429);
    assert_eq!(event.patch(&json!({"max_pending": null})).await.ok()["max_pending"], Value::Null);
    for invalid in [json!(0), json!(1_000_001), json!("many"), json!(2.5)] {
        let refused = event.patch(&json!({"max_pending": invalid})).await;
        assert!(refused.status == 400 && refused.text.contains("max_pending"), "{invalid}: {}", refused.text);
    }
}

#[tokio::test]
async fn ten_of_forty_concurrent_guests_get_the_ten_places_and_thirty_get_409() {
    let node = TestNode::start().await;
    let (organiser, identity_app, receiver) =
        (node.backend_with_credits(100).await, node.identity_app(), start_receiver().await);
    let event = TestEvent::open_reported(&node, &organiser, 10, &receiver.url("/hook")).await;
    let scans = join_all((0..40).map(|_| event.scan())).await;
    assert_eq!(
        event.counts().await,
        EventCounts { status: "active", registered: 0, scanned: 40, abandoned: 0 },
        "a scan takes no place"
    );

    let answers = join_all(scans.iter().map(|opened| post_credential(&identity_app, opened))).await;
    let (mut registered, mut refused) = (Vec::new(), Vec::new());
    for (opened, answer) in scans.iter().zip(&answers) {
        match answer.status {
            200 => registered.push(opened.txn.clone()),
            status => {
                assert_eq!(CallbackFormat::Json.reply(answer, &opened.txn, 409), "The event is full", "{status}");
                refused.push(opened.txn.clone());
            }
        }
    }
    assert_eq!((registered.len(), refused.len()), (10, 30));
    assert_eq!(node.operator().balance(&organiser.client).await, 60, "one credit for each scan, registered or not");
    assert_eq!(event.counts().await, EventCounts { status: "at_capacity", registered: 10, scanned: 40, abandoned: 0 });

    let guests = event.registrations().await;
    for guest in &guests {
        assert_eq!(guest["verified_claims"], json!({"residentName": "Asha Rao", "gender": "F"}), "{guest}");
        assert_eq!(guest["verification_passed"], true, "{guest}");
    }
    let mut listed = event.registered_txns().await;
    listed.sort_unstable();
    registered.sort_unstable();
    assert_eq!(listed, registered);

    let webhooks = receiver.wait_for(10, TIMEOUT).await;
    let mut reported: Vec<String> = webhooks.iter().map(|request| txn_of(&request.body)).collect();
    reported.sort_unstable();
    assert_eq!(reported, registered, "each registration is reported once");
    for txn in &refused {
        assert!(!is_reported(&node, txn).await, "{txn} was not registered");
        let result = organiser.result(txn).await.ok();
        assert_eq!(
            (&result["success"], &result["data"]["verification_passed"]),
            (&json!(false), &json!(false)),
            "{result}"
        );
        assert_eq!(
            (&result["data"]["error_code"], &result["data"]["verified_claims"]),
            (&json!("event_full"), &json!({})),
            "{result}"
        );
    }
    assert_eq!(receiver.received().len(), 10);
}

#[tokio::test]
async fn concurrent_scans_and_answers_never_exceed_the_places() {
    let node = TestNode::start().await;
    let (organiser, identity_app, receiver) =
        (node.backend_with_credits(100).await, node.identity_app(), start_receiver().await);
    let event = TestEvent::open_reported(&node, &organiser, 10, &receiver.url("/hook")).await;
    let scanned_and_registered = join_all((0..40).map(|_| async {
        let pressed = event.press_in_new_browser().await;
        if pressed.status == 409 {
            return (0, 0);
        }
        let opened = event.follow(&pressed).await;
        let answer = post_credential(&identity_app, &opened).await;
        assert!(matches!(answer.status, 200 | 409), "{}", answer.text);
        (1, u64::from(answer.status == 200))
    }))
    .await;
    let (scans, registered) =
        scanned_and_registered.iter().fold((0, 0), |total, guest| (total.0 + guest.0, total.1 + guest.1));
    assert_eq!(registered, 10);
    assert_eq!(
        event.counts().await,
        EventCounts { status: "at_capacity", registered: 10, scanned: scans, abandoned: 0 }
    );
    assert_eq!(
        node.operator().balance(&organiser.client).await,
        100 - scans,
        "a guest refused before a scan costs nothing"
    );
    assert_eq!((receiver.wait_for(10, TIMEOUT).await.len(), event.registrations().await.len()), (10, 10));
}

#[tokio::test]
async fn a_raised_guest_limit_admits_new_guests_but_not_refused_ones() {
    let node = TestNode::start().await;
    let (organiser, identity_app, receiver) =
        (node.backend_with_credits(10).await, node.identity_app(), start_receiver().await);
    let event = TestEvent::open_reported(&node, &organiser, 1, &receiver.url("/hook")).await;
    let (first, second) = (event.scan().await, event.scan().await);
    identity_app.approve(&first, "asha").await;
    let credential = identity_app.credential(&second, "asha");
    assert_eq!(identity_app.present(&second, &credential).await.status, 409);
    assert_eq!(Answer::receive(event.visit(Method::GET, BROWSER)).await.status, 409);
    assert_eq!(event.press_in_new_browser().await.status, 409);
    assert_eq!(node.operator().balance(&organiser.client).await, 8);

    let changed = event.patch(&json!({"max_guests": 2})).await.ok();
    assert_eq!(
        (&changed["status"], &changed["remaining"], &changed["max_guests"]),
        (&json!("active"), &json!(1), &json!(2))
    );
    assert_eq!(identity_app.present(&second, &credential).await.status, 409, "a repeated callback gets the same reply");
    identity_app.approve(&event.scan().await, "asha").await;
    assert_eq!(event.counts().await, EventCounts { status: "at_capacity", registered: 2, scanned: 3, abandoned: 0 });
    assert_eq!(receiver.wait_for(2, TIMEOUT).await.len(), 2);
}

#[tokio::test]
async fn a_disabled_event_refuses_new_scans_and_credentials_of_earlier_scans() {
    let node = TestNode::start().await;
    let (organiser, identity_app, receiver) =
        (node.backend_with_credits(10).await, node.identity_app(), start_receiver().await);
    let event = TestEvent::open_reported(&node, &organiser, 10, &receiver.url("/hook")).await;
    let pending = event.scan().await;
    assert_eq!(event.patch(&json!({"is_active": false})).await.ok()["status"], "disabled");
    assert_eq!(Answer::receive(event.visit(Method::GET, BROWSER)).await.status, 410);
    assert_eq!(event.press_in_new_browser().await.status, 410);
    let answer = post_credential(&identity_app, &pending).await;
    assert_eq!(CallbackFormat::Json.reply(&answer, &pending.txn, 410), "The event was disabled");
    let result = organiser.result(&pending.txn).await.ok();
    assert_eq!(
        (&result["success"], &result["data"]["error_code"]),
        (&json!(false), &json!("event_closed")),
        "{result}"
    );
    assert_eq!(event.counts().await, EventCounts { status: "disabled", registered: 0, scanned: 1, abandoned: 0 });
    assert!(event.registrations().await.is_empty() && !is_reported(&node, &pending.txn).await);
    assert_eq!(node.operator().balance(&organiser.client).await, 9);

    assert_eq!(event.patch(&json!({"is_active": true})).await.ok()["status"], "active");
    identity_app.approve(&event.scan().await, "asha").await;
    assert_eq!(receiver.wait_for(1, TIMEOUT).await.len(), 1);
}

#[tokio::test]
async fn an_abandoned_scan_costs_a_credit_and_takes_no_place() {
    let node = TestNode::start_with(&[("OVSE__WINDOW_S", "8")]).await;
    let (organiser, identity_app) = (node.backend_with_credits(10).await, node.identity_app());
    let event = TestEvent::open(&node, &organiser, &terms(1)).await;
    let abandoned = event.scan().await;
    let late_credential = identity_app.credential(&abandoned, "asha");
    eventually("the end of the window", TIMEOUT, || async { (event.counts().await.abandoned == 1).then_some(()) })
        .await;
    assert_eq!(event.counts().await, EventCounts { status: "active", registered: 0, scanned: 1, abandoned: 1 });
    assert_eq!(identity_app.present(&abandoned, &late_credential).await.status, 410);
    identity_app.approve(&event.scan().await, "asha").await;
    assert_eq!(event.counts().await, EventCounts { status: "at_capacity", registered: 1, scanned: 2, abandoned: 1 });
    assert_eq!(node.operator().balance(&organiser.client).await, 8);
}

#[tokio::test]
async fn a_guest_who_declines_takes_no_place_and_is_not_reported() {
    let node = TestNode::start().await;
    let (organiser, identity_app, receiver) =
        (node.backend_with_credits(10).await, node.identity_app(), start_receiver().await);
    let event = TestEvent::open_reported(&node, &organiser, 1, &receiver.url("/hook")).await;
    let declined = event.scan().await;
    assert_eq!(identity_app.fail(&declined, "301", "User Reject").await.status, 200);
    assert_eq!(organiser.result(&declined.txn).await.ok()["data"]["error_code"], "301");
    assert_eq!(
        event.counts().await,
        EventCounts { status: "active", registered: 0, scanned: 1, abandoned: 0 },
        "a declined verification is not abandoned"
    );
    identity_app.approve(&event.scan().await, "asha").await;
    assert_eq!(event.counts().await, EventCounts { status: "at_capacity", registered: 1, scanned: 2, abandoned: 0 });
    assert_eq!(receiver.wait_for(1, TIMEOUT).await.len(), 1);
    assert!(!is_reported(&node, &declined.txn).await);
    assert_eq!(node.operator().balance(&organiser.client).await, 8);
}

#[tokio::test]
async fn a_registration_is_reported_to_the_events_current_webhook_url() {
    let node = TestNode::start().await;
    let (organiser, identity_app) = (node.backend_with_credits(10).await, node.identity_app());
    let (first_receiver, second_receiver) = (start_receiver().await, start_receiver().await);
    let event = TestEvent::open_reported(&node, &organiser, 10, &first_receiver.url("/hook")).await;
    let (first, second, third) = (event.scan().await, event.scan().await, event.scan().await);
    identity_app.approve(&first, "asha").await;
    let webhooks = first_receiver.wait_for(1, TIMEOUT).await;
    let body: Value = serde_json::from_slice(&webhooks[0].body).expect("JSON");
    assert_eq!(body, organiser.result(&first.txn).await.ok());
    assert_eq!(webhooks[0].path, "/hook");

    event.patch(&json!({"webhook_url": second_receiver.url("/new")})).await.ok();
    identity_app.approve(&second, "asha").await;
    assert_eq!(txn_of(&second_receiver.wait_for(1, TIMEOUT).await[0].body), second.txn);
    assert_eq!(event.patch(&json!({"webhook_url": null})).await.ok()["webhook_url"], Value::Null);
    identity_app.approve(&third, "asha").await;
    assert!(!is_reported(&node, &third.txn).await, "nothing is sent without a URL");
    assert_eq!(
        (first_receiver.received().len(), second_receiver.received().len(), event.registrations().await.len()),
        (1, 1, 3)
    );
}
