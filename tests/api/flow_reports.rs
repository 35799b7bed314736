//! From an upstream's report to the client's webhook: the bytes, the address, and how often.

use serde_json::json;

use sakshi_kit::flow::Flow;
use sakshi_kit::goldens::*;
use sakshi_kit::office::{Office, body_of, hook_of};

#[tokio::test]
async fn each_report_is_sent_as_the_golden_payload_to_the_url_of_its_kind() {
    let office = Office::open().await;
    let physical = Flow::EStamp.body_with(&[("/apiType", Some(json!("PhysicalEStamp")))]);
    let (esign, locker, wealth) = (Flow::Esign.body(), Flow::DocLocker.body(), Flow::Wealth.body());
    let registry = Flow::EStamp.body();
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
        // An app of its own, because some keys of deduplication are of the app and not of the flow.
        let backend = office.universe.backend(0).await;
        office.register_all(&backend).await;
        let begun = backend.begin_with(flow, body).await;
        office.connector.tell(kind, &begun.report(golden)).await;
        let arrived = &office.webhooks(number + 1).await[number];
        assert_eq!(hook_of(arrived), hook);
        assert_eq!(ordered_details(body_of(arrived)), begun.sent(golden));
        assert_eq!(arrived.headers["content-type"], "application/json");
        for name in arrived.headers.keys() {
            let known = ["host", "content-type", "content-length", "accept", "user-agent", "connection"];
            assert!(known.contains(&name.as_str()), "{name} is a header that the specification does not know");
        }
        assert_eq!(office.universe.operator().outcomes(&begun.id).await, ["delivered"]);
    }
}

#[tokio::test]
async fn what_an_upstream_leaves_out_is_filled_in_and_offsets_become_utc() {
    let office = Office::registered().await;
    let begun = office.backend.begin(Flow::DocLocker).await;
    let bare = begun.report_with(
        DOCLOCKER_FETCHED,
        &[
            ("/request_id", None),
            ("/data/docs/0/fetchedAt", Some(json!("2026-01-31T15:00:00+05:30"))),
            ("/data/docs/1", Some(json!({"docType": "class_x_marksheet", "status": "Failed"}))),
        ],
    );
    office.connector.tell("doclocker", &bare).await;
    assert_eq!(ordered_details(body_of(&office.webhooks(1).await[0])), begun.sent(DOCLOCKER_FETCHED));
}

#[tokio::test]
async fn an_esign_webhook_goes_to_the_response_url_and_else_to_the_registered_one() {
    let office = Office::registered().await;
    let own = office.receiver.url("/secret-path/of-the-request");
    let begun = office.backend.begin_with(Flow::Esign, &Flow::Esign.body_with(&[("/responseUrl", Some(json!(own)))])).await;
    office.connector.tell("esign", &begun.report(ESIGN_COMPLETED)).await;
    assert_eq!(hook_of(&office.webhooks(1).await[0]), "of-the-request");
    let begun = office.backend.begin(Flow::Esign).await;
    office.connector.tell("esign", &begun.report(ESIGN_COMPLETED)).await;
    assert_eq!(hook_of(&office.webhooks(2).await[1]), "ESign");
}

#[tokio::test]
async fn a_url_is_for_one_app_and_one_kind_alone() {
    let office = Office::registered().await;
    let neighbour = office.universe.backend(0).await;
    for (flow, kind, golden) in [
        (Flow::Esign, "esign", ESIGN_REJECTED),
        (Flow::DocLocker, "doclocker", DOCLOCKER_FAILED),
        (Flow::EStamp, "estamp", ESTAMP_REJECTED),
        (Flow::Wealth, "wealth-consent", CONSENT_ACCEPTED),
    ] {
        let begun = neighbour.begin(flow).await;
        office.connector.tell(kind, &begun.report(golden)).await;
        assert!(office.universe.operator().deliveries(&begun.id).await.is_empty(), "{kind}: the neighbour has registered nothing");
    }
    neighbour.register("RegistryEStamp", &office.hook("of-the-neighbour")).await;
    let physical = Flow::EStamp.body_with(&[("/apiType", Some(json!("PhysicalEStamp")))]);
    let begun = neighbour.begin_with(Flow::EStamp, &physical).await;
    office.connector.tell("estamp", &begun.report(ESTAMP_REJECTED)).await;
    assert!(office.universe.operator().deliveries(&begun.id).await.is_empty(), "paper is not the registry's");
    assert!(office.receiver.received().is_empty());
}

#[tokio::test]
async fn the_three_wealth_streams_have_a_url_each_and_miss_none_of_the_others() {
    let office = Office::open().await;
    let (backend, operator) = (&office.backend, office.universe.operator());
    operator.wealth_urls(&backend.app, [None, Some(office.hook("only-data")), None]).await;
    let begun = backend.begin(Flow::Wealth).await;
    office.connector.tell("wealth-consent", &begun.report(CONSENT_ACCEPTED)).await;
    office.connector.tell("wealth-historical", &begun.report(HISTORICAL)).await;
    office.connector.tell("wealth-data", &begun.report(DATA_RAW)).await;
    assert_eq!(hook_of(&office.webhooks(1).await[0]), "only-data");
    assert_eq!(operator.outcomes(&begun.id).await, ["delivered"]);
}

#[tokio::test]
async fn without_a_url_a_flow_completes_silently_and_can_be_fetched() {
    let office = Office::open().await;
    let operator = office.universe.operator();
    let esign = office.backend.begin(Flow::Esign).await;
    office.connector.tell("esign", &esign.report(ESIGN_COMPLETED)).await;
    assert_eq!(office.backend.poll(&esign).await.text, esign.sent(ESIGN_COMPLETED));
    let locker = office.backend.begin(Flow::DocLocker).await;
    office.connector.tell("doclocker", &locker.report(DOCLOCKER_FETCHED)).await;
    assert_eq!(ordered_details(&office.backend.poll(&locker).await.text), locker.sent(DOCLOCKER_FETCHED));
    for begun in [&esign, &locker] {
        assert!(operator.deliveries(&begun.id).await.is_empty());
    }
    // A URL that comes too late changes nothing.
    office.backend.register("ESign", &office.hook("ESign")).await;
    office.connector.tell_again("esign", &esign.report(ESIGN_COMPLETED)).await;
    assert!(operator.deliveries(&esign.id).await.is_empty() && office.receiver.received().is_empty());
}

#[tokio::test]
async fn the_url_at_the_time_of_the_report_is_used() {
    let office = Office::open().await;
    let operator = office.universe.operator();
    let begun = [
        office.backend.begin(Flow::DocLocker).await,
        office.backend.begin(Flow::DocLocker).await,
        office.backend.begin(Flow::DocLocker).await,
    ];
    office.backend.register("DocLocker", &office.hook("first")).await;
    office.connector.tell("doclocker", &begun[0].report(DOCLOCKER_FAILED)).await;
    assert_eq!(hook_of(&office.webhooks(1).await[0]), "first");
    office.backend.register("DocLocker", &office.hook("second")).await;
    office.connector.tell("doclocker", &begun[1].report(DOCLOCKER_FAILED)).await;
    assert_eq!(hook_of(&office.webhooks(2).await[1]), "second");
    office.backend.configure(&json!({"apiType": "DocLocker", "webhookUrl": null})).await.ok();
    office.connector.tell("doclocker", &begun[2].report(DOCLOCKER_FAILED)).await;
    assert!(operator.deliveries(&begun[2].id).await.is_empty());
}

#[tokio::test]
async fn three_identical_reports_send_one_webhook() {
    let office = Office::registered().await;
    for (number, (flow, golden)) in (1..).zip([
        (Flow::Esign, ESIGN_COMPLETED),
        (Flow::DocLocker, DOCLOCKER_FETCHED),
        (Flow::EStamp, ESTAMP_COMPLETED),
        (Flow::Wealth, CONSENT_ACCEPTED),
    ]) {
        let begun = office.backend.begin(flow).await;
        let report = begun.report(golden);
        office.connector.tell(flow.kind(), &report).await;
        office.connector.tell_again(flow.kind(), &report).await;
        office.connector.tell_again(flow.kind(), &report).await;
        assert_eq!(office.universe.operator().outcomes(&begun.id).await, ["delivered"]);
        office.webhooks(number).await;
    }
}

#[tokio::test]
async fn identical_reports_at_once_send_one_webhook() {
    let office = Office::registered().await;
    for round in 1..=10 {
        let begun = office.backend.begin(Flow::EStamp).await;
        let report = begun.report(ESTAMP_COMPLETED);
        let answers = futures_util::future::join_all((0..8).map(|_| office.connector.report("estamp", &report))).await;
        let told: Vec<String> = answers.iter().map(sakshi_kit::connector::told).collect();
        assert_eq!(told.iter().filter(|told| *told == "accepted").count(), 1, "{told:?}");
        assert_eq!(office.universe.operator().outcomes(&begun.id).await, ["delivered"]);
        office.webhooks(round).await;
    }
}

#[tokio::test]
async fn raw_then_analysed_then_raw_again_are_two_webhooks() {
    let office = Office::registered().await;
    let begun = office.backend.begin(Flow::Wealth).await;
    office.connector.tell("wealth-data", &begun.report(DATA_RAW)).await;
    office.connector.tell("wealth-data", &begun.report(DATA_ANALYSED)).await;
    office.connector.tell_again("wealth-data", &begun.report(DATA_RAW)).await;
    office.connector.tell_again("wealth-data", &begun.report(DATA_ANALYSED)).await;
    assert_eq!(office.universe.operator().outcomes(&begun.id).await, ["delivered"; 2]);
    let mut bodies: Vec<String> = office.webhooks(2).await.iter().map(|arrived| body_of(arrived).to_owned()).collect();
    bodies.sort_unstable();
    let mut expected = [begun.sent(DATA_RAW), begun.sent(DATA_ANALYSED)];
    expected.sort_unstable();
    assert_eq!(bodies, expected);
}

#[tokio::test]
async fn accepted_accepted_revoked_are_two_webhooks() {
    let office = Office::registered().await;
    let begun = office.backend.begin(Flow::Wealth).await;
    let revoked = begun.report_with(CONSENT_ACCEPTED, &[("/status", Some(json!("Revoked")))]);
    office.connector.tell("wealth-consent", &begun.report(CONSENT_ACCEPTED)).await;
    office.connector.tell_again("wealth-consent", &begun.report(CONSENT_ACCEPTED)).await;
    office.connector.tell("wealth-consent", &revoked).await;
    office.connector.tell_again("wealth-consent", &revoked).await;
    office.connector.tell_again("wealth-consent", &begun.report(CONSENT_ACCEPTED)).await;
    assert_eq!(office.universe.operator().outcomes(&begun.id).await, ["delivered"; 2]);
    office.webhooks(2).await;
}

#[tokio::test]
async fn each_fetch_and_each_historical_span_is_a_webhook_of_its_own() {
    let office = Office::registered().await;
    let begun = office.backend.begin(Flow::Wealth).await;
    for (kind, golden, pointer, other) in [
        ("wealth-data", DATA_RAW, "/txnId", "fetch-2"),
        ("wealth-historical", HISTORICAL, "/accountId", "account-9"),
        ("wealth-historical", HISTORICAL, "/fromDate", "2021-04-01"),
        ("wealth-historical", HISTORICAL, "/toDate", "2026-01-30"),
    ] {
        let same = office.connector.report(kind, &begun.report(golden)).await;
        assert_eq!(same.status, 200, "{}", same.text);
        office.connector.tell(kind, &begun.report_with(golden, &[(pointer, Some(json!(other)))])).await;
    }
    assert_eq!(office.universe.operator().outcomes(&begun.id).await, ["delivered"; 6]);
    office.webhooks(6).await;
}

#[tokio::test]
async fn a_report_that_ends_nothing_changes_the_poll_and_sends_nothing() {
    let office = Office::registered().await;
    let operator = office.universe.operator();
    let begun = office.backend.begin(Flow::Esign).await;
    office.connector.tell("esign", &half_signed(&begun)).await;
    office.connector.tell_again("esign", &half_signed(&begun)).await;
    assert_eq!(office.backend.poll(&begun).await.text, begun.sent(ESIGN_PENDING));
    assert!(operator.deliveries(&begun.id).await.is_empty());
    office.connector.tell("esign", &begun.report(ESIGN_COMPLETED)).await;
    assert_eq!(operator.outcomes(&begun.id).await, ["delivered"]);

    let locker = office.backend.begin(Flow::DocLocker).await;
    let waiting = locker.report_with(DOCLOCKER_FETCHED, &[("/data/docs/1/status", Some(json!("Pending")))]);
    office.connector.tell("doclocker", &waiting).await;
    let poll = office.backend.poll(&locker).await.ok();
    assert_eq!((&poll["pending"], &poll["data"]["pending"]), (&json!(true), &json!(true)), "{poll}");
    assert_eq!((&poll["data"]["docs"][0]["status"], &poll["data"]["docs"][1]["status"]), (&json!("Fetched"), &json!("Pending")));
    assert!(operator.deliveries(&locker.id).await.is_empty());

    let stamp = office.backend.begin(Flow::EStamp).await;
    let pending = stamp.report_with(ESTAMP_REJECTED, &[("/success", Some(json!(true))), ("/data/workflowStatus", Some(json!("Pending")))]);
    office.connector.tell("estamp", &pending).await;
    assert!(operator.deliveries(&stamp.id).await.is_empty());
    office.webhooks(1).await;
}

#[tokio::test]
async fn a_webhook_that_fails_is_not_repeated_and_the_flow_stays_as_reported() {
    let office = Office::registered().await;
    office.receiver.set_behaviour(sakshi_sandbox::receiver::Behaviour::Answer(500));
    let begun = office.backend.begin(Flow::Esign).await;
    office.connector.tell("esign", &begun.report(ESIGN_COMPLETED)).await;
    let rows = office.universe.operator().deliveries(&begun.id).await;
    assert_eq!((&rows[0]["state"], &rows[0]["status"]), (&json!("rejected"), &json!(500)));
    assert_eq!(rows[0]["origin"], office.receiver.url(""), "the path of a webhook URL may be a secret");
    office.connector.tell_again("esign", &begun.report(ESIGN_COMPLETED)).await;
    assert_eq!(office.universe.operator().deliveries(&begun.id).await, rows);
    office.webhooks(1).await;
    assert_eq!(office.backend.poll(&begun).await.text, begun.sent(ESIGN_COMPLETED));
}
