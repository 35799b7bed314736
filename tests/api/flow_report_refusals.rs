//! Refused reports: wrong sender, subject or format, or a contradiction of the stored state.

use reqwest::header::AUTHORIZATION;
use reqwest::{Body, Method};
use serde_json::{Value, json};

use sakshi_kit::answer::Answer;
use sakshi_kit::connector::{CONNECTOR_TOKEN, KINDS};
use sakshi_kit::flow::{Flow, OpenedFlow};
use sakshi_kit::flow_fixture::FlowFixture;
use sakshi_kit::goldens::*;
use sakshi_kit::operator::ADMIN_TOKEN;
use sakshi_kit::upstream;

/// An opened flow, and a report about it that would be accepted.
struct ReportableFlow {
    /// The kind of report.
    kind: &'static str,
    opened: OpenedFlow,
    /// The golden file of the report.
    golden: &'static str,
}

/// Opens a flow for each kind of report.
async fn open_each_kind(fixture: &FlowFixture) -> Vec<ReportableFlow> {
    let mut flows = Vec::new();
    for (kind, flow, golden) in [
        ("esign", Flow::Esign, ESIGN_COMPLETED),
        ("doclocker", Flow::DocLocker, DOCLOCKER_FETCHED),
        ("estamp", Flow::EStamp, ESTAMP_COMPLETED),
        ("wealth-consent", Flow::Wealth, CONSENT_ACCEPTED),
        ("wealth-data", Flow::Wealth, DATA_RAW),
        ("wealth-historical", Flow::Wealth, HISTORICAL),
    ] {
        flows.push(ReportableFlow { kind, opened: fixture.backend.open_flow(flow).await, golden });
    }
    flows
}

/// Checks that no webhook was sent, and that the correct report about each flow is still accepted.
async fn assert_unchanged(fixture: &FlowFixture, flows: &[ReportableFlow]) {
    assert!(fixture.receiver.received().is_empty());
    for (number, ReportableFlow { kind, opened, golden }) in flows.iter().enumerate() {
        let mut report = opened.report(golden);
        // Three of the flows belong to one app and would otherwise share their consent's keys.
        for member in ["consentId", "txnId"] {
            if report.get(member).is_some() {
                report[member] = json!(format!("{member}-{number}"));
            }
        }
        fixture.connector.report_new(kind, &report).await;
    }
    fixture.webhooks(flows.len()).await;
}

#[tokio::test]
async fn reports_require_the_connector_token_and_the_admin_api_its_own() {
    let fixture = FlowFixture::with_webhooks().await;
    let flows = open_each_kind(&fixture).await;
    for ReportableFlow { kind, opened, golden } in &flows {
        let report = opened.report(golden);
        for token in [
            ADMIN_TOKEN,
            upstream::TOKEN,
            "",
            "x",
            &CONNECTOR_TOKEN[1..],
            &format!("{CONNECTOR_TOKEN}x"),
            &fixture.backend.key,
        ] {
            let answer = fixture.connector.with_token(token).report(kind, &report).await;
            assert_eq!(answer.status, 401, "{kind} with {token}: {}", answer.text);
            assert_eq!(answer.refusal(401), "unauthorized", "{kind}");
        }
        let bare = fixture
            .node
            .http
            .post(fixture.node.addresses.internal(&format!("/internal/v1/flows/{kind}")))
            .json(&report);
        assert_eq!(Answer::receive(bare).await.refusal(401), "unauthorized");
        let basic = fixture.node.http.post(fixture.node.addresses.internal(&format!("/internal/v1/flows/{kind}")));
        let basic = basic.header(AUTHORIZATION, format!("Basic {CONNECTOR_TOKEN}")).json(&report);
        assert_eq!(Answer::receive(basic).await.status, 401);
        let public = fixture.node.addresses.public(&format!("/internal/v1/flows/{kind}"));
        let public = fixture.node.http.post(public).bearer_auth(CONNECTOR_TOKEN).json(&report);
        assert_eq!(Answer::receive(public).await.refusal(404), "not_found", "the public listener has no such route");
    }
    let admin = fixture.node.addresses.internal("/admin/v1/clients");
    let connector = fixture.node.http.get(&admin).bearer_auth(CONNECTOR_TOKEN);
    assert_eq!(Answer::receive(connector).await.refusal(401), "unauthorized");
    assert_unchanged(&fixture, &flows).await;
}

#[tokio::test]
async fn a_report_about_an_unknown_or_foreign_flow_gets_404() {
    let fixture = FlowFixture::with_webhooks().await;
    let flows = open_each_kind(&fixture).await;
    let neighbour = fixture.node.backend_with_credits(0).await;
    for ReportableFlow { kind, opened, golden } in &flows {
        // Some reports have the id of their flow in a member `data`.
        let id_pointer = format!("/{}", opened.flow.id());
        let id_pointer =
            if opened.report(golden).get("data").is_some() { format!("/data{id_pointer}") } else { id_pointer };
        let unknown = json!(uuid::Uuid::new_v4());
        for (pointer, value) in
            [("/app_id", json!(neighbour.app)), ("/app_id", json!("app_of_nobody")), (&*id_pointer, unknown)]
        {
            let report = opened.report_with(golden, &[(pointer, Some(value.clone()))]);
            let answer = fixture.connector.report(kind, &report).await;
            assert!(matches!(answer.status, 400 | 404), "{kind} {pointer}: {} {}", answer.status, answer.text);
            if value != json!("app_of_nobody") {
                assert_eq!(answer.refusal(404), "not_found", "{kind} {pointer}");
            }
        }
    }
    let esign = &flows[0].opened;
    let locker_report = esign.report(DOCLOCKER_FAILED);
    assert_eq!(
        fixture.connector.report("doclocker", &locker_report).await.refusal(404),
        "not_found",
        "the id belongs to another kind of flow"
    );
    let stamp_report = esign.report(ESTAMP_REJECTED);
    assert_eq!(fixture.connector.report("estamp", &stamp_report).await.refusal(404), "not_found");
    for kind in ["ovse", "wealth", "pan", "ESIGN", "esign/", "%65sign%2f"] {
        assert_eq!(
            fixture.connector.report(kind, &esign.report(ESIGN_COMPLETED)).await.refusal(404),
            "not_found",
            "{kind}"
        );
    }
    assert_unchanged(&fixture, &flows).await;
}

#[tokio::test]
async fn an_invalid_report_gets_a_400_that_names_the_path() {
    let fixture = FlowFixture::with_webhooks().await;
    let flows = open_each_kind(&fixture).await;
    // Kind of report, pointer to a member, its new value (none removes it), and the path that the error names.
    let cases: [(&str, &str, Option<Value>, &str); 26] = [
        ("esign", "/documentStatus", Some(json!("Signed")), "documentStatus"),
        ("esign", "/documentStatus", None, "documentStatus"),
        ("esign", "/documentId", Some(json!("seven")), "documentId"),
        ("esign", "/app_id", None, "app_id"),
        ("esign", "/app_id", Some(json!(7)), "app_id"),
        ("esign", "/colour", Some(json!("red")), "colour"),
        ("esign", "/content", Some(json!("no Base64!")), "content"),
        ("esign", "/signerInfo/1/signerStatus", Some(json!("completed")), "signerInfo[1].signerStatus"),
        ("esign", "/signerInfo/1/colour", Some(json!("red")), "signerInfo[1].colour"),
        (
            "esign",
            "/signerInfo/0/nationalIdAuditInfo/yearOfBirth",
            Some(json!(1990)),
            "signerInfo[0].nationalIdAuditInfo.yearOfBirth",
        ),
        (
            "esign",
            "/signerInfo/0/nationalIdAuditInfo/number",
            Some(json!("0")),
            "signerInfo[0].nationalIdAuditInfo.number",
        ),
        ("doclocker", "/data/docs/0/status", Some(json!("fetched")), "data.docs[0].status"),
        ("doclocker", "/data/docs/0/issued/size", Some(json!(48_211)), "data.docs[0].issued.size"),
        ("doclocker", "/data/colour", Some(json!("red")), "data.colour"),
        ("doclocker", "/success", Some(json!("true")), "success"),
        ("doclocker", "/data", None, "data"),
        ("estamp", "/data/workflowStatus", Some(json!("Done")), "data.workflowStatus"),
        ("estamp", "/data/fileList/0/base64FileData", Some(json!("?")), "data.fileList[0].base64FileData"),
        ("estamp", "/statusCode", Some(json!(600)), "statusCode"),
        ("wealth-consent", "/status", Some(json!("ACTIVE")), "status"),
        ("wealth-consent", "/consentStartDate", Some(json!("2026-01-31T09:30:00Z")), "consentStartDate"),
        ("wealth-consent", "/accounts/1/balance", Some(json!("10")), "accounts[1].balance"),
        ("wealth-data", "/dataType", Some(json!("Raw")), "dataType"),
        ("wealth-data", "/fiDataStatus", Some(json!("OK")), "fiDataStatus"),
        ("wealth-historical", "/status", Some(json!("SUCCESS")), "status"),
        ("wealth-historical", "/fromDate", Some(json!("2020-04-31")), "fromDate"),
    ];
    for (kind, pointer, value, path) in cases {
        let ReportableFlow { opened, golden, .. } = flows.iter().find(|flow| flow.kind == kind).expect("a kind");
        let fields =
            fixture.connector.report(kind, &opened.report_with(golden, &[(pointer, value)])).await.refused_fields();
        assert!(fields.iter().any(|field| field == path), "{kind}: {path} is not among {fields:?}");
    }
    for kind in KINDS {
        for body in ["", "{", "[]", "null", "\"text\"", "{}{}", "{\"app_id\":\"a\",\"app_id\":\"a\"}"] {
            let answer = Answer::receive(fixture.connector.request(kind).body(body)).await;
            assert_eq!(answer.status, 400, "{kind} {body}: {}", answer.text);
            answer.refusal(400);
        }
        let deep = format!("{{\"data\":{}{}}}", "[".repeat(20_000), "]".repeat(20_000));
        assert_eq!(Answer::receive(fixture.connector.request(kind).body(deep)).await.status, 400, "{kind}");
        let wide = format!("{{\"data\":[{}0]}}", "0,".repeat(500_000));
        assert_eq!(Answer::receive(fixture.connector.request(kind).body(wide)).await.status, 400, "{kind}");
        assert_eq!(
            Answer::receive(fixture.connector.request(kind).body(vec![b'{', 0xff, b'}'])).await.status,
            400,
            "{kind}"
        );
    }
    assert_unchanged(&fixture, &flows).await;
}

#[tokio::test]
async fn another_method_gets_405_and_a_report_over_sixteen_mebibytes_413() {
    let fixture = FlowFixture::with_webhooks().await;
    let flows = open_each_kind(&fixture).await;
    let path = "/internal/v1/flows/esign";
    let get = Answer::receive(
        fixture.node.http.request(Method::GET, fixture.node.addresses.internal(path)).bearer_auth(CONNECTOR_TOKEN),
    )
    .await;
    assert_eq!(get.refusal(405), "method_not_allowed");
    for ReportableFlow { kind, opened, golden } in &flows {
        let mut body = opened.report(golden).to_string().into_bytes();
        body.resize(16 * 1_024 * 1_024 + 1, b' ');
        let chunks: Vec<_> = body.chunks(1 << 20).map(|chunk| Ok::<_, std::io::Error>(chunk.to_vec())).collect();
        assert_eq!(
            Answer::receive(fixture.connector.request(kind).body(body)).await.refusal(413),
            "body_too_large",
            "{kind}"
        );
        let streamed = Body::wrap_stream(futures_util::stream::iter(chunks));
        assert_eq!(
            Answer::receive(fixture.connector.request(kind).body(streamed)).await.refusal(413),
            "body_too_large",
            "{kind}"
        );
    }
    assert_unchanged(&fixture, &flows).await;
}

/// Sends a report that contradicts the stored state, and checks the error.
async fn assert_contradicts(fixture: &FlowFixture, kind: &str, report: &Value, sentence: &str) {
    let answer = fixture.connector.report(kind, report).await;
    assert_eq!(answer.refusal(409), "report_refused", "{report}");
    let message = answer.json()["message"].as_str().expect("a message").to_owned();
    assert!(message.to_lowercase().contains(sentence), "{message} does not contain {sentence}");
}

#[tokio::test]
async fn an_ended_flow_refuses_a_different_report() {
    let fixture = FlowFixture::with_webhooks().await;
    // Flow, the report that ends it, and another report.
    let contradictions = [
        (Flow::Esign, ESIGN_COMPLETED, ESIGN_REJECTED),
        (Flow::Esign, ESIGN_REJECTED, ESIGN_COMPLETED),
        (Flow::DocLocker, DOCLOCKER_FETCHED, DOCLOCKER_FAILED),
        (Flow::EStamp, ESTAMP_COMPLETED, ESTAMP_REJECTED),
    ];
    for (flow, first, other) in contradictions {
        let opened = fixture.backend.open_flow(flow).await;
        fixture.connector.report_new(flow.kind(), &opened.report(first)).await;
        let sentence = "the flow has already ended as";
        assert_contradicts(&fixture, flow.kind(), &opened.report(other), sentence).await;
        fixture.connector.report_again(flow.kind(), &opened.report(first)).await;
        assert_eq!(fixture.node.operator().outcomes(&opened.id).await, ["delivered"]);
    }
    fixture.webhooks(4).await;
}

#[tokio::test]
async fn a_report_that_contradicts_its_flow_gets_a_409_that_names_the_field() {
    let fixture = FlowFixture::with_webhooks().await;
    let flows = open_each_kind(&fixture).await;
    let signers = flows[0].opened.report(ESIGN_COMPLETED)["signerInfo"].as_array().expect("signers").clone();
    // Kind of report, pointer to a member, its new value, and the field that the error names.
    let cases = [
        ("esign", "/documentReferenceId", json!("loan-8"), "documentReferenceId"),
        ("esign", "/signerInfo/0/signerId", json!("signer-3"), "signerInfo"),
        ("esign", "/signerInfo", json!([signers[0]]), "signerInfo"),
        ("esign", "/signerInfo", json!([signers[1], signers[0]]), "signerInfo"),
        ("doclocker", "/request_id", json!("req-2"), "request_id"),
        ("wealth-consent", "/consentHandle", json!("handle-2"), "consentHandle"),
        ("wealth-data", "/consentHandle", json!("handle-2"), "consentHandle"),
        ("wealth-historical", "/consentHandleId", json!("handle-2"), "consentHandleId"),
    ];
    for (kind, pointer, value, field) in cases {
        let ReportableFlow { opened, golden, .. } = flows.iter().find(|flow| flow.kind == kind).expect("a kind");
        assert_contradicts(
            &fixture,
            kind,
            &opened.report_with(golden, &[(pointer, Some(value))]),
            &field.to_lowercase(),
        )
        .await;
    }
    assert_unchanged(&fixture, &flows).await;
}

#[tokio::test]
async fn a_consent_never_moves_backwards_and_all_data_belongs_to_one_consent() {
    let fixture = FlowFixture::with_webhooks().await;
    let opened = fixture.backend.open_flow(Flow::Wealth).await;
    let consent_with = |status: &str| opened.report_with(CONSENT_ACCEPTED, &[("/status", Some(json!(status)))]);
    fixture.connector.report_new("wealth-consent", &consent_with("Accepted")).await;
    assert_contradicts(
        &fixture,
        "wealth-consent",
        &consent_with("Rejected"),
        "a consent that is accepted cannot become rejected",
    )
    .await;
    let other_session = opened.report_with(CONSENT_ACCEPTED, &[("/userSessionId", Some(json!("session-9")))]);
    assert_contradicts(&fixture, "wealth-consent", &other_session, "").await;
    let foreign = opened.report_with(DATA_RAW, &[("/consentId", Some(json!("consent-2")))]);
    assert_contradicts(&fixture, "wealth-data", &foreign, "consentid").await;
    fixture.connector.report_new("wealth-consent", &consent_with("Expired")).await;
    for late in ["Expiring Soon", "Revoked"] {
        assert_contradicts(&fixture, "wealth-consent", &consent_with(late), &late.to_lowercase()).await;
    }
    fixture.connector.report_new("wealth-data", &opened.report(DATA_RAW)).await;
    assert_contradicts(&fixture, "wealth-data", &opened.report(DATA_FAILED), "").await;
    assert_eq!(fixture.node.operator().outcomes(&opened.id).await, ["delivered"; 3]);
    fixture.webhooks(3).await;
}
