//! Responses to polls in the API document: one object with the fields of the outcome and of the pending response.
//!
//! Few generated clients read a `oneOf` of two bodies well: most need a constant to distinguish them, and boolean
//! constants break others. A field of the merged object is required if both bodies require it.

use serde_json::{Map, Value, json};

use crate::body::{ORDER, Schemas, reference};
use crate::spelling::is_spelling;

/// The schemas of responses to polls.
const POLLS: [&str; 3] = ["OvseResult", "EsignStatus", "DocLockerDetails"];

/// Replaces the alternatives of each response by one object.
pub fn merge_polls(schemas: &mut Schemas) {
    for poll in POLLS {
        let Some(parts) = schemas.get(poll).and_then(|schema| schema["oneOf"].as_array()).cloned() else { continue };
        let about = schemas[poll]["description"].clone();
        let body_names: Vec<String> = parts.iter().filter_map(referenced_name).collect();
        let merged = merge(schemas, poll, &body_names, &about);
        schemas.insert(poll.to_owned(), merged);
    }
    // Schemas of pending responses have no other use, and most of their parts are merged.
    schemas.retain(|name, _| !name.ends_with("Pending"));
    let text = serde_json::to_string(schemas).unwrap_or_default();
    schemas.retain(|name, _| !name.ends_with("PendingData") || text.contains(&format!("/{name}\"")));
}

/// Merges several named bodies into one object, described by `about`. A field that is an object in each of them is
/// merged too, into a schema of its own.
fn merge(schemas: &mut Schemas, name: &str, body_names: &[String], about: &Value) -> Value {
    let parts: Vec<Value> = body_names.iter().map(|body| schemas[body].clone()).collect();
    let mut has_undescribed = parts.iter().any(|part| part["additionalProperties"] == true);
    let mut properties = Map::new();
    for part in &parts {
        for (field, schema) in fields_in_order(&part["properties"]) {
            let referenced: Vec<String> =
                parts.iter().filter_map(|part| referenced_name(&part["properties"][field])).collect();
            if properties.contains_key(field) {
                continue;
            }
            // Generated code would have the same name for both spellings of a field.
            if properties.keys().any(|known: &String| is_spelling(known, field)) {
                has_undescribed = true;
                continue;
            }
            let mut schema = schema.clone();
            if referenced.len() == parts.len() && referenced.iter().any(|other| *other != referenced[0]) {
                let inner = format!("{name}{}", capitalised(field));
                let merged = merge(schemas, &inner, &referenced, &schemas[&referenced[0]]["description"].clone());
                schemas.insert(inner.clone(), merged);
                schema["$ref"] = reference(&inner)["$ref"].take();
            }
            schema[ORDER] = properties.len().into();
            properties.insert(field.clone(), schema);
        }
    }
    let is_required = |field: &&Value| {
        parts.iter().all(|part| part["required"].as_array().is_some_and(|names| names.contains(field)))
    };
    let required: Vec<Value> =
        parts[0]["required"].as_array().into_iter().flatten().filter(is_required).cloned().collect();
    let mut schema = json!({ "type": "object", "description": about, "properties": properties });
    if has_undescribed {
        schema["additionalProperties"] = true.into();
    }
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    schema
}

/// Returns the fields in the order of declaration.
fn fields_in_order(properties: &Value) -> Vec<(&String, &Value)> {
    let mut fields: Vec<_> = properties.as_object().into_iter().flatten().collect();
    fields.sort_by_key(|(_, field)| field[ORDER].as_u64());
    fields
}

/// Returns the name of the schema that a reference names.
fn referenced_name(schema: &Value) -> Option<String> {
    schema["$ref"].as_str()?.rsplit('/').next().map(str::to_owned)
}

fn capitalised(name: &str) -> String {
    let (first, rest) = name.split_at(1);
    format!("{}{rest}", first.to_uppercase())
}
