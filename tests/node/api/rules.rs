//! Rules of every operation of the API and every schema of its document.

use std::collections::BTreeSet;

use reqwest::Method;
use sakshi_api::document_of;
use sakshi_domain::tenancy::KeyCase;
use sakshi_pages::PosterApi;
use serde_json::{Value, json};
use utoipa::OpenApi as _;

use crate::document::{check_examples, mismatch, operations, properties, resolve, walk};
use crate::in_process::InProcessNode;

/// Returns the OpenAPI document in both spellings of outcomes.
fn documents() -> [Value; 2] {
    [KeyCase::SnakeCase, KeyCase::CamelCase]
        .map(|spelling| document_of("https://verify.example", PosterApi::openapi, spelling).value())
}

/// A node with a transaction, an event and a document to sign, and the OpenAPI document of the node.
struct DocumentedNode {
    node: InProcessNode,
    document: Value,
    txn_id: Value,
    event_id: String,
    esign_document_id: Value,
}

impl DocumentedNode {
    async fn start() -> Self {
        let node = InProcessNode::start().await;
        let (_, document) = node.get_unsigned("/openapi.json").await;
        let example = |path: &str| {
            document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["example"].clone()
        };
        let events = "/api/v1/nationalid-ovse/events";
        let (_, event) = node.post(events, &example(events)).await;
        let (_, opened) =
            node.post("/api/v1/nationalid-ovse/init", &json!({ "claims": ["name"], "channel": "web" })).await;
        let (_, signed) = node.post("/api/v1/esign/request", &example("/api/v1/esign/request")).await;
        let event_id = event["event_id"].as_str().unwrap().to_owned();
        Self {
            node,
            txn_id: opened["txnId"].clone(),
            event_id,
            esign_document_id: signed["documentId"].clone(),
            document,
        }
    }

    /// Sends a request as the first app, with existing ids in the path.
    async fn send(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let path = path.replace("{eventId}", &self.event_id).replace("{txnId}", self.txn_id.as_str().unwrap());
        self.node.send(method.parse::<Method>().unwrap(), &path, self.node.first.app.as_str(), body).await
    }
}

#[actix_rt::test]
async fn an_unknown_query_parameter_gets_a_400_that_lists_the_known_ones() {
    let documented = DocumentedNode::start().await;
    let mut operations_called = 0;
    for (path, method, operation) in
        operations(&documented.document).into_iter().filter(|(path, ..)| path.starts_with("/api/v1/"))
    {
        let (status, refused) = documented.send(&method, &format!("{path}?colour=red"), &json!({})).await;
        assert_eq!((status, &refused["errors"][0]["field"]), (400, &json!("colour")), "{method} {path}: {refused}");
        let message = refused["errors"][0]["message"].as_str().unwrap();
        for parameter in
            operation["parameters"].as_array().unwrap().iter().filter(|parameter| parameter["in"] == "query")
        {
            assert!(message.contains(parameter["name"].as_str().unwrap()), "{method} {path}: {message}");
        }
        operations_called += 1;
    }
    assert!(operations_called >= 27, "only {operations_called} operations were called");
    documented.node.stop().await;
}

#[actix_rt::test]
async fn every_request_body_accepts_consent_and_checks_its_format() {
    let documented = DocumentedNode::start().await;
    for (path, method, operation) in operations(&documented.document) {
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        if schema.is_null() {
            continue;
        }
        assert!(properties(&documented.document, schema).contains("consent_text"), "{method} {path}");
        let (status, refused) = documented.send(&method, &path, &json!({ "consent": "yes", "consentText": " " })).await;
        let fields: BTreeSet<&str> =
            refused["errors"].as_array().unwrap().iter().map(|error| error["field"].as_str().unwrap()).collect();
        assert!(status == 400 && fields.is_superset(&["consent", "consentText"].into()), "{method} {path}: {refused}");
    }
    let init = json!({ "claims": ["name"], "channel": "web", "consent": "Y", "consent_text": "I agree." });
    assert_eq!(documented.send("POST", "/api/v1/nationalid-ovse/init", &init).await.0, 200);
    documented.node.stop().await;
}

#[actix_rt::test]
async fn every_example_of_a_request_is_accepted() {
    let documented = DocumentedNode::start().await;
    let mut examples_sent = 0;
    for (path, method, operation) in operations(&documented.document) {
        let content = &operation["requestBody"]["content"]["application/json"];
        let named_examples =
            content["examples"].as_object().into_iter().flatten().map(|(_, example)| &example["value"]);
        for example in named_examples.chain(content.get("example")) {
            let mut example = example.clone();
            // Existing ids replace those of the example.
            for (field, existing_id) in [("txnId", &documented.txn_id), ("documentId", &documented.esign_document_id)] {
                if !example[field].is_null() {
                    example[field] = existing_id.clone();
                }
            }
            let (status, answer) = documented.send(&method, &path, &example).await;
            if path.ends_with("/check-ins") {
                // The request is valid, but the event has no guest.
                assert_eq!((status, &answer["message"]), (404, &json!("There is no such guest.")));
                continue;
            }
            assert_eq!(status, 200, "{method} {path}: {example}: {answer}");
            let schema = &operation["responses"]["200"]["content"]["application/json"]["schema"];
            assert_eq!(mismatch(&documented.document, schema, &answer), None, "{method} {path}");
            examples_sent += 1;
        }
    }
    assert!(examples_sent >= 18, "only {examples_sent} examples were sent");
    documented.node.stop().await;
}

#[actix_rt::test]
async fn scripts_of_any_origin_may_read_the_documents_and_nothing_else() {
    let node = InProcessNode::start().await;
    for (path, is_allowed) in [
        ("/openapi.json", true),
        ("/docs", true),
        ("/docs/guides/web", true),
        ("/docs/errors", true),
        ("/api/ping", false),
    ] {
        let response = node.http.get(node.url(path)).header("origin", "https://editor.example").send().await.unwrap();
        let allowed = response.headers().get("access-control-allow-origin").map(|value| value.to_str().unwrap());
        assert_eq!((response.status().as_u16(), allowed), (200, is_allowed.then_some("*")), "{path}");
    }
    node.stop().await;
}

#[test]
fn fields_keep_their_declared_order_and_the_usual_example_is_first() {
    let text = document_of("https://verify.example", PosterApi::openapi, KeyCase::SnakeCase).text().to_owned();
    let assert_order = |words: &[&str]| {
        let positions: Vec<usize> =
            words.iter().map(|word| text.find(word).unwrap_or_else(|| panic!("{word}"))).collect();
        assert!(positions.is_sorted(), "{words:?} at {positions:?}");
    };
    let init = text.find(r#""InitRequest":{"#).unwrap();
    let init = &text[init..init + 3_000];
    let fields = ["claims", "channel", "app_id", "app_signature", "language", "face_auth"];
    let positions: Vec<usize> = fields.iter().map(|field| init.find(&format!("\"{field}\":{{")).unwrap()).collect();
    assert!(positions.is_sorted(), "{positions:?}");
    assert_order(&[r#""web":{"summary""#, r#""android":{"summary""#]);
    assert_order(&[r#""passed":{"summary""#, r#""failed":{"summary""#]);
    assert!(!text.contains("x-order"));
}

#[test]
fn responses_have_no_closed_enum_and_schemas_have_no_constant() {
    for document in documents() {
        let mut reached = BTreeSet::new();
        for (_, _, operation) in operations(&document) {
            collect_schemas(&document, &operation["responses"], &mut reached);
        }
        collect_schemas(&document, &document["webhooks"], &mut reached);
        assert!(reached.contains("OvseOutcome") && reached.contains("Error"), "{reached:?}");
        for name in &reached {
            walk(&document["components"]["schemas"][name], &mut |node| {
                assert!(node.get("enum").is_none(), "{name}: {node}");
            });
        }
        assert!(document["components"]["schemas"]["Error"]["properties"]["code"]["x-extensible-enum"].is_array());
        walk(&document, &mut |node| {
            assert!(node.get("const").is_none(), "{node}");
            let values = node["enum"].as_array().into_iter().flatten();
            assert!(values.into_iter().all(Value::is_string), "{node}");
        });
    }
}

/// Collects the names of the schemas that a node of the document refers to, directly or through other schemas.
fn collect_schemas(document: &Value, node: &Value, names: &mut BTreeSet<String>) {
    walk(node, &mut |node| {
        let Some(reference) = node["$ref"].as_str() else { return };
        let is_new = reference.strip_prefix("#/components/schemas/").is_none_or(|name| names.insert(name.to_owned()));
        if is_new {
            collect_schemas(document, resolve(document, node), names);
        }
    });
}

#[test]
fn requests_accept_null_only_where_it_differs_from_absence() {
    let [document, _] = documents();
    let mut nullable = Vec::new();
    for (_, _, operation) in operations(&document) {
        let request = resolve(&document, &operation["requestBody"]["content"]["application/json"]["schema"]);
        for (name, field) in
            request["properties"].as_object().into_iter().flatten().filter(|(_, field)| field["readOnly"] != true)
        {
            if field.to_string().contains("\"null\"") {
                nullable.push(format!("{}.{name}", operation["operationId"].as_str().unwrap()));
            }
        }
    }
    assert_eq!(
        nullable,
        [
            "updateEvent.credit_budget",
            "updateEvent.max_pending",
            "updateEvent.organiser",
            "updateEvent.place",
            "updateEvent.purpose",
            "updateEvent.starts_at",
            "updateEvent.webhook_url",
            "setWebhookUrl.webhookUrl"
        ]
    );
}

#[test]
fn summaries_are_short_names_and_descriptions_say_more() {
    let [document, _] = documents();
    let webhooks = document["webhooks"].as_object().unwrap().values().map(|item| &item["post"]);
    for operation in operations(&document).into_iter().map(|(_, _, operation)| operation).chain(webhooks) {
        let summary = operation["summary"].as_str().unwrap();
        assert!((2..=5).contains(&summary.split(' ').count()) && !summary.ends_with('.'), "{summary}");
        let text = operation["description"].as_str().unwrap();
        assert!(text.ends_with('.') && !text.starts_with(summary), "{summary}: {text}");
    }
}

#[test]
fn webhooks_are_documented_as_at_most_once_with_their_poll() {
    let [document, _] = documents();
    let polls = operations(&document)
        .into_iter()
        .map(|(_, _, operation)| operation["operationId"].as_str().unwrap())
        .collect::<Vec<_>>();
    for (name, item) in document["webhooks"].as_object().unwrap() {
        let hook = &item["post"];
        assert_eq!(hook["x-delivery"], "at-most-once", "{name}");
        let text = hook["description"].as_str().unwrap();
        assert!(text.contains("at most once") && !text.contains("exactly once"), "{text}");
        let has_poll = polls.iter().any(|poll| text.contains(&format!("`{poll}`")));
        assert_ne!(has_poll, text.contains("cannot be polled"), "{name}: {text}");
    }
}

#[test]
fn each_document_has_one_spelling_of_outcomes() {
    let [snake, camel] = documents();
    for (document, passed_field) in [(&snake, "verification_passed"), (&camel, "verificationPassed")] {
        let names: Vec<&String> = document["components"]["schemas"].as_object().unwrap().keys().collect();
        assert!(!names.iter().any(|name| name.contains("AnyCase") || name.contains("CamelCase")), "{names:?}");
        assert!(document["components"]["schemas"]["OvseData"]["properties"][passed_field].is_object());
        assert!(check_examples(document) >= 30, "the document has examples");
    }
}
