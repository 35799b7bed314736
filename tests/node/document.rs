//! Checks of OpenAPI documents, and of responses against them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

/// Returns every operation with its path and method.
pub(crate) fn operations(document: &Value) -> Vec<(String, String, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    let methods = |(path, item): (&String, &'_ Value)| -> Vec<(String, String)> {
        item.as_object().unwrap().keys().map(|method| (path.clone(), method.to_uppercase())).collect()
    };
    let names = paths.iter().flat_map(methods);
    names
        .map(|(path, method)| {
            let operation = &document["paths"][&path][method.to_lowercase()];
            (path, method, operation)
        })
        .collect()
}

/// Checks every reference and example of a document; returns the number of examples.
pub(crate) fn check_examples(document: &Value) -> usize {
    let mut examples = 0;
    walk(document, &mut |node| {
        if let Some(reference) = node["$ref"].as_str() {
            assert!(document.pointer(&reference[1..]).is_some(), "{reference}");
        }
        let examples_of_node =
            node["examples"].as_object().into_iter().flat_map(|named| named.values().map(|example| &example["value"]));
        for example in examples_of_node.chain(node.get("example")).filter(|_| node.get("schema").is_some()) {
            examples += 1;
            assert_eq!(mismatch(document, &node["schema"], example), None, "{example}");
        }
    });
    examples
}

/// Checks that every schema, field and list item is described, and that no list is described as possibly empty.
pub(crate) fn assert_schemas_are_complete(document: &Value) {
    walk(document, &mut |node| {
        let named_schemas = ["properties", "schemas"].iter().filter_map(|keyword| node[keyword].as_object()).flatten();
        let fields = named_schemas.map(|(name, field)| (name.as_str(), field));
        for (name, schema) in fields.chain(node.get("items").map(|item| ("items", item))) {
            let keywords = ["type", "$ref", "oneOf", "anyOf", "const", "enum"];
            assert!(keywords.iter().any(|keyword| schema.get(keyword).is_some()), "{name} of {node}");
        }
        assert_ne!(node["minItems"], 0, "{node}");
    });
}

/// Checks that every error has the common body, its headers, and an example with its status.
pub(crate) fn assert_errors_are_described(document: &Value) {
    for (path, method, operation) in operations(document) {
        let responses = operation["responses"].as_object().unwrap();
        assert!(responses.contains_key("default"), "{method} {path}");
        for (status, response) in responses.iter().filter(|(status, _)| !status.starts_with('2')) {
            let response = resolve(document, response);
            let has_header = |header: &str| response["headers"].get(header).is_some();
            assert_eq!(
                response["content"]["application/json"]["schema"]["$ref"], "#/components/schemas/Error",
                "{method} {path} {status}"
            );
            assert!(has_header("X-Request-ID"), "{method} {path} {status}");
            assert_eq!(
                has_header("Retry-After"),
                matches!(status.as_str(), "429" | "503" | "default"),
                "{method} {path} {status}"
            );
            let example = &response["content"]["application/json"]["example"];
            assert!(
                status == "default" || example["statusCode"].as_u64() == status.parse().ok(),
                "{method} {path} {status}: {example}"
            );
        }
    }
}

/// Returns a body with a wrong value in each field of a schema, and an unknown field.
pub(crate) fn invalid_body(document: &Value, schema: &Value) -> Value {
    // No field is a fraction.
    let mut body: Value = properties(document, schema).into_iter().map(|name| (name, json!(0.5))).collect();
    body["shoe_size"] = json!({});
    body
}

/// Checks the refusal of [`invalid_body`]: described fields are known, and no others.
pub(crate) fn assert_every_field_is_refused(document: &Value, schema: &Value, (status, refused): (u16, Value)) {
    let problems = refused["errors"].as_array().unwrap_or_else(|| panic!("{refused}")).iter();
    let (unknown, known): (Vec<&Value>, Vec<&Value>) = problems.partition(|problem| {
        ["is not a field of this request", "is not a field of this report"]
            .contains(&problem["message"].as_str().unwrap())
    });
    let names = |problems: Vec<&Value>| -> BTreeSet<String> {
        problems.iter().map(|problem| problem["field"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        (status, names(known), names(unknown)),
        (400, properties(document, schema), ["shoe_size".to_owned()].into()),
        "{schema}"
    );
}

/// Checks a JSON response against its operation and status in the document; unknown paths must return an error.
pub(crate) fn assert_described(document: &Value, method: &str, uri: &str, status: u16, answer: &Value) {
    let path = uri.split('?').next().unwrap_or_default();
    let fits = |pattern: &str| {
        let (parts, pattern_parts) = (path.split('/'), pattern.split('/'));
        parts.clone().count() == pattern_parts.clone().count()
            && parts
                .zip(pattern_parts)
                .all(|(part, pattern_part)| part == pattern_part || pattern_part.starts_with('{'))
    };
    let item = document["paths"].as_object().unwrap().iter().find(|(pattern, _)| fits(pattern)).map(|(_, item)| item);
    let response = match item {
        Some(item) => &item[method.to_lowercase()]["responses"][status.to_string()],
        None => &document["components"]["responses"]["OtherError"],
    };
    let schema = &resolve(document, response)["content"]["application/json"]["schema"];
    assert!(schema.is_object(), "{method} {uri} {status} is not described: {answer}");
    assert_eq!(mismatch(document, schema, answer), None, "{method} {uri} {status}: {answer}");
}

/// Calls `visit` for every object of a document outside examples.
pub(crate) fn walk<'a>(node: &'a Value, visit: &mut impl FnMut(&'a Value)) {
    match node {
        Value::Object(members) => {
            visit(node);
            let inner = members.iter().filter(|(name, _)| !matches!(name.as_str(), "example" | "examples"));
            inner.for_each(|(_, member)| walk(member, visit));
        }
        Value::Array(items) => items.iter().for_each(|item| walk(item, visit)),
        _ => {}
    }
}

/// Returns the node that a `$ref` names, or the node itself.
pub(crate) fn resolve<'a>(document: &'a Value, node: &'a Value) -> &'a Value {
    node["$ref"].as_str().map_or(node, |reference| document.pointer(&reference[1..]).unwrap())
}

/// Returns the fields of a schema, including all alternatives.
pub(crate) fn properties(document: &Value, schema: &Value) -> BTreeSet<String> {
    let schema = resolve(document, schema);
    let own_fields = schema["properties"].as_object().into_iter().flat_map(|fields| fields.keys().cloned());
    let alternatives = ["oneOf", "anyOf"].into_iter().filter_map(|keyword| schema[keyword].as_array()).flatten();
    own_fields.chain(alternatives.flat_map(|alternative| properties(document, alternative))).collect()
}

/// Returns the first mismatch of a value with its schema; unknown fields are mismatches.
///
/// Supports the part of JSON Schema that the documents use.
pub(crate) fn mismatch(document: &Value, schema: &Value, value: &Value) -> Option<String> {
    let schema = resolve(document, schema);
    if let Some(alternatives) = ["oneOf", "anyOf"].iter().find_map(|word| schema[word].as_array()) {
        let fitting = alternatives.iter().filter(|other| mismatch(document, other, value).is_none()).count();
        return (fitting != 1).then(|| format!("fits {fitting} alternatives: {value}"));
    }
    let has_type = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("a type that is not used here: {other}"),
    };
    let fits_type = match &schema["type"] {
        Value::Null => true,
        Value::String(name) => has_type(name),
        names => names.as_array().unwrap().iter().any(|name| has_type(name.as_str().unwrap())),
    };
    let is_constant = schema.get("const").is_none_or(|constant| constant == value);
    if !fits_type || !is_constant || schema["enum"].as_array().is_some_and(|words| !words.contains(value)) {
        return Some(format!("is no {}: {value}", schema["type"]));
    }
    if let (Some(fields), Some(members)) = (schema["properties"].as_object(), value.as_object()) {
        let missing = schema["required"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|name| !members.contains_key(name.as_str().unwrap()));
        if let Some(name) = missing {
            return Some(format!("has no {name}"));
        }
        return members.iter().find_map(|(name, member)| match fields.get(name) {
            None => (schema["additionalProperties"] != true).then(|| format!("{name} is not described")),
            Some(field) => mismatch(document, field, member).map(|problem| format!("{name} {problem}")),
        });
    }
    value.as_array().into_iter().flatten().find_map(|item| mismatch(document, &schema["items"], item))
}
