//! `/docs/asyncapi.json`: the webhooks as an AsyncAPI 3 document, with the schemas of the OpenAPI document.

use sakshi_web::api_document::in_order;
use serde_json::{Map, Value, json};

use super::fields::text;

/// Builds the document of the webhooks in this OpenAPI document.
pub(super) fn asyncapi(document: &Value) -> Value {
    let (mut channels, mut operations, mut messages) = (Map::new(), Map::new(), Map::new());
    for (name, item) in document["webhooks"].as_object().into_iter().flat_map(in_order) {
        let (webhook, id) = (&item["post"], text(&item["post"]["operationId"]));
        let content = &webhook["requestBody"]["content"]["application/json"];
        let examples = content["examples"].as_object().into_iter().flat_map(in_order);
        let examples: Vec<Value> = examples
            .map(|(name, example)| json!({ "name": name, "summary": example["summary"], "payload": example["value"] }))
            .collect();
        messages.insert(
            name.clone(),
            json!({
                "name": name, "title": webhook["summary"], "summary": webhook["summary"],
                "description": webhook["description"],
                "contentType": "application/json", "payload": content["schema"], "examples": examples,
            }),
        );
        channels.insert(
            name.clone(),
            json!({
                // Each client has its own address.
                "address": null,
                "title": webhook["summary"],
                "description": "A URL of the client, to which the service posts.",
                "messages": { name: { "$ref": format!("#/components/messages/{name}") } },
            }),
        );
        operations.insert(
            id,
            json!({
                "action": "send", "channel": { "$ref": format!("#/channels/{name}") }, "title": webhook["summary"],
                "bindings": { "http": { "method": "POST" } },
                "messages": [{ "$ref": format!("#/channels/{name}/messages/{name}") }],
            }),
        );
    }
    json!({
        "asyncapi": "3.0.0",
        "info": {
            "title": "sakshi: webhooks", "version": document["info"]["version"], "license": { "name": "Apache-2.0" },
            "description": "Webhooks that the service sends to a client, at most once and without a signature. Where \
                a poll exists, fetch the result before you rely on a webhook.",
        },
        "defaultContentType": "application/json",
        "channels": channels,
        "operations": operations,
        "components": {
            "schemas": collect_schemas(&messages, &document["components"]["schemas"]),
            "messages": messages,
        },
    })
}

/// Collects the schemas to which the messages refer, directly or indirectly.
fn collect_schemas(messages: &Map<String, Value>, all: &Value) -> Map<String, Value> {
    const PREFIX: &str = "#/components/schemas/";
    let mut collected = Map::new();
    let mut pending: Vec<&Value> = messages.values().collect();
    while let Some(value) = pending.pop() {
        match value {
            Value::Object(members) => pending.extend(members.values()),
            Value::Array(items) => pending.extend(items),
            Value::String(text) => {
                if let Some(name) = text.strip_prefix(PREFIX)
                    && let Some(schema) = all.get(name)
                    && collected.insert(name.to_owned(), schema.clone()).is_none()
                {
                    pending.push(schema);
                }
            }
            _ => {}
        }
    }
    collected
}
