//! The reference: the operations of the API by tag, and its webhooks, read from the OpenAPI document.

use sakshi_web::api_document::members_in_order;
use serde_json::Value;

use super::fields::{Row, resolve, rows, text};

pub(super) const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// The operations and webhooks of the API.
#[derive(Debug)]
pub(super) struct Reference {
    pub(super) about: Vec<String>,
    pub(super) sections: Vec<Section>,
}

/// Operations of one tag, or the webhooks.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) anchor: String,
    pub(super) about: String,
    pub(super) operations: Vec<Operation>,
}

/// One method of one path, or one webhook.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) anchor: String,
    /// Name in generated clients.
    pub(super) id: String,
    pub(super) method: String,
    pub(super) path: String,
    pub(super) summary: String,
    pub(super) about: String,
    pub(super) parts: Vec<Part>,
    /// Statuses and their meaning.
    pub(super) responses: Vec<(String, String)>,
}

/// Parameters, a request body or a response body.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) name: &'static str,
    pub(super) rows: Vec<Row>,
    /// Examples of a body with their names.
    pub(super) examples: Vec<(String, String)>,
}

/// Splits a text into pieces, each with a flag: true for code between backticks.
pub(super) fn split_code(text: &str) -> Vec<(&str, bool)> {
    text.split('`')
        .enumerate()
        .map(|(index, piece)| (piece, index % 2 == 1))
        .filter(|(piece, _)| !piece.is_empty())
        .collect()
}

impl Reference {
    pub(super) fn from_document(document: &Value) -> Self {
        let mut sections = Vec::new();
        for tag in items(&document["tags"]) {
            let in_section = |operation: &Value| operation["tags"][0] == tag["name"];
            let operations = members(&document["paths"]).flat_map(|(path, item)| {
                let described = METHODS.into_iter().filter(|method| in_section(&item[method]));
                described.map(move |method| Operation::from_document(document, method, path, &item[method]))
            });
            let (name, about) = (text(&tag["name"]), text(&tag["description"]));
            sections.push(Section { anchor: anchor(&name), about, operations: operations.collect() });
        }
        let webhooks = members(&document["webhooks"]).map(|(name, item)| Operation {
            anchor: format!("webhook-{name}"),
            ..Operation::from_document(document, "post", name, &item["post"])
        });
        sections.push(Section {
            anchor: "webhooks".to_owned(),
            about: "Webhooks that the service sends to your URLs, at most once and without a signature. Where a poll \
                    exists, fetch the result before you rely on a webhook."
                .to_owned(),
            operations: webhooks.collect(),
        });
        sections.retain(|section| !section.operations.is_empty());
        Self { about: text(&document["info"]["description"]).split("\n\n").map(str::to_owned).collect(), sections }
    }

    /// Returns the section with this anchor.
    pub(super) fn section(&self, anchor: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.anchor == anchor)
    }
}

impl Operation {
    fn from_document(document: &Value, method: &str, path: &str, operation: &Value) -> Self {
        let parameters = items(&operation["parameters"])
            .map(|parameter| Row::from_parameter(document, resolve(document, parameter)));
        let responses =
            || members(&operation["responses"]).map(|(status, response)| (status, resolve(document, response)));
        let success =
            responses().find(|(status, _)| status.starts_with('2')).map_or(&Value::Null, |(_, response)| response);
        let parts = [
            Part { name: "Parameters", rows: parameters.collect(), examples: Vec::new() },
            Part::from_body(document, "Body", &operation["requestBody"]),
            Part::from_body(document, "Response", success),
        ];
        Self {
            anchor: anchor(&format!("{method}-{path}")),
            id: text(&operation["operationId"]),
            method: method.to_uppercase(),
            path: path.to_owned(),
            summary: text(&operation["summary"]),
            about: text(&operation["description"]),
            parts: parts.into_iter().filter(|part| !part.rows.is_empty() || !part.examples.is_empty()).collect(),
            responses: responses().map(|(status, response)| (status.clone(), text(&response["description"]))).collect(),
        }
    }
}

impl Part {
    fn from_body(document: &Value, name: &'static str, body: &Value) -> Self {
        let content = &body["content"]["application/json"];
        let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap_or_default();
        let named = members(&content["examples"]).map(|(_, example)| {
            (example["summary"].as_str().unwrap_or("Example").to_owned(), pretty(&example["value"]))
        });
        let unnamed = content.get("example").map(|example| ("Example".to_owned(), pretty(example)));
        Self { name, rows: rows(document, &content["schema"]), examples: named.chain(unnamed).collect() }
    }
}

/// Returns the entries of a list; nothing for another value.
fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Returns the members of an object; nothing for another value.
fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(members_in_order)
}

/// Converts a name into a fragment of an address: `POST /init` becomes `post-init`.
fn anchor(name: &str) -> String {
    let words: Vec<&str> = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    words.join("-").to_lowercase()
}
