//! Compatibility of the OpenAPI document with the committed one, from which the clients are generated.
//!
//! With `SAKSHI_WRITE_DOCUMENTS=1` in the environment the file is written, unless a change would break a program.

use std::fs;

use sakshi_api::document_of;
use sakshi_domain::tenancy::KeyCase;
use sakshi_pages::PosterApi;
use serde_json::{Map, Value, json};
use utoipa::OpenApi as _;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../clients/openapi.json");

/// Returns the document without its examples, which have today's times.
fn document() -> Value {
    fn without_examples(value: &Value) -> Value {
        match value {
            Value::Object(members) => {
                let remaining = members.iter().filter(|(name, _)| !matches!(name.as_str(), "example" | "examples"));
                remaining.map(|(name, member)| (name.clone(), without_examples(member))).collect::<Map<_, _>>().into()
            }
            Value::Array(items) => items.iter().map(without_examples).collect(),
            plain => plain.clone(),
        }
    }
    let document = document_of("https://verify.example", PosterApi::openapi, KeyCase::SnakeCase);
    // As served: without the marks of its order.
    without_examples(&serde_json::from_str(document.text()).unwrap())
}

/// The sender of data that a schema describes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sender {
    Client,
    Service,
}

/// Changes that would break a program written for the previous document.
#[derive(Default)]
struct BreakingChanges(Vec<String>);

impl BreakingChanges {
    /// Returns the changes, each with its place in the document.
    fn between(before: &Value, after: &Value) -> Vec<String> {
        let mut changes_found = Self::default();
        for (path, item) in members(&before["paths"]) {
            for (method, operation) in
                members(item).filter(|(method, _)| ["get", "post", "put", "patch", "delete"].contains(method))
            {
                changes_found.compare_operation(&format!("{method} {path}"), operation, &after["paths"][path][method]);
            }
        }
        for (name, item) in members(&before["webhooks"]) {
            changes_found.compare_body(
                &format!("webhook {name}"),
                &item["post"]["requestBody"],
                &after["webhooks"][name]["post"]["requestBody"],
            );
        }
        for (name, schema) in members(&before["components"]["schemas"]) {
            let current = &after["components"]["schemas"][name];
            let sender = if name.ends_with("Request") { Sender::Client } else { Sender::Service };
            changes_found.compare_schema(name, schema, current, sender);
        }
        changes_found.0
    }

    fn add(&mut self, location: &str, problem: &str) {
        self.0.push(format!("{location}: {problem}"));
    }

    fn compare_operation(&mut self, location: &str, before: &Value, after: &Value) {
        if after.is_null() {
            return self.add(location, "is gone");
        }
        if before["operationId"] != after["operationId"] {
            self.add(location, "has another name");
        }
        let name = |parameter: &Value| (parameter["$ref"].clone(), parameter["in"].clone(), parameter["name"].clone());
        for parameter in elements(&before["parameters"]) {
            if !elements(&after["parameters"]).any(|current| name(current) == name(parameter)) {
                self.add(location, &format!("no longer takes {parameter}"));
            }
        }
        for parameter in elements(&after["parameters"]).filter(|parameter| parameter["required"] == true) {
            if !elements(&before["parameters"]).any(|known| name(known) == name(parameter) && known["required"] == true)
            {
                self.add(location, &format!("needs {parameter}"));
            }
        }
        self.compare_body(location, &before["requestBody"], &after["requestBody"]);
        for (status, answer) in members(&before["responses"]).filter(|(status, _)| status.starts_with('2')) {
            self.compare_body(&format!("{location} {status}"), answer, &after["responses"][status]);
        }
    }

    fn compare_body(&mut self, location: &str, before: &Value, after: &Value) {
        for (kind, content) in members(&before["content"]) {
            let current = &after["content"][kind];
            if current["schema"] != content["schema"] && (content["schema"]["$ref"].is_string() || current.is_null()) {
                self.add(location, &format!("has another body: {}", current["schema"]));
            }
        }
    }

    /// Compares a schema and its parts.
    fn compare_schema(&mut self, location: &str, before: &Value, after: &Value, sender: Sender) {
        if after.is_null() {
            return self.add(location, "is gone");
        }
        for keyword in ["type", "format", "$ref", "additionalProperties", "pattern"] {
            if before[keyword] != after[keyword] {
                self.add(location, &format!("{keyword} was {} and is {}", before[keyword], after[keyword]));
            }
        }
        for (keyword, other) in [("enum", "x-extensible-enum"), ("x-extensible-enum", "enum")] {
            for value in elements(&before[keyword]) {
                if !elements(&after[keyword]).chain(elements(&after[other])).any(|current| current == value) {
                    self.add(location, &format!("no longer has {value}"));
                }
            }
        }
        for (name, property) in members(&before["properties"]) {
            self.compare_schema(&format!("{location}.{name}"), property, &after["properties"][name], sender);
        }
        // A request must not require more than before, and a response must not promise less.
        let (allowed, checked) = if sender == Sender::Client { (before, after) } else { (after, before) };
        for name in
            elements(&checked["required"]).filter(|name| !elements(&allowed["required"]).any(|known| known == *name))
        {
            self.add(location, if sender == Sender::Client { "needs more" } else { "promises less" });
            self.add(location, &name.to_string());
        }
        for keyword in ["oneOf", "anyOf", "allOf", "items"] {
            let (was, is) = (&before[keyword], &after[keyword]);
            if was.is_object() {
                self.compare_schema(&format!("{location}[]"), was, is, sender);
            }
            for (index, part) in elements(was).enumerate() {
                self.compare_schema(&format!("{location} {keyword} {index}"), part, &is[index], sender);
            }
        }
        for (keyword, is_upper_bound) in [
            ("minLength", false),
            ("minItems", false),
            ("minimum", false),
            ("maxLength", true),
            ("maxItems", true),
            ("maximum", true),
        ] {
            let (was, is) = (before[keyword].as_f64(), after[keyword].as_f64());
            let is_narrower = match (was, is) {
                (Some(was), Some(is)) => (is < was) == is_upper_bound && is != was,
                (None, Some(_)) => true,
                _ => false,
            };
            if is_narrower && sender == Sender::Client {
                self.add(location, &format!("{keyword} was {} and is {}", before[keyword], after[keyword]));
            }
        }
    }
}

fn members(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value.as_object().into_iter().flatten().map(|(name, member)| (name.as_str(), member))
}

fn elements(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[test]
fn the_next_version_breaks_no_working_program() {
    let committed = fs::read_to_string(FILE).unwrap_or_else(|_| "{}".to_owned());
    let (before, after) = (serde_json::from_str::<Value>(&committed).unwrap(), document());
    assert_eq!(
        BreakingChanges::between(&before, &after),
        Vec::<String>::new(),
        "docs/compatibility.md says what may change"
    );
    if std::env::var_os("SAKSHI_WRITE_DOCUMENTS").is_some() {
        fs::write(FILE, serde_json::to_string_pretty(&after).unwrap() + "\n").unwrap();
    } else {
        assert!(before == after, "run: SAKSHI_WRITE_DOCUMENTS=1 cargo test -p sakshi --test node compatible");
    }
}

#[test]
fn breaking_changes_are_detected() {
    let before = document();
    type Change = fn(&mut Value);
    let changes: [(&str, Change); 9] = [
        ("get /api/v1/credits: is gone", |document| {
            drop(document["paths"].as_object_mut().unwrap().remove("/api/v1/credits"));
        }),
        ("InitRequest.purpose: is gone", |document| drop(properties(document, "InitRequest").remove("purpose"))),
        ("Balance.balance: is gone", |document| drop(properties(document, "Balance").remove("balance"))),
        ("InitRequest: needs more", |document| {
            document["components"]["schemas"]["InitRequest"]["required"] = json!(["claims", "channel", "purpose"]);
        }),
        ("Balance: promises less", |document| document["components"]["schemas"]["Balance"]["required"] = json!([])),
        ("Balance.balance: type was \"integer\"", |document| {
            properties(document, "Balance")["balance"]["type"] = json!("string");
        }),
        ("InitRequest.claims: maxItems was 30", |document| {
            properties(document, "InitRequest")["claims"]["maxItems"] = json!(10);
        }),
        ("Claim: no longer has", |document| document["components"]["schemas"]["Claim"]["enum"] = json!(["name"])),
        ("get /api/v1/credits: has another name", |document| {
            document["paths"]["/api/v1/credits"]["get"]["operationId"] = json!("balance");
        }),
    ];
    for (expected, change) in changes {
        let mut after = before.clone();
        change(&mut after);
        let changes_found = BreakingChanges::between(&before, &after);
        assert!(changes_found.iter().any(|line| line.starts_with(expected)), "{expected}: {changes_found:?}");
        assert_eq!(BreakingChanges::between(&before, &before), Vec::<String>::new());
    }
}

fn properties<'a>(document: &'a mut Value, schema: &str) -> &'a mut Map<String, Value> {
    document["components"]["schemas"][schema]["properties"].as_object_mut().unwrap()
}
