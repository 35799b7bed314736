//! The portal's list of verifications, and its view of a webhook.

use sakshi_kit::answer::Answer;
use sakshi_kit::event::{TestEvent, terms};
use sakshi_kit::node::TestNode;
use sakshi_kit::portal::Browser;
use sakshi_kit::ports::free_address;
use sakshi_kit::waiting::{TIMEOUT, eventually};
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};
use serde_json::json;

const LIST: &str = "/portal/verifications";

/// Returns the transactions of a page of the list, in order.
fn listed_txns(page: &str) -> Vec<String> {
    let rows = page.split("<a href=\"/portal/transactions/").skip(1);
    rows.map(|row| row.split('"').next().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn the_list_shows_every_verification_of_its_app_once_newest_first() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(140).await;
    let other_app = node.operator().create_app(&backend.client).await;
    let other = backend.with_credentials(&backend.key, &other_app);
    let browser = Browser::signed_in(&node, &backend).await;
    assert!(browser.get(LIST).await.text.contains("No verification yet"));

    let mut opened = Vec::new();
    for number in 0..105 {
        opened.push(backend.open(&["name"]).await.txn);
        if number % 3 == 0 {
            other.open(&["name"]).await;
        }
    }
    opened.reverse();
    let (mut listed, mut sizes, mut path) = (Vec::new(), Vec::new(), LIST.to_owned());
    loop {
        let page = browser.get(&path).await.text;
        let rows = listed_txns(&page);
        sizes.push(rows.len());
        listed.extend(rows);
        let Some(older) = page.split("href=\"?before=").nth(1) else { break };
        path = format!("{LIST}?before={}", older.split('"').next().unwrap());
    }
    assert_eq!(listed, opened);
    assert_eq!(sizes, [50, 50, 5]);
}

#[tokio::test]
async fn verifications_are_found_by_status_channel_event_reference_and_id() {
    let node = TestNode::start().await;
    let (backend, identity_app) = (node.backend_with_credits(10).await, node.identity_app());
    let browser = Browser::signed_in(&node, &backend).await;
    let pending =
        backend.open_with(&json!({"claims": ["name"], "channel": "web", "client_reference_id": "Order 7&8"})).await;
    let verified = backend.open(&["name"]).await;
    identity_app.approve(&verified, "asha").await;
    let declined = backend.open(&["name"]).await;
    identity_app.fail(&declined, "112", "declined").await;
    let expired = backend.open(&["name"]).await;
    let expire_url = node.addresses.public(&format!("/sandbox/transactions/{}/expire", expired.txn));
    Answer::receive(node.http.post(expire_url)).await.ok();
    let event = TestEvent::open(&node, &backend, &terms(5)).await;
    let guest = event.scan().await;

    let txns = listed_txns(&browser.get(LIST).await.text);
    assert_eq!(txns.iter().collect::<Vec<_>>(), [&guest.txn, &expired.txn, &declined.txn, &verified.txn, &pending.txn]);
    let event_query = format!("find={}", event.id);
    for (query, expected) in [
        ("status=waiting", vec![&guest.txn, &pending.txn]),
        ("status=verified", vec![&verified.txn]),
        ("status=not_verified&channel=qr", vec![&declined.txn]),
        ("status=expired", vec![&expired.txn]),
        ("channel=web&find=order+7%268", vec![&pending.txn]),
        ("channel=qr&find=order+7%268", vec![]),
        (&event_query, vec![&guest.txn]),
        (&format!("event={}", event.id), vec![&guest.txn]),
        (
            &format!("find={}", terms(5)["name"].as_str().unwrap().to_lowercase().split(' ').next().unwrap()),
            vec![&guest.txn],
        ),
        (&format!("find={}", &verified.txn[..30]), vec![&verified.txn]),
        (&format!("find={}", &pending.txn[28..]), vec![&pending.txn]),
        ("why=112", vec![&declined.txn]),
        ("webhook=none&status=verified", vec![&verified.txn]),
        ("webhook=lost", vec![]),
        ("from=2020-01-01T00:00&status=expired", vec![&expired.txn]),
        ("to=2020-01-01T00:00", vec![]),
        ("from=2999-01-01T00:00", vec![]),
    ] {
        assert_eq!(
            listed_txns(&browser.get(&format!("{LIST}?{query}")).await.text).iter().collect::<Vec<_>>(),
            expected,
            "{query}"
        );
    }

    let redirect = browser.get(&format!("{LIST}?find={}", declined.txn)).await;
    assert_eq!(
        (redirect.status, redirect.header("location")),
        (303, Some(&*format!("/portal/transactions/{}", declined.txn)))
    );
    let stranger = node.backend_with_credits(1).await;
    let foreign_txn = stranger.open(&["name"]).await.txn;
    let page = browser.get(&format!("{LIST}?find={foreign_txn}")).await;
    assert!(page.status == 200 && page.text.contains("Nothing found"), "{}", page.text);
    assert!(browser.get(LIST).await.text.contains("Order 7&#38;8"));
}

#[tokio::test]
async fn the_page_of_a_transaction_shows_the_outcome_of_its_webhook() {
    let node = TestNode::start().await;
    let (backend, identity_app) = (node.backend_with_credits(2).await, node.identity_app());
    let browser = Browser::signed_in(&node, &backend).await;
    let unused_address = free_address();
    let opened = backend.open_reported(&["name"], &format!("http://{unused_address}/")).await;
    let page = format!("/portal/transactions/{}", opened.txn);
    let before = browser.get(&page).await.text;
    assert!(
        !before.contains("id=\"delivery\"") && before.contains("Nobody has opened the page"),
        "nothing is sent before an outcome"
    );
    assert_eq!(node.http.get(node.addresses.public(&format!("/v/{}", opened.txn))).send().await.unwrap().status(), 200);
    identity_app.approve(&opened, "asha").await;
    let text = eventually("the end of the attempt", TIMEOUT, || async {
        let text = browser.get(&page).await.text;
        text.contains("Webhook not delivered").then_some(text)
    })
    .await;
    assert!(
        text.contains("unreachable (refused: nothing listens at this port)") && text.contains("id=\"lost\""),
        "{text}"
    );
    assert!(text.contains("id=\"page\"><b>Page opened</b> <time") && text.contains("Result not fetched"), "{text}");
    assert_eq!(backend.result(&opened.txn).await.status, 200);
    eventually("the first poll", TIMEOUT, || async {
        browser.get(&page).await.text.contains("Result fetched by your server").then_some(())
    })
    .await;

    let log = browser.get("/portal/deliveries?state=lost").await.text;
    let row = format!("<a href=\"/portal/transactions/{}\">", opened.txn);
    assert!(
        log.contains(&row) && log.contains("nothing listens at this port") && log.contains("1 of 1 shown"),
        "{log}"
    );
    let filtered_log = browser.get("/portal/deliveries?receiver=https%3A%2F%2Fother.example").await.text;
    assert!(!filtered_log.contains(&row) && filtered_log.contains("Nothing found"), "{filtered_log}");
    eventually("the figures of the day", TIMEOUT, || async {
        let overview = browser.get("/portal").await.text;
        (overview.contains("1 webhook was not delivered today.") && overview.contains("id=\"opened_today\">1<"))
            .then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_sandbox_developer_can_resend_a_webhook() {
    let node = TestNode::start().await;
    let receiver = WebhookReceiver::start(Behaviour::Answer(200)).await.unwrap();
    let (backend, identity_app) = (node.backend_with_credits(2).await, node.identity_app());
    let browser = Browser::signed_in(&node, &backend).await;
    let opened = backend.open_reported(&["name"], &receiver.url("/hook")).await;
    let page = format!("/portal/transactions/{}", opened.txn);
    identity_app.approve(&opened, "asha").await;
    assert_eq!(receiver.wait_for(1, TIMEOUT).await.len(), 1);
    assert!(browser.get(&page).await.text.contains("Send the webhook again (sandbox)"));
    let answer = browser.send(&page, &[]).await;
    assert_eq!(
        (answer.status, answer.header("location")),
        (303, Some(&*format!("{page}?again=delivered"))),
        "{}",
        answer.text
    );
    let received = receiver.wait_for(2, TIMEOUT).await;
    assert!(received.len() == 2 && received[0].body == received[1].body, "the same bytes");
    assert!(browser.get(&format!("{page}?again=delivered")).await.text.contains("id=\"repeated\">delivered<"));
    let stranger = Browser::signed_in(&node, &node.backend_with_credits(1).await).await;
    assert_eq!(stranger.send(&page, &[]).await.status, 404, "another client's transaction");
}
