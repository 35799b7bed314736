//! Makes enums of responses and webhooks open: a new value must not break a client generated before.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Extension with the known values of an open enum (<https://opensource.zalando.com/restful-api-guidelines/#112>).
const EXTENSION: &str = "x-extensible-enum";
const SCHEMA_REFERENCE: &str = "#/components/schemas/";

/// Makes every enum open that is not part of a request: a response may contain values that are not listed.
pub(super) fn open_enums(document: &mut Value) {
    let mut names_in_requests = BTreeSet::new();
    for operation in document["paths"]
        .as_object()
        .into_iter()
        .flat_map(Map::values)
        .filter_map(Value::as_object)
        .flat_map(Map::values)
    {
        collect_references(
            document,
            &operation["requestBody"]["content"]["application/json"]["schema"],
            &mut names_in_requests,
        );
    }
    let original = document.clone();
    for (name, schema) in document["components"]["schemas"].as_object_mut().into_iter().flatten() {
        if !names_in_requests.contains(name) {
            open_enums_in(&original, schema);
        }
    }
}

/// Collects the names of the schemas that a node refers to, directly or through other schemas.
fn collect_references(document: &Value, node: &Value, names: &mut BTreeSet<String>) {
    match node {
        Value::Object(members) => {
            if let Some(name) = node["$ref"].as_str().and_then(|reference| reference.strip_prefix(SCHEMA_REFERENCE))
                && names.insert(name.to_owned())
            {
                collect_references(document, &document["components"]["schemas"][name], names);
            }
            members.values().for_each(|member| collect_references(document, member, names));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_references(document, item, names)),
        _ => {}
    }
}

/// Makes the enums in a schema open. A reference to an enum becomes an open copy of the enum.
fn open_enums_in(document: &Value, node: &mut Value) {
    match node {
        Value::Object(members) => {
            let name = members
                .get("$ref")
                .and_then(Value::as_str)
                .and_then(|reference| reference.strip_prefix(SCHEMA_REFERENCE));
            let referenced =
                name.map(|name| &document["components"]["schemas"][name]).filter(|schema| schema.get("enum").is_some());
            if let Some(referenced) = referenced.and_then(Value::as_object) {
                let description = members.get("description").or(referenced.get("description")).cloned();
                *members = referenced.clone();
                members.extend(description.map(|text| ("description".to_owned(), text)));
            }
            if let Some(values) = members.remove("enum") {
                members.insert(EXTENSION.to_owned(), values);
            }
            members.values_mut().for_each(|member| open_enums_in(document, member));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| open_enums_in(document, item)),
        _ => {}
    }
}
