//! `/docs/postman.json`: every operation as a Postman collection (format 2.1), which Bruno and Insomnia import too.
//!
//! Its variables are `BASE`, `KEY` and `APP`. In a sandbox the first folder is a complete verification.

use sakshi_web::api_document::members_in_order;
use serde_json::{Map, Value, json};

use super::fields::{resolve, text};
use super::reference::METHODS;

const SCHEMA: &str = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json";

/// Builds the collection of an OpenAPI document, for the installation at `base`.
pub(super) fn collection(document: &Value, base: &str, is_sandbox: bool) -> Value {
    let mut folders: Vec<Value> = Vec::new();
    if is_sandbox {
        folders.push(json!({ "name": "A verification, step by step", "item": verification_steps() }));
    }
    for tag in document["tags"].as_array().into_iter().flatten() {
        let paths = document["paths"].as_object().into_iter().flat_map(members_in_order);
        let requests: Vec<Value> = paths
            .flat_map(|(path, item)| METHODS.iter().map(move |method| (path, *method, &item[method])))
            .filter(|(_, _, operation)| operation["tags"][0] == tag["name"])
            .map(|(path, method, operation)| build_request(document, path, method, operation))
            .collect();
        if !requests.is_empty() {
            folders.push(json!({ "name": tag["name"], "description": tag["description"], "item": requests }));
        }
    }
    let variable = |key: &str, value: &str| json!({ "key": key, "value": value, "type": "string" });
    let variables =
        [variable("BASE", base), variable("KEY", ""), variable("APP", ""), variable("TXN", ""), variable("INTENT", "")];
    json!({
        "info": { "name": "sakshi", "description": "Fill in the variables KEY and APP.", "schema": SCHEMA },
        "variable": variables,
        "item": folders,
    })
}

/// Builds the request for an operation.
fn build_request(document: &Value, path: &str, method: &str, operation: &Value) -> Value {
    let segments = path.split('/').map(|part| {
        part.strip_prefix('{')
            .and_then(|part| part.strip_suffix('}'))
            .map_or_else(|| part.to_owned(), |name| format!(":{name}"))
    });
    let parts: Vec<String> = segments.filter(|part| !part.is_empty()).collect();
    let parameters: Vec<&Value> = operation["parameters"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|parameter| resolve(document, parameter))
        .collect();
    let parameters_in = |location: &'static str| parameters.iter().filter(move |parameter| parameter["in"] == location);
    let query: Vec<Value> = parameters_in("query")
        .map(|parameter| {
            json!({ "key": parameter["name"], "value": "", "disabled": true,
            "description": parameter["description"] })
        })
        .collect();
    let variables: Vec<Value> = parameters_in("path")
        .map(|parameter| {
            let value = if parameter["name"] == "txnId" { "{{TXN}}" } else { "" };
            json!({ "key": parameter["name"], "value": value, "description": parameter["description"] })
        })
        .collect();
    let is_secured = operation["security"].as_array().is_some_and(|security| !security.is_empty());
    let mut headers = if is_secured { credentials() } else { Vec::new() };
    // Disabled, because a fixed Idempotency-Key would always return the first response.
    headers.extend(parameters_in("header").filter(|parameter| parameter["name"] != "X-API-APP-ID").map(|parameter| {
        json!({ "key": parameter["name"], "value": "", "disabled": true,
                "description": parameter["description"] })
    }));
    let mut request = json!({
        "method": method.to_uppercase(),
        "header": headers,
        "url": { "raw": format!("{{{{BASE}}}}/{}", parts.join("/")), "host": ["{{BASE}}"], "path": parts,
            "query": query, "variable": variables },
        "description": text(&operation["description"]),
    });
    if let Some(mut body) = example(&operation["requestBody"]["content"]["application/json"]) {
        // The transaction that the first folder has opened.
        if body.get("txnId").is_some() {
            body["txnId"] = json!("{{TXN}}");
        }
        request["body"] = json_body(&body);
    }
    json!({ "name": operation["summary"], "request": request })
}

/// Returns the headers that authenticate a request.
fn credentials() -> Vec<Value> {
    vec![json!({ "key": "X-API-KEY", "value": "{{KEY}}" }), json!({ "key": "X-API-APP-ID", "value": "{{APP}}" })]
}

/// Returns a JSON body in the form of the collection.
fn json_body(body: &Value) -> Value {
    let raw = serde_json::to_string_pretty(body).unwrap_or_default();
    json!({ "mode": "raw", "raw": raw, "options": { "raw": { "language": "json" } } })
}

/// Returns the first example of a body.
fn example(content: &Value) -> Option<Value> {
    let named = content["examples"]
        .as_object()
        .and_then(|examples| members_in_order(examples).next())
        .map(|(_, named)| named["value"].clone());
    named.or_else(|| content.get("example").cloned())
}

/// Builds the requests of a verification in a sandbox. The scripts of a request set the variables for later requests.
fn verification_steps() -> Vec<Value> {
    let step = |name: &str, method: &str, path: &str, body: Option<Value>, tests: &[&str]| {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let mut url = Map::new();
        url.insert("raw".into(), format!("{{{{BASE}}}}{path}").into());
        url.insert("host".into(), json!(["{{BASE}}"]));
        url.insert("path".into(), json!(parts));
        let mut request = json!({ "method": method, "header": credentials(), "url": url });
        if let Some(body) = body {
            request["body"] = json_body(&body);
        }
        let status_test = "pm.test('the status is 200', () => pm.response.to.have.status(200));";
        let lines: Vec<&str> = std::iter::once(status_test).chain(tests.iter().copied()).collect();
        json!({ "name": name, "request": request, "event": [{ "listen": "test", "script": { "type": "text/javascript",
            "exec": lines } }] })
    };
    let ovse = "/api/v1/nationalid-ovse";
    vec![
        step(
            "1. Check the balance",
            "GET",
            "/api/v1/credits",
            None,
            &["pm.test('the balance is positive', () => pm.expect(pm.response.json().balance).to.be.above(0));"],
        ),
        step(
            "2. Open a verification",
            "POST",
            &format!("{ovse}/init"),
            Some(json!({ "claims": ["name", "age_above_18"], "channel": "web", "client_reference_id": "order-42" })),
            &[
                "pm.collectionVariables.set('TXN', pm.response.json().txnId);",
                "pm.collectionVariables.set('INTENT', pm.response.json().intentJwt);",
            ],
        ),
        step(
            "3. Poll while the verification is pending",
            "GET",
            &format!("{ovse}/result/{{{{TXN}}}}"),
            None,
            &["pm.test('it is pending', () => pm.expect(pm.response.json().data.pending).to.equal(true));"],
        ),
        step(
            "4. Approve as the person",
            "POST",
            "/sandbox/app/answer",
            Some(json!({ "intent": "{{INTENT}}", "resident": "asha", "action": "approve" })),
            &[],
        ),
        step(
            "5. Get the result",
            "GET",
            &format!("{ovse}/result/{{{{TXN}}}}"),
            None,
            &["pm.test('it passed', () => pm.expect(pm.response.json().success).to.equal(true));"],
        ),
    ]
}
