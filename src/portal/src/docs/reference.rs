//! What the page tells of the API: its operations by tag, and its webhooks, read from the OpenAPI document.

use serde_json::{Map, Value};

use super::fields::{Row, resolved, rows};

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// The API as the page tells it.
#[derive(Debug)]
pub(super) struct Reference {
    pub(super) about: Vec<String>,
    pub(super) sections: Vec<Section>,
}

/// Operations of one tag, or the webhooks.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) anchor: String,
    pub(super) name: String,
    pub(super) about: String,
    pub(super) operations: Vec<Operation>,
}

/// One method of one path, or one webhook.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) anchor: String,
    pub(super) method: String,
    pub(super) path: String,
    pub(super) summary: String,
    pub(super) about: String,
    pub(super) parts: Vec<Part>,
    pub(super) answers: Vec<Answer>,
}

/// Parameters, a request's body or an answer's.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) name: &'static str,
    pub(super) rows: Vec<Row>,
    pub(super) examples: Vec<Example>,
}

/// A body as it may be.
#[derive(Debug)]
pub(super) struct Example {
    pub(super) name: String,
    pub(super) body: String,
}

/// A status that an operation may answer with.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: String,
    pub(super) about: String,
}

/// A text in pieces, and which of them are code: the document sets those between backticks.
pub(super) fn pieces(text: &str) -> Vec<(&str, bool)> {
    text.split('`').enumerate().map(|(index, piece)| (piece, index % 2 == 1)).filter(|(piece, _)| !piece.is_empty()).collect()
}

impl Reference {
    pub(super) fn of(document: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let tags = document["tags"].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut sections: Vec<Section> = tags
            .iter()
            .map(|tag| Section {
                anchor: anchor(&text(&tag["name"])),
                name: text(&tag["name"]),
                about: text(&tag["description"]),
                operations: Vec::new(),
            })
            .collect();
        for (path, item) in object(&document["paths"]) {
            for method in METHODS {
                let operation = &item[method];
                let section = sections.iter_mut().find(|section| operation["tags"][0] == *section.name);
                if let (true, Some(section)) = (operation.is_object(), section) {
                    section.operations.push(Operation::of(document, method, path, operation));
                }
            }
        }
        let webhooks = object(&document["webhooks"]);
        let operations = webhooks
            .map(|(name, item)| Operation { anchor: format!("webhook-{name}"), ..Operation::of(document, "post", name, &item["post"]) });
        sections.push(Section {
            anchor: "webhooks".to_owned(),
            name: "Webhooks".to_owned(),
            about:
                "What the service posts to the address that you gave: once, without a signature. Fetch the result before you rely on it."
                    .to_owned(),
            operations: operations.collect(),
        });
        sections.retain(|section| !section.operations.is_empty());
        let about = text(&document["info"]["description"]).split("\n\n").map(str::to_owned).collect();
        Self { about, sections }
    }
}

impl Operation {
    fn of(document: &Value, method: &str, path: &str, operation: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().trim().to_owned();
        let parameters = operation["parameters"].as_array().map(Vec::as_slice).unwrap_or_default().iter();
        let parameters = parameters.map(|parameter| Row::of_parameter(document, resolved(document, parameter))).collect();
        let body = &operation["requestBody"];
        let success =
            object(&operation["responses"]).find(|(status, _)| status.starts_with('2')).map_or(&Value::Null, |(_, answer)| answer);
        let parts = [
            Part { name: "Parameters", rows: parameters, examples: Vec::new() },
            Part::of_body(document, "Body", body),
            Part::of_body(document, "Answer", resolved(document, success)),
        ];
        let answers = object(&operation["responses"])
            .map(|(status, answer)| Answer { status: status.clone(), about: text(&resolved(document, answer)["description"]) });
        Self {
            anchor: anchor(&format!("{method}-{path}")),
            method: method.to_uppercase(),
            path: path.to_owned(),
            summary: text(&operation["summary"]),
            about: text(&operation["description"]),
            parts: parts.into_iter().filter(|part| !part.rows.is_empty() || !part.examples.is_empty()).collect(),
            answers: answers.collect(),
        }
    }
}

impl Part {
    fn of_body(document: &Value, name: &'static str, body: &Value) -> Self {
        let content = &body["content"]["application/json"];
        let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap_or_default();
        let mut examples: Vec<Example> = object(&content["examples"])
            .map(|(_, example)| Example {
                name: example["summary"].as_str().unwrap_or("Example").to_owned(),
                body: pretty(&example["value"]),
            })
            .collect();
        if !content["example"].is_null() {
            examples.push(Example { name: "Example".to_owned(), body: pretty(&content["example"]) });
        }
        Self { name, rows: rows(document, &content["schema"]), examples }
    }
}

/// The members of an object; none of anything else.
fn object(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

/// A name for use behind `#`.
fn anchor(name: &str) -> String {
    let words: Vec<&str> = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    words.join("-").to_lowercase()
}
