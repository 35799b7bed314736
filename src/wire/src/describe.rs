//! Descriptions of bodies and their fields in the OpenAPI document.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// Position of a member among its siblings, until the document is written: objects in memory are sorted by name.
pub const ORDER: &str = "x-order";

/// A field type that knows its OpenAPI schema.
pub trait Describe {
    /// True if a request must have the field.
    const REQUIRED: bool = true;

    /// Returns the schema; a reference to [`Describe::collect`]ed ones if it has a name.
    fn schema() -> Value;

    /// Adds the named schemas.
    fn collect(_: &mut Schemas) {}

    /// Adds the field to its object. Several fields that are read together are one type.
    fn describe(object: &mut Properties, name: &str, about: &str, is_left_out: bool) {
        object.add(name, Self::schema(), about, !is_left_out && (object.is_written_whole || Self::REQUIRED));
    }

    /// Returns true if a request means the same without it.
    fn is_absent(&self) -> bool {
        false
    }
}

/// Schemas by name.
pub type Schemas = BTreeMap<String, Value>;

/// The fields of a described object.
#[derive(Debug)]
pub struct Properties {
    /// True if every field is written, as in an answer.
    pub(crate) is_written_whole: bool,
    /// True if it has fields that are not described.
    pub(crate) has_more: bool,
    properties: Map<String, Value>,
    declared: Vec<String>,
    required: Vec<Value>,
}

impl Properties {
    pub(crate) fn new(is_written_whole: bool) -> Self {
        Self { is_written_whole, has_more: false, properties: Map::new(), declared: Vec::new(), required: Vec::new() }
    }

    pub(crate) fn add(&mut self, name: &str, mut schema: Value, about: &str, is_required: bool) {
        schema["description"] = text_of(about).into();
        self.properties.insert(name.to_owned(), schema);
        self.declared.push(name.to_owned());
        if is_required {
            self.required.push(name.into());
        }
    }

    pub(crate) fn into_schema(mut self, about: &str) -> Value {
        // Required fields come first; otherwise the order of the declaration stays.
        self.declared.sort_by_key(|name| !self.required.iter().any(|required| required == name));
        for (place, name) in self.declared.iter().enumerate() {
            self.properties[name][ORDER] = place.into();
        }
        let mut schema = json!({ "type": "object", "description": text_of(about), "properties": self.properties });
        if !self.required.is_empty() {
            schema["required"] = self.required.into();
        }
        // A request with an unknown field is refused.
        if self.has_more || !self.is_written_whole {
            schema["additionalProperties"] = self.has_more.into();
        }
        schema
    }
}

/// Returns the text of a doc comment.
fn text_of(comment: &str) -> String {
    comment.trim().lines().map(str::trim).collect::<Vec<_>>().join("\n")
}

/// Returns a reference to a named schema.
pub(crate) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// Returns the schema of one of several bodies; `word` is `oneOf` or `anyOf`.
pub(crate) fn choice(word: &str, about: &str, bodies: &[Value]) -> Value {
    json!({ "description": text_of(about), word: bodies })
}
