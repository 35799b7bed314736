//! Conformance of values to their published schemas.

use std::sync::OnceLock;

use sakshi_wire::{Describe, Schemas};
use serde_json::Value;

/// Checks that the schema of `T` describes a value.
pub(crate) fn assert_described<T: Describe>(schemas: &'static OnceLock<Schemas>, value: &Value) {
    let schemas = schemas.get_or_init(|| {
        let mut schemas = Schemas::new();
        T::collect(&mut schemas);
        schemas
    });
    if let Err(mismatch) = check(schemas, &T::schema(), value) {
        panic!("what was accepted is not described by its schema: {mismatch}");
    }
}

/// Returns an error that names the part of the schema which does not describe the value.
fn check(schemas: &Schemas, schema: &Value, value: &Value) -> Result<(), String> {
    let mismatch = |reason: &str| Err(format!("{reason}: {schema}"));
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap_or_default();
        return schemas.get(name).map_or(Ok(()), |schema| check(schemas, schema, value));
    }
    for word in ["oneOf", "anyOf"] {
        if let Some(choices) = schema[word].as_array() {
            let fits = choices.iter().any(|choice| check(schemas, choice, value).is_ok());
            return if fits { Ok(()) } else { mismatch("no choice fits") };
        }
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if !kinds.is_empty() && !kinds.iter().any(|kind| has_type(kind, value)) {
        return mismatch("another type");
    }
    if schema["enum"].as_array().is_some_and(|words| !words.contains(value)) {
        return mismatch("another word");
    }
    let is_within = |minimum: &str, maximum: &str, number: u64| {
        schema[minimum].as_u64().is_none_or(|minimum| number >= minimum)
            && schema[maximum].as_u64().is_none_or(|maximum| number <= maximum)
    };
    let is_in_bounds = match value {
        Value::String(text) => is_within("minLength", "maxLength", text.chars().count() as u64),
        Value::Number(number) => number.as_u64().is_none_or(|number| is_within("minimum", "maximum", number)),
        Value::Array(items) => is_within("minItems", "maxItems", items.len() as u64),
        _ => true,
    };
    if !is_in_bounds {
        return mismatch("out of bounds");
    }
    match value {
        Value::Array(items) if schema["items"].is_object() => {
            items.iter().try_for_each(|item| check(schemas, &schema["items"], item))
        }
        Value::Object(members) => {
            let known = schema["properties"].as_object();
            if known.is_some()
                && schema["additionalProperties"] == false
                && !members.keys().all(|name| known.is_some_and(|properties| properties.contains_key(name)))
            {
                return mismatch("an unknown member");
            }
            if schema["required"]
                .as_array()
                .is_some_and(|names| names.iter().any(|name| !members.contains_key(name.as_str().unwrap_or_default())))
            {
                return mismatch("a member is missing");
            }
            let known = members.iter().filter_map(|(name, value)| Some((known?.get(name)?, value)));
            known.into_iter().try_for_each(|(schema, value)| check(schemas, schema, value))
        }
        _ => Ok(()),
    }
}

/// Returns true if a value has a type of JSON schemas.
fn has_type(kind: &str, value: &Value) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}
