//! Enums of responses and webhooks are open: a new word in them must not break a client that was generated before.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Extension with the known words of an open enum (<https://opensource.zalando.com/restful-api-guidelines/#112>).
const OPEN: &str = "x-extensible-enum";
const SCHEMAS: &str = "#/components/schemas/";

/// Opens every enum that no request uses.
pub(super) fn open_enums(document: &mut Value) {
    let mut asked = BTreeSet::new();
    for operation in document["paths"]
        .as_object()
        .into_iter()
        .flat_map(Map::values)
        .filter_map(Value::as_object)
        .flat_map(Map::values)
    {
        reach(document, &operation["requestBody"]["content"]["application/json"]["schema"], &mut asked);
    }
    let whole = document.clone();
    for (name, schema) in document["components"]["schemas"].as_object_mut().into_iter().flatten() {
        if !asked.contains(name) {
            open(&whole, schema);
        }
    }
}

/// Collects the names of the schemas that a node refers to.
fn reach(document: &Value, node: &Value, names: &mut BTreeSet<String>) {
    match node {
        Value::Object(members) => {
            if let Some(name) = node["$ref"].as_str().and_then(|reference| reference.strip_prefix(SCHEMAS))
                && names.insert(name.to_owned())
            {
                reach(document, &document["components"]["schemas"][name], names);
            }
            members.values().for_each(|member| reach(document, member, names));
        }
        Value::Array(items) => items.iter().for_each(|item| reach(document, item, names)),
        _ => {}
    }
}

/// Opens the enums in a schema, and those of requests that it refers to.
fn open(document: &Value, node: &mut Value) {
    match node {
        Value::Object(members) => {
            let name =
                members.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix(SCHEMAS));
            let named =
                name.map(|name| &document["components"]["schemas"][name]).filter(|schema| schema.get("enum").is_some());
            if let Some(named) = named.and_then(Value::as_object) {
                let description = members.get("description").or(named.get("description")).cloned();
                *members = named.clone();
                members.extend(description.map(|text| ("description".to_owned(), text)));
            }
            if let Some(words) = members.remove("enum") {
                members.insert(OPEN.to_owned(), words);
            }
            members.values_mut().for_each(|member| open(document, member));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| open(document, item)),
        _ => {}
    }
}
