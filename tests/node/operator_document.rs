//! The document of the internal listener against its table of routes, its responses and its examples.

use std::collections::BTreeSet;

use actix_web::dev::Service as _;
use actix_web::http::header::ALLOW;
use actix_web::test::{TestRequest, read_body};
use sakshi_domain::flow::report_kind::ReportKind;
use serde_json::{Value, json};

use crate::document::{
    assert_errors_are_described, assert_every_field_is_refused, assert_schemas_are_complete, check_examples,
    invalid_body, operations, resolve,
};
use crate::in_process::InProcessNode;
use crate::operator::{document, listener};
use crate::store_fixture::{CONNECTOR_TOKEN, StoreFixture, TOKEN};

/// Every operation: method, path, name in generated clients, and required token.
pub(crate) const OPERATIONS: [(&str, &str, &str, Option<&str>); 58] = [
    ("GET", "/admin/v1/clients", "listClients", Some("admin_token")),
    ("POST", "/admin/v1/clients", "createClient", Some("admin_token")),
    ("POST", "/admin/v1/clients/import", "importClient", Some("admin_token")),
    ("GET", "/admin/v1/clients/{client_id}", "getClient", Some("admin_token")),
    ("PATCH", "/admin/v1/clients/{client_id}", "updateClient", Some("admin_token")),
    ("GET", "/admin/v1/clients/{client_id}/export", "exportClient", Some("admin_token")),
    ("GET", "/admin/v1/clients/{client_id}/brand", "getClientBrand", Some("admin_token")),
    ("PATCH", "/admin/v1/clients/{client_id}/brand", "changeClientBrand", Some("admin_token")),
    ("GET", "/admin/v1/events/{event_id}/brand", "getEventBrand", Some("admin_token")),
    ("PATCH", "/admin/v1/events/{event_id}/brand", "changeEventBrand", Some("admin_token")),
    ("GET", "/admin/v1/clients/{client_id}/apps", "listApps", Some("admin_token")),
    ("POST", "/admin/v1/clients/{client_id}/apps", "createApp", Some("admin_token")),
    ("GET", "/admin/v1/apps/{app_id}", "getApp", Some("admin_token")),
    ("PATCH", "/admin/v1/apps/{app_id}", "updateApp", Some("admin_token")),
    ("GET", "/admin/v1/apps/{app_id}/events", "listAppEvents", Some("admin_token")),
    ("GET", "/admin/v1/apps/{app_id}/webhook-urls", "listAppWebhookOrigins", Some("admin_token")),
    ("GET", "/admin/v1/clients/{client_id}/keys", "listKeys", Some("admin_token")),
    ("POST", "/admin/v1/clients/{client_id}/keys", "issueKey", Some("admin_token")),
    ("DELETE", "/admin/v1/keys/{key_id}", "revokeKey", Some("admin_token")),
    ("POST", "/admin/v1/keys/{key_id}/rotate", "rotateKey", Some("admin_token")),
    ("GET", "/admin/v1/clients/{client_id}/users", "listUsers", Some("admin_token")),
    ("POST", "/admin/v1/clients/{client_id}/users", "inviteUser", Some("admin_token")),
    ("PATCH", "/admin/v1/users/{user_id}", "updateUser", Some("admin_token")),
    ("DELETE", "/admin/v1/users/{user_id}", "removeUser", Some("admin_token")),
    ("POST", "/admin/v1/users/{user_id}/invite", "resetUser", Some("admin_token")),
    ("GET", "/admin/v1/clients/{client_id}/credits", "getClientCredits", Some("admin_token")),
    ("POST", "/admin/v1/clients/{client_id}/credits", "grantCredits", Some("admin_token")),
    ("GET", "/admin/v1/clients/{client_id}/statement", "getClientStatement", Some("admin_token")),
    ("GET", "/admin/v1/credits/audit", "auditCredits", Some("admin_token")),
    ("GET", "/admin/v1/credits/requests", "listGrantRequests", Some("admin_token")),
    ("POST", "/admin/v1/credits/requests/{grant_id}/confirm", "confirmGrant", Some("admin_token")),
    ("POST", "/admin/v1/credits/requests/{grant_id}/refuse", "refuseGrant", Some("admin_token")),
    ("GET", "/admin/v1/operators", "listOperators", Some("admin_token")),
    ("POST", "/admin/v1/operators", "addOperator", Some("admin_token")),
    ("DELETE", "/admin/v1/operators/{operator_id}", "revokeOperator", Some("admin_token")),
    ("POST", "/admin/v1/reseal", "reseal", Some("admin_token")),
    ("POST", "/admin/v1/erasures", "erase", Some("admin_token")),
    ("GET", "/admin/v1/intent-keys", "listIntentKeys", Some("admin_token")),
    ("POST", "/admin/v1/intent-keys", "useIntentKey", Some("admin_token")),
    ("GET", "/admin/v1/audit-log", "getAuditLog", Some("admin_token")),
    ("GET", "/admin/v1/clients/{client_id}/consents", "listConsents", Some("admin_token")),
    ("GET", "/admin/v1/transactions/{txn_id}", "getTransaction", Some("admin_token")),
    ("GET", "/admin/v1/requests/{request_id}", "findRefusedRequest", Some("admin_token")),
    ("GET", "/admin/v1/transactions/{txn_id}/delivery", "getTransactionDelivery", Some("admin_token")),
    ("GET", "/admin/v1/flows/{flow_id}/deliveries", "listFlowDeliveries", Some("admin_token")),
    ("POST", "/internal/v1/flows/{kind}", "reportFlow", Some("connector_token")),
    ("GET", "/admin/v1/tree", "getSupervisionTree", Some("admin_token")),
    ("GET", "/admin/v1/nodes", "listNodes", Some("admin_token")),
    ("POST", "/admin/v1/clock/accept", "acceptClock", Some("admin_token")),
    ("GET", "/admin/v1/log-level", "getLogLevel", Some("admin_token")),
    ("PUT", "/admin/v1/log-level", "changeLogLevel", Some("admin_token")),
    ("DELETE", "/admin/v1/log-level", "resetLogLevel", Some("admin_token")),
    ("POST", "/admin/v1/store/accept-loss", "acceptLoss", Some("admin_token")),
    ("POST", "/admin/v1/store/finish-upgrade", "finishUpgrade", Some("admin_token")),
    ("GET", "/livez", "getLiveness", None),
    ("GET", "/readyz", "getReadiness", None),
    ("GET", "/metrics", "getMetrics", None),
    ("GET", "/openapi.json", "getOpenApiDocument", Some("any")),
];

/// Returns a path with well-formed ids.
pub(crate) fn example_uri(path: &str) -> String {
    let id = "3f0f6c0e-9a3e-4c55-8d2a-0b8c5e0e7f11";
    let ids = [
        ("{client_id}", "cl_1"),
        ("{app_id}", "app_1"),
        ("{event_id}", "0fZbQ0000000000aB"),
        ("{grant_id}", "gr_1"),
        ("{key_id}", "key_1"),
        ("{operator_id}", "op_1"),
        ("{user_id}", "usr_1"),
        ("{txn_id}", id),
        ("{flow_id}", id),
        ("{kind}", "esign"),
        ("{request_id}", "order-7"),
    ];
    ids.iter().fold(path.to_owned(), |path, (name, id)| path.replace(name, id))
}

#[actix_rt::test]
async fn the_document_and_the_table_of_routes_name_the_same_operations() {
    let service = listener(StoreFixture::new().internal()).await;
    let document = document(&service).await;
    let expected: BTreeSet<_> = OPERATIONS.map(|(method, path, _, _)| (path.to_owned(), method.to_owned())).into();
    let table = sakshi_operator::operations().into_iter().map(|row| (row.path.to_owned(), row.method.to_string()));
    assert_eq!(table.collect::<BTreeSet<_>>(), expected);
    assert_eq!(
        operations(&document).into_iter().map(|(path, method, _)| (path, method)).collect::<BTreeSet<_>>(),
        expected
    );
    for (method, path, id, token) in OPERATIONS {
        let operation = &document["paths"][path][method.to_lowercase()];
        let accepted =
            if token == Some("any") { vec!["admin_token", "connector_token"] } else { token.into_iter().collect() };
        let security: Vec<_> = accepted.into_iter().map(|token| json!({ token: [] })).collect();
        assert_eq!(
            (&operation["operationId"], &operation["security"]),
            (&json!(id), &json!(security)),
            "{method} {path}"
        );
        assert!(operation["summary"].as_str().is_some_and(|text| !text.ends_with('.')), "{id}");
        assert!(operation["description"].as_str().is_some_and(|text| text.ends_with('.')), "{id}");
        assert!(document["tags"].as_array().unwrap().iter().any(|tag| tag["name"] == operation["tags"][0]), "{id}");
    }
}

#[actix_rt::test]
async fn every_documented_route_answers_only_its_methods() {
    let service = listener(StoreFixture::new().internal()).await;
    for (path, item) in document(&service).await["paths"].as_object().unwrap() {
        let request =
            |method: &str| TestRequest::default().method(method.parse().unwrap()).uri(&example_uri(path)).to_request();
        let refused = service.call(request("TRACE")).await.unwrap();
        assert_eq!(refused.status(), 405, "{path}");
        let mut methods: BTreeSet<String> =
            item.as_object().unwrap().keys().map(|method| method.to_uppercase()).collect();
        if methods.contains("GET") {
            methods.insert("HEAD".to_owned());
        }
        let allow = refused.headers().get(ALLOW).unwrap().to_str().unwrap();
        assert_eq!(allow.split(", ").map(str::to_owned).collect::<BTreeSet<_>>(), methods, "{path}");
        for method in methods {
            let status = service.call(request(&method)).await.unwrap().status();
            let is_open = item["get"]["security"] == json!([]);
            assert_eq!(status, if is_open { 200 } else { 401 }, "{method} {path}");
        }
    }
}

#[actix_rt::test]
async fn every_body_has_an_example_and_every_example_fits_its_schema() {
    let document = document(&listener(StoreFixture::new().internal()).await).await;
    for (path, method, operation) in operations(&document).into_iter().filter(|(path, ..)| path != "/openapi.json") {
        for body in [&operation["requestBody"], &operation["responses"]["200"]] {
            let content = &body["content"]["application/json"];
            assert_eq!(content.get("example").is_some(), content.is_object(), "{method} {path}: {body}");
        }
    }
    assert!(check_examples(&document) >= 60, "the document has examples");
    assert_errors_are_described(&document);
    assert_schemas_are_complete(&document);
}

#[actix_rt::test]
async fn a_report_requires_its_app_and_no_nullable_member() {
    let document = document(&listener(StoreFixture::new().internal()).await).await;
    let required = |name: &str| document["components"]["schemas"][name]["required"].clone();
    assert_eq!(required("ReportedEsignOutcome"), json!(["documentId", "documentStatus", "signerInfo", "app_id"]));
}

#[actix_rt::test]
async fn requests_accept_exactly_the_documented_fields() {
    let service = listener(StoreFixture::new().internal()).await;
    let document = document(&service).await;
    let mut requests: Vec<(String, String, &Value, &str)> = Vec::new();
    for (path, method, operation) in operations(&document) {
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        if path.ends_with("/{kind}") {
            let kinds = ReportKind::ALL.iter().zip(resolve(&document, schema)["anyOf"].as_array().unwrap());
            requests.extend(kinds.map(|(kind, schema)| {
                (method.clone(), path.replace("{kind}", kind.as_str()), schema, CONNECTOR_TOKEN)
            }));
        } else if schema.is_object() {
            requests.push((method, example_uri(&path), schema, TOKEN));
        }
    }
    assert_eq!(requests.len(), 17 + ReportKind::ALL.len(), "every operation with a body, and every report");
    for (method, uri, schema, token) in requests {
        let request =
            TestRequest::default().method(method.parse().unwrap()).uri(&uri).set_json(invalid_body(&document, schema));
        let response = service
            .call(request.insert_header(("authorization", format!("Bearer {token}"))).to_request())
            .await
            .unwrap();
        let status = response.status().as_u16();
        let refused = serde_json::from_slice(&read_body(response).await).unwrap();
        assert_every_field_is_refused(&document, schema, (status, refused));
    }
}

#[actix_rt::test]
async fn only_the_internal_listener_serves_its_documented_routes() {
    let node = InProcessNode::start().await;
    let (internal, public) = (node.get_as_operator("/openapi.json").await, node.get_unsigned("/openapi.json").await);
    assert_eq!((internal.0, public.0), (200, 200));
    let paths = |document: &Value| document["paths"].as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    let shared_paths: Vec<String> = paths(&internal.1).intersection(&paths(&public.1)).cloned().collect();
    assert_eq!(shared_paths, ["/openapi.json"], "each listener serves its own document");
    assert!(!public.1.to_string().contains("admin_token"));
    for path in paths(&internal.1).iter().filter(|path| *path != "/openapi.json") {
        assert_eq!(node.get_unsigned(&example_uri(path)).await.0, 404, "{path}");
    }
    node.stop().await;
}
