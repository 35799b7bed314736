//! The fields of a body as rows of a table, read from its JSON schema.

use sakshi_web::api_document::members_in_order;
use serde_json::Value;

/// Depth to which nested fields are listed.
const DEPTH_MAX: usize = 4;

/// A text with which no name of a field ends.
const NO_FIELD: &str = " ";

/// A field of a body, or a parameter.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) is_required: bool,
    pub(super) about: String,
}

impl Row {
    /// Builds the row of a parameter of the path, the query or the headers.
    pub(super) fn from_parameter(document: &Value, parameter: &Value) -> Self {
        let location = parameter["in"].as_str().unwrap_or_default();
        Self {
            name: text(&parameter["name"]),
            kind: format!("{}, in the {}", describe_type(document, &parameter["schema"]), location),
            is_required: parameter["required"] == true,
            about: text(&parameter["description"]),
        }
    }
}

/// Returns a text of the document; empty when it is missing.
pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().trim().to_owned()
}

/// Follows a `$ref`; returns the value itself if it has none.
pub(super) fn resolve<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str().and_then(|to| to.strip_prefix('#')) {
        Some(pointer) => document.pointer(pointer).map_or(&Value::Null, |target| resolve(document, target)),
        None => value,
    }
}

/// Lists the fields of a schema, with nested fields as `part.field` and `parts[].field`.
pub(super) fn rows(document: &Value, schema: &Value) -> Vec<Row> {
    let mut rows = Vec::new();
    collect(document, schema, "", 0, &mut rows);
    rows
}

/// Adds the fields of a schema. Their names begin with `prefix`; `depth` counts the levels above them.
fn collect(document: &Value, schema: &Value, prefix: &str, depth: usize, rows: &mut Vec<Row>) {
    let schema = resolve(document, schema);
    for choice in ["allOf", "oneOf", "anyOf"].iter().filter_map(|word| schema[word].as_array()).flatten() {
        collect(document, choice, prefix, depth, rows);
    }
    for (name, field) in schema["properties"].as_object().into_iter().flat_map(members_in_order) {
        let name = format!("{prefix}{name}");
        if rows.iter().any(|row| row.name == name) {
            continue;
        }
        let is_required = schema["required"]
            .as_array()
            .is_some_and(|required| required.iter().any(|field| name.ends_with(field.as_str().unwrap_or(NO_FIELD))));
        let described = [field, resolve(document, field)].into_iter().find(|schema| schema["description"].is_string());
        let about = described.map_or_else(String::new, |schema| text(&schema["description"]));
        rows.push(Row { kind: describe_type(document, field), is_required, about, name: name.clone() });
        if depth < DEPTH_MAX {
            collect(document, field, &format!("{name}."), depth + 1, rows);
            collect(document, &resolve(document, field)["items"], &format!("{name}[]."), depth + 1, rows);
        }
    }
}

/// Describes a value: its type, its permitted words, and its bounds.
fn describe_type(document: &Value, schema: &Value) -> String {
    let schema = resolve(document, schema);
    let choices = ["oneOf", "anyOf", "allOf"].iter().find_map(|word| schema[word].as_array());
    if let Some(choices) = choices {
        let mut kinds: Vec<String> = choices.iter().map(|choice| describe_type(document, choice)).collect();
        kinds.dedup();
        return kinds.join(" or ");
    }
    if let Some(words) = ["enum", "x-extensible-enum"].iter().find_map(|word| schema[word].as_array()) {
        let words: Vec<String> =
            words.iter().map(|word| word.as_str().map_or_else(|| word.to_string(), str::to_owned)).collect();
        return format!("one of {}", words.join(", "));
    }
    let types = match &schema["type"] {
        Value::String(name) => name.clone(),
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ => "any value".to_owned(),
    };
    let items = if schema["items"].is_object() {
        format!(" of {}", describe_type(document, &schema["items"]))
    } else {
        String::new()
    };
    let format = schema["format"]
        .as_str()
        .filter(|format| !format.starts_with("int"))
        .map(|format| format!(" ({format})"))
        .unwrap_or_default();
    let bounds =
        [("minLength", "maxLength", " characters"), ("minItems", "maxItems", " items"), ("minimum", "maximum", "")];
    let bounds = bounds.iter().filter_map(|(min, max, unit)| {
        let (min, max) = (&schema[min], &schema[max]);
        match (min.is_null(), max.is_null()) {
            (true, true) => None,
            (false, true) => Some(format!(", at least {min}{unit}")),
            (true, false) => Some(format!(", at most {max}{unit}")),
            (false, false) => Some(format!(", {min} to {max}{unit}")),
        }
    });
    format!("{types}{items}{format}{}", bounds.collect::<String>())
}
