//! The webhooks of upstreams' reports: their bytes, URLs and number.

use serde_json::json;

use sakshi_kit::flow::Flow;
use sakshi_kit::flow_fixture::{FlowFixture, body_of, hook_of};
use sakshi_kit::goldens::*;

#[tokio::test]
async fn each_report_is_sent_as_the_golden_payload_to_the_url_of_its_kind() {
    let fixture = FlowFixture::start().await;
    let physical = Flow::EStamp.body_with(&[("/apiType", Some(json!("PhysicalEStamp")))]);
    let (esign, locker, wealth) = (Flow::Esign.body(), Flow::DocLocker.body(), Flow::Wealth.body());
    let registry = Flow::EStamp.body();
    // Flow, body that opens it, kind of report, URL of the webhook, and golden payload.
    let cases = [
        (Flow::Esign, &esign, "esign", "ESign", ESIGN_COMPLETED),
        (Flow::Esign, &esign, "esign", "ESign", ESIGN_REJECTED),
        (Flow::Esign, &esign, "esign", "ESign", ESIGN_EXPIRED),
        (Flow::DocLocker, &locker, "doclocker", "DocLocker", DOCLOCKER_FETCHED),
        (Flow::DocLocker, &locker, "doclocker", "DocLocker", DOCLOCKER_FAILED),
        (Flow::EStamp, &registry, "estamp", "RegistryEStamp", ESTAMP_COMPLETED),
        (Flow::EStamp, &registry, "estamp", "RegistryEStamp", ESTAMP_REJECTED),
        (Flow::EStamp, &physical, "estamp", "PhysicalEStamp", ESTAMP_COMPLETED),
        (Flow::Wealth, &wealth, "wealth-consent", "wealth-consent", CONSENT_ACCEPTED),
        (Flow::Wealth, &wealth, "wealth-consent", "wealth-consent", CONSENT_EXPIRING_SOON),
        (Flow::Wealth, &wealth, "wealth-consent", "wealth-consent", CONSENT_REJECTED),
        (Flow::Wealth, &wealth, "wealth-data", "wealth-data", DATA_RAW),
        (Flow::Wealth, &wealth, "wealth-data", "wealth-data", DATA_ANALYSED),
        (Flow::Wealth, &wealth, "wealth-data", "wealth-data", DATA_FAILED),
        (Flow::Wealth, &wealth, "wealth-historical", "wealth-historical", HISTORICAL),
    ];
    for (number, (flow, body, kind, hook, golden)) in cases.into_iter().enumerate() {
        // A separate app, because some deduplication keys belong to the app, not to the flow.
        let backend = fixture.node.backend_with_credits(0).await;
        fixture.register_all(&backend).await;
        let opened = backend.open_flow_with(flow, body).await;
        fixture.connector.report_new(kind, &opened.report(golden)).await;
        let webhook = &fixture.webhooks(number + 1).await[number];
        assert_eq!(hook_of(webhook), hook);
        assert_eq!(ordered_details(body_of(webhook)), opened.expected_body(golden));
        assert_eq!(webhook.headers["content-type"], "application/json");
        for name in webhook.headers.keys() {
            let known = ["host", "content-type", "content-length", "accept", "user-agent", "connection"];
            assert!(known.contains(&name.as_str()), "{name} is not a header of the specification");
        }
        assert_eq!(fixture.node.operator().outcomes(&opened.id).await, ["delivered"]);
    }
}

#[tokio::test]
async fn missing_members_of_a_report_are_filled_in_and_times_become_utc() {
    let fixture = FlowFixture::with_webhooks().await;
    let opened = fixture.backend.open_flow(Flow::DocLocker).await;
    let incomplete = opened.report_with(
        DOCLOCKER_FETCHED,
        &[
            ("/request_id", None),
            ("/data/docs/0/fetchedAt", Some(json!("2026-01-31T15:00:00+05:30"))),
            ("/data/docs/1", Some(json!({"docType": "class_x_marksheet", "status": "Failed"}))),
        ],
    );
    fixture.connector.report_new("doclocker", &incomplete).await;
    assert_eq!(ordered_details(body_of(&fixture.webhooks(1).await[0])), opened.expected_body(DOCLOCKER_FETCHED));
}

#[tokio::test]
async fn an_esign_webhook_goes_to_the_response_url_or_the_registered_url() {
    let fixture = FlowFixture::with_webhooks().await;
    let response_url = fixture.receiver.url("/secret-path/of-the-request");
    let opened = fixture
        .backend
        .open_flow_with(Flow::Esign, &Flow::Esign.body_with(&[("/responseUrl", Some(json!(response_url)))]))
        .await;
    fixture.connector.report_new("esign", &opened.report(ESIGN_COMPLETED)).await;
    assert_eq!(hook_of(&fixture.webhooks(1).await[0]), "of-the-request");
    let opened = fixture.backend.open_flow(Flow::Esign).await;
    fixture.connector.report_new("esign", &opened.report(ESIGN_COMPLETED)).await;
    assert_eq!(hook_of(&fixture.webhooks(2).await[1]), "ESign");
}

#[tokio::test]
async fn a_webhook_url_belongs_to_one_app_and_one_kind() {
    let fixture = FlowFixture::with_webhooks().await;
    let neighbour = fixture.node.backend_with_credits(0).await;
    for (flow, kind, golden) in [
        (Flow::Esign, "esign", ESIGN_REJECTED),
        (Flow::DocLocker, "doclocker", DOCLOCKER_FAILED),
        (Flow::EStamp, "estamp", ESTAMP_REJECTED),
        (Flow::Wealth, "wealth-consent", CONSENT_ACCEPTED),
    ] {
        let opened = neighbour.open_flow(flow).await;
        fixture.connector.report_new(kind, &opened.report(golden)).await;
        assert!(
            fixture.node.operator().deliveries(&opened.id).await.is_empty(),
            "{kind}: the neighbour has registered nothing"
        );
    }
    neighbour.register("RegistryEStamp", &fixture.hook("of-the-neighbour")).await;
    let physical = Flow::EStamp.body_with(&[("/apiType", Some(json!("PhysicalEStamp")))]);
    let opened = neighbour.open_flow_with(Flow::EStamp, &physical).await;
    fixture.connector.report_new("estamp", &opened.report(ESTAMP_REJECTED)).await;
    assert!(fixture.node.operator().deliveries(&opened.id).await.is_empty(), "the URL is for the registry only");
    assert!(fixture.receiver.received().is_empty());
}

#[tokio::test]
async fn each_wealth_stream_has_its_own_url() {
    let fixture = FlowFixture::start().await;
    let (backend, operator) = (&fixture.backend, fixture.node.operator());
    operator.wealth_urls(&backend.app, [None, Some(fixture.hook("only-data")), None]).await;
    let opened = backend.open_flow(Flow::Wealth).await;
    fixture.connector.report_new("wealth-consent", &opened.report(CONSENT_ACCEPTED)).await;
    fixture.connector.report_new("wealth-historical", &opened.report(HISTORICAL)).await;
    fixture.connector.report_new("wealth-data", &opened.report(DATA_RAW)).await;
    assert_eq!(hook_of(&fixture.webhooks(1).await[0]), "only-data");
    assert_eq!(operator.outcomes(&opened.id).await, ["delivered"]);
}

#[tokio::test]
async fn a_flow_without_a_url_completes_silently_and_can_be_polled() {
    let fixture = FlowFixture::start().await;
    let operator = fixture.node.operator();
    let esign = fixture.backend.open_flow(Flow::Esign).await;
    fixture.connector.report_new("esign", &esign.report(ESIGN_COMPLETED)).await;
    assert_eq!(fixture.backend.poll(&esign).await.text, esign.expected_body(ESIGN_COMPLETED));
    let locker = fixture.backend.open_flow(Flow::DocLocker).await;
    fixture.connector.report_new("doclocker", &locker.report(DOCLOCKER_FETCHED)).await;
    assert_eq!(ordered_details(&fixture.backend.poll(&locker).await.text), locker.expected_body(DOCLOCKER_FETCHED));
    for opened in [&esign, &locker] {
        assert!(operator.deliveries(&opened.id).await.is_empty());
    }
    // A URL registered too late changes nothing.
    fixture.backend.register("ESign", &fixture.hook("ESign")).await;
    fixture.connector.report_again("esign", &esign.report(ESIGN_COMPLETED)).await;
    assert!(operator.deliveries(&esign.id).await.is_empty() && fixture.receiver.received().is_empty());
}

#[tokio::test]
async fn the_url_at_the_time_of_the_report_is_used() {
    let fixture = FlowFixture::start().await;
    let operator = fixture.node.operator();
    let opened = [
        fixture.backend.open_flow(Flow::DocLocker).await,
        fixture.backend.open_flow(Flow::DocLocker).await,
        fixture.backend.open_flow(Flow::DocLocker).await,
    ];
    fixture.backend.register("DocLocker", &fixture.hook("first")).await;
    fixture.connector.report_new("doclocker", &opened[0].report(DOCLOCKER_FAILED)).await;
    assert_eq!(hook_of(&fixture.webhooks(1).await[0]), "first");
    fixture.backend.register("DocLocker", &fixture.hook("second")).await;
    fixture.connector.report_new("doclocker", &opened[1].report(DOCLOCKER_FAILED)).await;
    assert_eq!(hook_of(&fixture.webhooks(2).await[1]), "second");
    fixture.backend.configure(&json!({"apiType": "DocLocker", "webhookUrl": null})).await.ok();
    fixture.connector.report_new("doclocker", &opened[2].report(DOCLOCKER_FAILED)).await;
    assert!(operator.deliveries(&opened[2].id).await.is_empty());
}

#[tokio::test]
async fn three_identical_reports_send_one_webhook() {
    let fixture = FlowFixture::with_webhooks().await;
    for (number, (flow, golden)) in (1..).zip([
        (Flow::Esign, ESIGN_COMPLETED),
        (Flow::DocLocker, DOCLOCKER_FETCHED),
        (Flow::EStamp, ESTAMP_COMPLETED),
        (Flow::Wealth, CONSENT_ACCEPTED),
    ]) {
        let opened = fixture.backend.open_flow(flow).await;
        let report = opened.report(golden);
        fixture.connector.report_new(flow.kind(), &report).await;
        fixture.connector.report_again(flow.kind(), &report).await;
        fixture.connector.report_again(flow.kind(), &report).await;
        assert_eq!(fixture.node.operator().outcomes(&opened.id).await, ["delivered"]);
        fixture.webhooks(number).await;
    }
}

#[tokio::test]
async fn concurrent_identical_reports_send_one_webhook() {
    let fixture = FlowFixture::with_webhooks().await;
    for round in 1..=10 {
        let opened = fixture.backend.open_flow(Flow::EStamp).await;
        let report = opened.report(ESTAMP_COMPLETED);
        let answers = futures_util::future::join_all((0..8).map(|_| fixture.connector.report("estamp", &report))).await;
        let results: Vec<String> = answers.iter().map(sakshi_kit::connector::result_of).collect();
        assert_eq!(results.iter().filter(|result| *result == "accepted").count(), 1, "{results:?}");
        assert_eq!(fixture.node.operator().outcomes(&opened.id).await, ["delivered"]);
        fixture.webhooks(round).await;
    }
}

#[tokio::test]
async fn raw_analysed_and_repeated_raw_data_send_two_webhooks() {
    let fixture = FlowFixture::with_webhooks().await;
    let opened = fixture.backend.open_flow(Flow::Wealth).await;
    fixture.connector.report_new("wealth-data", &opened.report(DATA_RAW)).await;
    fixture.connector.report_new("wealth-data", &opened.report(DATA_ANALYSED)).await;
    fixture.connector.report_again("wealth-data", &opened.report(DATA_RAW)).await;
    fixture.connector.report_again("wealth-data", &opened.report(DATA_ANALYSED)).await;
    assert_eq!(fixture.node.operator().outcomes(&opened.id).await, ["delivered"; 2]);
    let mut bodies: Vec<String> = fixture.webhooks(2).await.iter().map(|arrived| body_of(arrived).to_owned()).collect();
    bodies.sort_unstable();
    let mut expected = [opened.expected_body(DATA_RAW), opened.expected_body(DATA_ANALYSED)];
    expected.sort_unstable();
    assert_eq!(bodies, expected);
}

#[tokio::test]
async fn a_repeated_acceptance_and_a_revocation_send_two_webhooks() {
    let fixture = FlowFixture::with_webhooks().await;
    let opened = fixture.backend.open_flow(Flow::Wealth).await;
    let revoked = opened.report_with(CONSENT_ACCEPTED, &[("/status", Some(json!("Revoked")))]);
    fixture.connector.report_new("wealth-consent", &opened.report(CONSENT_ACCEPTED)).await;
    fixture.connector.report_again("wealth-consent", &opened.report(CONSENT_ACCEPTED)).await;
    fixture.connector.report_new("wealth-consent", &revoked).await;
    fixture.connector.report_again("wealth-consent", &revoked).await;
    fixture.connector.report_again("wealth-consent", &opened.report(CONSENT_ACCEPTED)).await;
    assert_eq!(fixture.node.operator().outcomes(&opened.id).await, ["delivered"; 2]);
    fixture.webhooks(2).await;
}

#[tokio::test]
async fn each_fetch_and_each_historical_span_sends_its_own_webhook() {
    let fixture = FlowFixture::with_webhooks().await;
    let opened = fixture.backend.open_flow(Flow::Wealth).await;
    for (kind, golden, pointer, other_value) in [
        ("wealth-data", DATA_RAW, "/txnId", "fetch-2"),
        ("wealth-historical", HISTORICAL, "/accountId", "account-9"),
        ("wealth-historical", HISTORICAL, "/fromDate", "2021-04-01"),
        ("wealth-historical", HISTORICAL, "/toDate", "2026-01-30"),
    ] {
        let repeatable = fixture.connector.report(kind, &opened.report(golden)).await;
        assert_eq!(repeatable.status, 200, "{}", repeatable.text);
        fixture.connector.report_new(kind, &opened.report_with(golden, &[(pointer, Some(json!(other_value)))])).await;
    }
    assert_eq!(fixture.node.operator().outcomes(&opened.id).await, ["delivered"; 6], "two fetches, four spans");
    fixture.webhooks(6).await;
}

#[tokio::test]
async fn an_intermediate_report_changes_the_poll_and_sends_nothing() {
    let fixture = FlowFixture::with_webhooks().await;
    let operator = fixture.node.operator();
    let opened = fixture.backend.open_flow(Flow::Esign).await;
    fixture.connector.report_new("esign", &half_signed(&opened)).await;
    fixture.connector.report_again("esign", &half_signed(&opened)).await;
    assert_eq!(fixture.backend.poll(&opened).await.text, opened.expected_body(ESIGN_PENDING));
    assert!(operator.deliveries(&opened.id).await.is_empty());
    fixture.connector.report_new("esign", &opened.report(ESIGN_COMPLETED)).await;
    assert_eq!(operator.outcomes(&opened.id).await, ["delivered"]);

    let locker = fixture.backend.open_flow(Flow::DocLocker).await;
    let partly_fetched = locker.report_with(DOCLOCKER_FETCHED, &[("/data/docs/1/status", Some(json!("Pending")))]);
    fixture.connector.report_new("doclocker", &partly_fetched).await;
    let poll = fixture.backend.poll(&locker).await.ok();
    assert_eq!((&poll["pending"], &poll["data"]["pending"]), (&json!(true), &json!(true)), "{poll}");
    assert_eq!(
        (&poll["data"]["docs"][0]["status"], &poll["data"]["docs"][1]["status"]),
        (&json!("Fetched"), &json!("Pending"))
    );
    assert!(operator.deliveries(&locker.id).await.is_empty());

    let stamp = fixture.backend.open_flow(Flow::EStamp).await;
    let pending = stamp.report_with(
        ESTAMP_REJECTED,
        &[("/success", Some(json!(true))), ("/data/workflowStatus", Some(json!("Pending")))],
    );
    fixture.connector.report_new("estamp", &pending).await;
    assert!(operator.deliveries(&stamp.id).await.is_empty());
    fixture.webhooks(1).await;
}

#[tokio::test]
async fn a_failed_webhook_is_not_retried_and_the_flow_stays_as_reported() {
    let fixture = FlowFixture::with_webhooks().await;
    fixture.receiver.set_behaviour(sakshi_sandbox::receiver::Behaviour::Answer(500));
    let opened = fixture.backend.open_flow(Flow::Esign).await;
    fixture.connector.report_new("esign", &opened.report(ESIGN_COMPLETED)).await;
    let rows = fixture.node.operator().deliveries(&opened.id).await;
    assert_eq!((&rows[0]["state"], &rows[0]["status"]), (&json!("rejected"), &json!(500)));
    assert_eq!(rows[0]["origin"], fixture.receiver.url(""), "the path of a webhook URL may be a secret");
    fixture.connector.report_again("esign", &opened.report(ESIGN_COMPLETED)).await;
    assert_eq!(fixture.node.operator().deliveries(&opened.id).await, rows);
    fixture.webhooks(1).await;
    assert_eq!(fixture.backend.poll(&opened).await.text, opened.expected_body(ESIGN_COMPLETED));
}
