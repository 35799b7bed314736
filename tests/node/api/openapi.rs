//! The document against the route table, the specification and its own examples.

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
    assert_refusals_are_described, assert_refused_field_by_field, assert_schemas_are_whole, misfit, nonsense,
    operations, properties, resolve, sound_examples,
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
    let both = json!([{ "api_key": [], "app_id": [] }]);
    let described = operations(&document).into_iter().map(|(path, method, operation)| {
        let secured = operation["security"] == both;
        assert!(secured || operation["security"] == json!([]), "{method} {path}: {}", operation["security"]);
        (path, method, secured)
    });
    assert_eq!(described.collect::<BTreeSet<_>>(), table);
}

#[test]
fn each_operation_keeps_the_name_that_generated_clients_call_it_by() {
    let document = document();
    let named = |text: &Value| text.as_str().is_some_and(|text| !text.is_empty());
    let mut ids: Vec<&str> = Vec::new();
    for (path, method, operation) in operations(&document) {
        assert!(named(&operation["summary"]), "{method} {path}");
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
        let found = statuses(path, method);
        assert!(expected.iter().all(|status| found.get(status).is_some()), "{path}: {expected:?}");
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
    let both = BTreeSet::from(["apiType".to_owned(), "webhookUrl".to_owned()]);
    let request = &item["put"]["requestBody"]["content"]["application/json"]["schema"];
    assert!(properties(&document, request).is_superset(&both));
    let listed = resolve(&document, &item["get"]["responses"]["200"]["content"]["application/json"]["schema"]);
    assert_eq!(properties(&document, &listed["properties"]["data"]["items"]), both);
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
    let of_data = &document["webhooks"]["wealth_data"]["post"]["requestBody"]["content"]["application/json"]["schema"];
    assert_eq!(properties(&document, of_data).len(), 16);
}

#[test]
fn every_refusal_has_the_one_body_and_its_headers() {
    assert_refusals_are_described(&document());
}

#[test]
fn every_reference_leads_somewhere_and_every_example_fits_its_schema() {
    let examples = sound_examples(&document());
    assert!(examples >= 30, "{examples}");
}

#[test]
fn every_field_is_described_and_a_list_says_when_it_must_not_be_empty() {
    let document = document();
    assert_schemas_are_whole(&document);
    let order =
        &document["paths"]["/api/v1/esign/request"]["post"]["requestBody"]["content"]["application/json"]["schema"];
    assert_eq!(resolve(&document, order)["properties"]["signerInfo"]["minItems"], 1);
}

#[test]
fn an_example_that_does_not_fit_is_noticed() {
    let document = document();
    let outcome = json!({ "$ref": "#/components/schemas/OvseOutcome" });
    let good = document["webhooks"]["ovse"]["post"]["requestBody"]["content"]["application/json"]["examples"]["passed"]
        ["value"]
        .clone();
    for (field, value) in
        [("success", json!("yes")), ("data", json!({})), ("extra", json!(1)), ("message", Value::Null)]
    {
        let mut bad = good.clone();
        bad[field] = value;
        assert!(misfit(&document, &outcome, &bad).is_some(), "{field}");
    }
}

#[test]
fn a_ledger_entry_is_written_as_described() {
    let entry = LedgerEntry {
        seq: 1,
        kind: EntryKind::Adjust,
        amount: -5,
        balance_after: 0,
        reference: "correction".into(),
        at: Timestamp::from_millis(0),
    };
    let schema = json!({ "$ref": "#/components/schemas/StatementEntry" });
    assert_eq!(misfit(&document(), &schema, &json!(entry)), None);
}

#[actix_rt::test]
async fn what_a_running_service_answers_is_what_its_document_describes() {
    let live = InProcessNode::start().await;
    let (status, document) = live.stranger("/openapi.json").await;
    assert_eq!((status, &document["openapi"]), (200, &json!("3.1.0")));
    assert_eq!(document["servers"][0]["url"], live.node.public_base);
    let (_, opened) = live.post("/api/v1/nationalid-ovse/init", &json!({ "claims": ["name"], "channel": "web" })).await;
    let txn = opened["txnId"].clone();
    let ovse = "/api/v1/nationalid-ovse";
    let result = format!("{ovse}/result/{}", txn.as_str().unwrap());
    let party = Party { client: live.first.client.clone(), app: live.first.app.clone(), now: SystemClock.now() };
    let (document_id, fetch) =
        (party.open_document(&live.node.store).await.id, party.open_locker(&live.node.store).await.id);
    let details = "/api/v1/doclocker/details/{transactionId}";
    let (app, setting) =
        (live.first.app.as_str(), json!({ "apiType": "ESign", "webhookUrl": "https://client.example/hook" }));
    let (esign, locker, wealth) = ("/api/v1/esign/request", "/api/v1/doclocker/init", "/api/v1/wealth/consents");
    let consented = json!({ "consent": "Y", "consent_text": "I agree." });
    let to_sign =
        json!({ "documentInfo": { "name": "Loan", "content": "QUJD" }, "signerInfo": [{ "signerName": "Asha Rao" }] });
    let mut answers = vec![
        (format!("{ovse}/init"), "post", "200", (200, opened)),
        (format!("{ovse}/init"), "post", "400", live.post(&format!("{ovse}/init"), &json!({ "claims": [] })).await),
        (
            format!("{ovse}/qr-intent"),
            "post",
            "200",
            live.post(&format!("{ovse}/qr-intent"), &json!({ "txnId": txn })).await,
        ),
        (format!("{ovse}/result/{{txnId}}"), "get", "200", live.get(&result).await),
        (format!("{ovse}/result/{{txnId}}"), "get", "401", live.stranger(&result).await),
        (format!("{ovse}/result/{{txnId}}"), "get", "404", live.get(&format!("{ovse}/result/none")).await),
        (wealth.into(), "post", "200", live.post(wealth, &consented).await),
        (wealth.into(), "post", "400", live.post(wealth, &json!({})).await),
        (
            locker.into(),
            "post",
            "200",
            live.post(locker, &json!({ "docs": ["x"], "consent": "Y", "consent_text": "I agree." })).await,
        ),
        (esign.into(), "post", "200", live.post(esign, &to_sign).await),
        ("/api/v1/credits".into(), "get", "200", live.get("/api/v1/credits").await),
        ("/api/v1/credits/statement".into(), "get", "200", live.get("/api/v1/credits/statement").await),
        (
            "/api/v1/esign/status".into(),
            "post",
            "200",
            live.post("/api/v1/esign/status", &json!({ "documentId": document_id })).await,
        ),
        (
            "/api/v1/esign/status".into(),
            "post",
            "404",
            live.post("/api/v1/esign/status", &json!({ "documentId": txn })).await,
        ),
        (details.into(), "get", "200", live.get(&details.replace("{transactionId}", &fetch.to_string())).await),
        (details.into(), "get", "404", live.get(&details.replace("{transactionId}", "none")).await),
        (
            "/api/v1/user/webhook".into(),
            "put",
            "200",
            live.send(Method::PUT, "/api/v1/user/webhook", app, &setting).await,
        ),
        ("/api/v1/user/webhook".into(), "get", "200", live.get("/api/v1/user/webhook").await),
        ("/api/ping".into(), "get", "200", live.stranger("/api/ping").await),
        ("/.well-known/jwks.json".into(), "get", "200", live.stranger("/.well-known/jwks.json").await),
        ("/api/ping".into(), "get", "default", live.stranger("/nowhere").await),
    ];
    for check in CHECKS {
        let asked = &document["paths"][check.path]["post"]["requestBody"]["content"]["application/json"]["example"];
        answers.push((check.path.into(), "post", "200", live.post(check.path, asked).await));
        let mut malformed = asked.clone();
        malformed[check.numbers[0].field] = json!("nonsense");
        answers.push((check.path.into(), "post", "422", live.post(check.path, &malformed).await));
    }
    for (path, method, status, answered) in answers {
        let response = resolve(&document, &document["paths"][&path][method]["responses"][status]);
        assert!(status == "default" || answered.0.to_string() == status, "{method} {path}: {answered:?}");
        let schema = &response["content"]["application/json"]["schema"];
        assert!(schema.is_object(), "{method} {path} {status} is not described");
        assert_eq!(misfit(&document, schema, &answered.1), None, "{method} {path}: {}", answered.1);
    }
    live.stop().await;
}

#[actix_rt::test]
async fn what_a_request_is_described_to_hold_is_read_and_nothing_else() {
    let live = InProcessNode::start().await;
    let document = document();
    let event = json!({ "name": "Fair", "claims": ["name"], "max_guests": 1,
        "expires_at": SystemClock.now() + Duration::from_secs(60) });
    let (_, event) = live.post("/api/v1/nationalid-ovse/events", &event).await;
    let mut bodies = 0;
    for (path, method, operation) in operations(&document) {
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        if schema.is_null() {
            continue;
        }
        bodies += 1;
        let path = path.replace("{eventId}", event["event_id"].as_str().unwrap());
        let app = live.first.app.as_str();
        let refused = live.send(method.parse().unwrap(), &path, app, &nonsense(&document, schema)).await;
        assert_refused_field_by_field(&document, schema, refused);
    }
    assert_eq!(bodies, 17);
    live.stop().await;
}
