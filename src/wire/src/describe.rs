//! Descriptions of bodies and their fields in the OpenAPI document.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// Position of a member among its siblings, until the document is written: objects in memory are sorted by name.
pub const ORDER: &str = "x-order";

/// A field type that knows its OpenAPI schema.
pub trait Describe {
    /// True if the field is required in a request.
    const REQUIRED: bool = true;

    /// Returns the schema, or a reference to the named schema that [`Describe::collect`] adds.
    fn schema() -> Value;

    /// Adds the named schemas that [`Describe::schema`] refers to.
    fn collect(_: &mut Schemas) {}

    /// Adds the field to its object. A type of several fields, which are read together, adds all of them.
    /// `may_be_skipped` is true for a field that a response may omit.
    fn describe(object: &mut Properties, name: &str, about: &str, may_be_skipped: bool) {
        object.add(name, Self::schema(), about, !may_be_skipped && (object.is_written_whole || Self::REQUIRED));
    }

    /// Returns true if leaving the field out of a request does not change its meaning.
    fn is_absent(&self) -> bool {
        false
    }
}

/// Schemas by name.
pub type Schemas = BTreeMap<String, Value>;

/// The fields of a described object.
#[derive(Debug)]
pub struct Properties {
    /// True if every field is written, as in a response.
    pub(crate) is_written_whole: bool,
    /// True if the object has fields that the document omits, such as a second spelling.
    pub(crate) has_undescribed: bool,
    properties: Map<String, Value>,
    /// The names in the order of declaration.
    declared: Vec<String>,
    /// The names of the required fields.
    required: Vec<Value>,
}

impl Properties {
    /// Starts a request, which is written without absent fields and refuses unknown fields.
    pub(crate) fn of_request() -> Self {
        Self::new(false)
    }

    /// Starts a response or a report, which is written with all fields.
    pub(crate) fn of_response() -> Self {
        Self::new(true)
    }

    fn new(is_written_whole: bool) -> Self {
        Self {
            is_written_whole,
            has_undescribed: false,
            properties: Map::new(),
            declared: Vec::new(),
            required: Vec::new(),
        }
    }

    /// Adds a field that is always present.
    pub(crate) fn add_required(&mut self, name: &str, schema: Value, about: &str) {
        self.add(name, schema, about, true);
    }

    /// Adds a field that may be absent.
    pub(crate) fn add_optional(&mut self, name: &str, schema: Value, about: &str) {
        self.add(name, schema, about, false);
    }

    pub(crate) fn add(&mut self, name: &str, mut schema: Value, about: &str, is_required: bool) {
        schema["description"] = doc_text(about).into();
        self.properties.insert(name.to_owned(), schema);
        self.declared.push(name.to_owned());
        if is_required {
            self.required.push(name.into());
        }
    }

    /// Returns the JSON schema of the object.
    pub(crate) fn into_schema(mut self, about: &str) -> Value {
        // Required fields come first; otherwise fields are in the order of declaration.
        self.declared.sort_by_key(|name| !self.required.iter().any(|required| required == name));
        for (position, name) in self.declared.iter().enumerate() {
            self.properties[name][ORDER] = position.into();
        }
        let mut schema = json!({ "type": "object", "description": doc_text(about), "properties": self.properties });
        if !self.required.is_empty() {
            schema["required"] = self.required.into();
        }
        // A request with an unknown field is refused.
        if self.has_undescribed || !self.is_written_whole {
            schema["additionalProperties"] = self.has_undescribed.into();
        }
        schema
    }
}

/// Returns the text of a doc comment, without indentation.
fn doc_text(comment: &str) -> String {
    comment.trim().lines().map(str::trim).collect::<Vec<_>>().join("\n")
}

/// Returns a reference to a named schema.
pub(crate) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// Returns the schema of one of several bodies; `keyword` is `oneOf` or `anyOf`.
pub(crate) fn choice(keyword: &str, about: &str, bodies: &[Value]) -> Value {
    json!({ "description": doc_text(about), keyword: bodies })
}
