//! The OpenAPI document, compared with the route table, the specification, its own examples and real responses.

use std::collections::BTreeSet;
use std::time::Duration;

use reqwest::Method;
use sakshi::public::ROUTES;
use sakshi_api::document_of;
use sakshi_domain::checks::CHECKS;
use sakshi_domain::clock::{Clock as _, SystemClock};
use sakshi_domain::credits::{EntryKind, LedgerEntry};
use sakshi_domain::tenancy::KeyCase;
use sakshi_domain::time::Timestamp;
use sakshi_pages::PosterApi;
use sakshi_web::routing::Audience;
use serde_json::{Value, json};
use utoipa::OpenApi as _;

use crate::document::{
    assert_errors_are_described, assert_every_field_is_refused, assert_schemas_are_complete, check_examples,
    invalid_body, mismatch, operations, properties, resolve,
};
use crate::in_process::InProcessNode;
use sakshi_kit::flow_records::Party;

fn document() -> Value {
    document_of("https://verify.example", PosterApi::openapi, KeyCase::SnakeCase).value()
}

#[test]
fn the_document_and_the_route_table_name_the_same_operations() {
    let document = document();
    let table =
        ROUTES.into_iter().flatten().filter(|row| matches!(row.audience, Audience::Clients | Audience::Anybody));
    let table: BTreeSet<(String, String, bool)> =
        table.map(|row| (row.path.to_owned(), row.method.to_owned(), row.audience == Audience::Clients)).collect();
    let credentials = json!([{ "api_key": [], "app_id": [] }]);
    let described = operations(&document).into_iter().map(|(path, method, operation)| {
        let secured = operation["security"] == credentials;
        assert!(secured || operation["security"] == json!([]), "{method} {path}: {}", operation["security"]);
        (path, method, secured)
    });
    assert_eq!(described.collect::<BTreeSet<_>>(), table);
}

#[test]
fn operation_ids_are_stable_for_generated_clients() {
    let document = document();
    let is_text = |text: &Value| text.as_str().is_some_and(|text| !text.is_empty());
    let mut ids: Vec<&str> = Vec::new();
    for (path, method, operation) in operations(&document) {
        assert!(is_text(&operation["summary"]), "{method} {path}");
        ids.push(operation["operationId"].as_str().unwrap());
    }
    ids.sort_unstable();
    assert_eq!(
        ids,
        [
            "checkInGuest",
            "createEvent",
            "createEventDoor",
            "createQrIntent",
            "deleteEventDoor",
            "getCreditStatement",
            "getCredits",
            "getDocLockerDetails",
            "getEsignStatus",
            "getEvent",
            "getEventPoster",
            "getEventPosterSvg",
            "getEventQrPng",
            "getEventQrSvg",
            "getEvidence",
            "getIntentKeys",
            "getOpenApiDocument",
            "getResult",
            "getStatus",
            "getWebhookUrls",
            "initDocLocker",
            "initEStamp",
            "listEventDoors",
            "listEventRegistrations",
            "listEvents",
            "listTransactions",
            "openTransaction",
            "ping",
            "requestEsign",
            "requestWealthConsent",
            "setWebhookUrl",
            "updateEvent",
            "verifyBankAccount",
            "verifyGst",
            "verifyIfsc",
            "verifyPan",
            "verifyVoterId",
        ]
    );
    let hooks = document["webhooks"].as_object().unwrap().values().map(|hook| &hook["post"]);
    let hooks: Vec<&str> = hooks
        .inspect(|hook| assert_eq!(hook["tags"], json!(["Webhooks"])))
        .map(|hook| hook["operationId"].as_str().unwrap())
        .collect();
    assert_eq!(
        hooks,
        ["onDocLocker", "onEsign", "onEStamp", "onOvse", "onWealthConsent", "onWealthData", "onWealthHistorical"]
    );
}

#[test]
fn the_document_has_the_single_verification_of_the_specification() {
    let document = document();
    let init = ["claims", "channel", "language", "face_auth", "webhook_url", "app_id", "app_signature"];
    for (method, path, request, answer) in [
        ("post", "/init", &init[..], &["txnId", "intentJwt", "expiresAt", "requestUrl", "nationalIdAppUri"][..]),
        ("post", "/qr-intent", &["txnId"], &["qrPayload"]),
        ("get", "/result/{txnId}", &[], &["success", "statusCode", "message", "request_id", "data", "pending"]),
    ] {
        let operation = &document["paths"][format!("/api/v1/nationalid-ovse{path}")][method];
        let request_schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        let answer_schema = &operation["responses"]["200"]["content"]["application/json"]["schema"];
        for (fields, schema) in [(request, request_schema), (answer, answer_schema)] {
            let known = properties(&document, schema);
            assert!(fields.iter().all(|field| known.contains(*field)), "{path}: {fields:?} in {known:?}");
        }
    }
    let statuses = |path: &str, method: &str| {
        document["paths"][format!("/api/v1/nationalid-ovse{path}")][method]["responses"].clone()
    };
    for (path, method, expected) in [
        ("/init", "post", vec!["400", "401", "402"]),
        ("/qr-intent", "post", vec!["401", "404", "410"]),
        ("/result/{txnId}", "get", vec!["401", "404", "410"]),
    ] {
        let responses = statuses(path, method);
        assert!(expected.iter().all(|status| responses.get(status).is_some()), "{path}: {expected:?}");
    }
    let hook = &document["webhooks"]["ovse"]["post"]["requestBody"]["content"]["application/json"]["schema"];
    assert!(
        ["success", "statusCode", "message", "request_id", "data"]
            .iter()
            .all(|field| properties(&document, hook).contains(*field))
    );
}

#[test]
fn the_document_has_the_webhook_configuration_of_the_specification() {
    let document = document();
    let item = &document["paths"]["/api/v1/user/webhook"];
    let fields = BTreeSet::from(["apiType".to_owned(), "webhookUrl".to_owned()]);
    let request = &item["put"]["requestBody"]["content"]["application/json"]["schema"];
    assert!(properties(&document, request).is_superset(&fields));
    let listed = resolve(&document, &item["get"]["responses"]["200"]["content"]["application/json"]["schema"]);
    assert_eq!(properties(&document, &listed["properties"]["data"]["items"]), fields);
}

#[test]
fn the_document_has_every_webhook_of_the_specification() {
    let document = document();
    for (name, fields) in [
        ("esign", &["documentId", "documentReferenceId", "content", "documentStatus", "signerInfo"][..]),
        ("doclocker", &["success", "statusCode", "message", "request_id", "data"]),
        ("estamp", &["success", "statusCode", "message", "data"]),
        (
            "wealth_consent",
            &[
                "uniqueIdentifier",
                "consentHandle",
                "status",
                "consentId",
                "consentStartDate",
                "consentEndDate",
                "accounts",
                "userSessionId",
            ],
        ),
        (
            "wealth_historical",
            &[
                "uniqueIdentifier",
                "accountId",
                "consentId",
                "status",
                "fromDate",
                "toDate",
                "fiType",
                "consentHandleId",
                "maskedAccountNumber",
                "fipId",
            ],
        ),
    ] {
        let schema = &document["webhooks"][name]["post"]["requestBody"]["content"]["application/json"]["schema"];
        let expected: BTreeSet<String> = fields.iter().map(|&field| field.to_owned()).collect();
        assert_eq!(properties(&document, schema), expected, "{name}");
    }
    let data_schema =
        &document["webhooks"]["wealth_data"]["post"]["requestBody"]["content"]["application/json"]["schema"];
    assert_eq!(properties(&document, data_schema).len(), 16, "fields of the specification");
}

#[test]
fn every_error_has_the_common_body_and_headers() {
    assert_errors_are_described(&document());
}

#[test]
fn every_reference_resolves_and_every_example_fits_its_schema() {
    let examples = check_examples(&document());
    assert!(examples >= 30, "only {examples} examples were checked");
}

#[test]
fn every_field_is_described_and_non_empty_lists_are_marked() {
    let document = document();
    assert_schemas_are_complete(&document);
    let order =
        &document["paths"]["/api/v1/esign/request"]["post"]["requestBody"]["content"]["application/json"]["schema"];
    assert_eq!(resolve(&document, order)["properties"]["signerInfo"]["minItems"], 1);
}

#[test]
fn an_example_that_does_not_fit_its_schema_is_detected() {
    let document = document();
    let outcome = json!({ "$ref": "#/components/schemas/OvseOutcome" });
    let valid = document["webhooks"]["ovse"]["post"]["requestBody"]["content"]["application/json"]["examples"]["passed"]
        ["value"]
        .clone();
    for (field, value) in
        [("success", json!("yes")), ("data", json!({})), ("extra", json!(1)), ("message", Value::Null)]
    {
        let mut invalid = valid.clone();
        invalid[field] = value;
        assert!(mismatch(&document, &outcome, &invalid).is_some(), "{field}");
    }
}

#[test]
fn a_ledger_entry_matches_its_schema() {
    let entry = LedgerEntry {
        seq: 1,
        kind: EntryKind::Adjust,
        amount: -5,
        balance_after: 0,
        reference: "correction".into(),
        at: Timestamp::from_millis(0),
    };
    let schema = json!({ "$ref": "#/components/schemas/StatementEntry" });
    assert_eq!(mismatch(&document(), &schema, &json!(entry)), None);
}

/// A response of the running service, with its path, method and status in the document.
struct Sample {
    path: String,
    method: &'static str,
    status: &'static str,
    response: (u16, Value),
}

impl Sample {
    fn new(path: &str, method: &'static str, status: &'static str, response: (u16, Value)) -> Self {
        Self { path: path.to_owned(), method, status, response }
    }

    /// Asserts that the response has the status and the schema of the document.
    fn assert_described(&self, document: &Value) {
        let Self { path, method, status, response: (actual_status, body) } = self;
        let response = resolve(document, &document["paths"][path][method]["responses"][status]);
        assert!(
            *status == "default" || actual_status.to_string() == *status,
            "{method} {path}: {actual_status} {body}"
        );
        let schema = &response["content"]["application/json"]["schema"];
        assert!(schema.is_object(), "{method} {path} {status} is not described");
        assert_eq!(mismatch(document, schema, body), None, "{method} {path}: {body}");
    }
}

/// Returns responses about a pending transaction.
async fn verification_samples(node: &InProcessNode, txn: &str) -> Vec<Sample> {
    let [init, qr_intent, result] =
        ["init", "qr-intent", "result/{txnId}"].map(|path| format!("/api/v1/nationalid-ovse/{path}"));
    let polled = result.replace("{txnId}", txn);
    vec![
        Sample::new(&init, "post", "400", node.post(&init, &json!({ "claims": [] })).await),
        Sample::new(&qr_intent, "post", "200", node.post(&qr_intent, &json!({ "txnId": txn })).await),
        Sample::new(&result, "get", "200", node.get(&polled).await),
        Sample::new(&result, "get", "401", node.get_unsigned(&polled).await),
        Sample::new(&result, "get", "404", node.get(&result.replace("{txnId}", "none")).await),
    ]
}

/// Returns responses about flows; `txn` is a well-formed id of no document.
async fn flow_samples(node: &InProcessNode, txn: &str) -> Vec<Sample> {
    let party = Party { client: node.first.client.clone(), app: node.first.app.clone(), now: SystemClock.now() };
    let document_id = party.open_document(&node.inner.store).await.id;
    let fetch_id = party.open_locker(&node.inner.store).await.id.to_string();
    let (esign, esign_status) = ("/api/v1/esign/request", "/api/v1/esign/status");
    let (locker, details) = ("/api/v1/doclocker/init", "/api/v1/doclocker/details/{transactionId}");
    let wealth = "/api/v1/wealth/consents";
    let consent = json!({ "consent": "Y", "consent_text": "I agree." });
    let fetch = json!({ "docs": ["x"], "consent": "Y", "consent_text": "I agree." });
    let document =
        json!({ "documentInfo": { "name": "Loan", "content": "QUJD" }, "signerInfo": [{ "signerName": "Asha Rao" }] });
    let poll = json!({ "documentId": document_id });
    vec![
        Sample::new(wealth, "post", "200", node.post(wealth, &consent).await),
        Sample::new(wealth, "post", "400", node.post(wealth, &json!({})).await),
        Sample::new(locker, "post", "200", node.post(locker, &fetch).await),
        Sample::new(esign, "post", "200", node.post(esign, &document).await),
        Sample::new(esign_status, "post", "200", node.post(esign_status, &poll).await),
        Sample::new(esign_status, "post", "404", node.post(esign_status, &json!({ "documentId": txn })).await),
        Sample::new(details, "get", "200", node.get(&details.replace("{transactionId}", &fetch_id)).await),
        Sample::new(details, "get", "404", node.get(&details.replace("{transactionId}", "none")).await),
    ]
}

/// Returns responses about the account, and responses that need no credentials.
async fn account_samples(node: &InProcessNode) -> Vec<Sample> {
    let (credits, statement) = ("/api/v1/credits", "/api/v1/credits/statement");
    let (webhook, ping, keys) = ("/api/v1/user/webhook", "/api/ping", "/.well-known/jwks.json");
    let setting = json!({ "apiType": "ESign", "webhookUrl": "https://client.example/hook" });
    vec![
        Sample::new(credits, "get", "200", node.get(credits).await),
        Sample::new(statement, "get", "200", node.get(statement).await),
        Sample::new(webhook, "put", "200", node.send(Method::PUT, webhook, node.first.app.as_str(), &setting).await),
        Sample::new(webhook, "get", "200", node.get(webhook).await),
        Sample::new(ping, "get", "200", node.get_unsigned(ping).await),
        Sample::new(keys, "get", "200", node.get_unsigned(keys).await),
        Sample::new(ping, "get", "default", node.get_unsigned("/nowhere").await),
    ]
}

/// Returns a successful and a refused response of every check.
async fn check_samples(node: &InProcessNode, document: &Value) -> Vec<Sample> {
    let mut samples = Vec::new();
    for check in CHECKS {
        let example = &document["paths"][check.path]["post"]["requestBody"]["content"]["application/json"]["example"];
        samples.push(Sample::new(check.path, "post", "200", node.post(check.path, example).await));
        let mut malformed = example.clone();
        malformed[check.numbers[0].field] = json!("nonsense");
        samples.push(Sample::new(check.path, "post", "422", node.post(check.path, &malformed).await));
    }
    samples
}

#[actix_rt::test]
async fn responses_of_a_running_service_match_its_document() {
    let node = InProcessNode::start().await;
    let (status, document) = node.get_unsigned("/openapi.json").await;
    assert_eq!((status, &document["openapi"]), (200, &json!("3.1.0")));
    assert_eq!(document["servers"][0]["url"], node.inner.public_base);
    let init = "/api/v1/nationalid-ovse/init";
    let opened = node.post(init, &json!({ "claims": ["name"], "channel": "web" })).await;
    let txn = opened.1["txnId"].as_str().unwrap().to_owned();
    let mut samples = vec![Sample::new(init, "post", "200", opened)];
    samples.extend(verification_samples(&node, &txn).await);
    samples.extend(flow_samples(&node, &txn).await);
    samples.extend(account_samples(&node).await);
    samples.extend(check_samples(&node, &document).await);
    for sample in &samples {
        sample.assert_described(&document);
    }
    node.stop().await;
}

#[actix_rt::test]
async fn requests_accept_exactly_the_documented_fields() {
    let node = InProcessNode::start().await;
    let document = document();
    let event = json!({ "name": "Fair", "claims": ["name"], "max_guests": 1,
        "expires_at": SystemClock.now() + Duration::from_secs(60) });
    let (_, event) = node.post("/api/v1/nationalid-ovse/events", &event).await;
    let mut bodies = 0;
    for (path, method, operation) in operations(&document) {
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        if schema.is_null() {
            continue;
        }
        bodies += 1;
        let path = path.replace("{eventId}", event["event_id"].as_str().unwrap());
        let app = node.first.app.as_str();
        let refused = node.send(method.parse().unwrap(), &path, app, &invalid_body(&document, schema)).await;
        assert_every_field_is_refused(&document, schema, refused);
    }
    assert_eq!(bodies, 17, "operations with a request body");
    node.stop().await;
}
