//! What a body and its fields can do, and `body!`, which declares one.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::fields::{Fields, Place};
use crate::json::Json;

/// A type of a field that knows its OpenAPI schema.
pub trait Describe {
    /// Whether a request must have it.
    const REQUIRED: bool = true;

    /// The schema; a reference to [`Describe::collect`]ed ones if it has a name.
    fn schema() -> Value;

    /// Adds the schemas that have names.
    fn collect(_: &mut Schemas) {}

    /// Adds it to the object that has it as a field. Several fields that are read together are one type.
    fn describe(object: &mut Properties, name: &str, about: &str, is_left_out: bool) {
        object.add(name, Self::schema(), about, !is_left_out && (object.is_written_whole || Self::REQUIRED));
    }

    /// Whether a request says the same without it.
    fn is_absent(&self) -> bool {
        false
    }
}

/// A type of a field that is read from what somebody sent.
pub trait Field: Describe + Sized {
    /// Reads a value that is there and not null; notes what is wrong with it.
    fn read(value: Json, place: &mut Place<'_>) -> Option<Self>;

    /// What stands for a field that was not sent.
    fn absent(place: &mut Place<'_>) -> Option<Self> {
        place.refuse("is required")
    }

    /// What stands for a field that is null.
    fn null(place: &mut Place<'_>) -> Option<Self> {
        Self::absent(place)
    }

    /// Reads it from the object that has it as a field.
    fn take(fields: &mut Fields<'_>, name: &'static str) -> Option<Self> {
        fields.take(name)
    }
}

/// A body that is read.
pub trait Body: Sized {
    /// Reads the fields of an object; notes what is wrong with them.
    fn read(fields: &mut Fields<'_>) -> Option<Self>;
}

/// The schemas that have names.
pub type Schemas = BTreeMap<String, Value>;

/// The fields of an object that is described.
#[derive(Debug)]
pub struct Properties {
    is_written_whole: bool,
    properties: Map<String, Value>,
    required: Vec<Value>,
}

impl Properties {
    pub(crate) fn new(is_written_whole: bool) -> Self {
        Self { is_written_whole, properties: Map::new(), required: Vec::new() }
    }

    pub(crate) fn add(&mut self, name: &str, mut schema: Value, about: &str, is_required: bool) {
        // What may be null or a named schema is described beside the name.
        let described = if schema["oneOf"][1]["type"] == "null" { &mut schema["oneOf"][0] } else { &mut schema };
        described["description"] = text_of(about).into();
        self.properties.insert(name.to_owned(), schema);
        if is_required {
            self.required.push(name.into());
        }
    }

    pub(crate) fn into_schema(self, about: &str) -> Value {
        let mut schema = json!({ "type": "object", "description": text_of(about), "properties": self.properties });
        if !self.required.is_empty() {
            schema["required"] = self.required.into();
        }
        schema
    }
}

/// The text of a doc comment.
fn text_of(comment: &str) -> String {
    comment.trim().lines().map(str::trim).collect::<Vec<_>>().join("\n")
}

/// A reference to a named schema.
pub(crate) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// The schema of one of several bodies.
pub(crate) fn one_of<const N: usize>(about: &str, bodies: [(Value, &str); N]) -> Value {
    let described = bodies.map(|(mut schema, about)| {
        schema["description"] = text_of(about).into();
        schema
    });
    json!({ "description": text_of(about), "oneOf": described.as_slice() })
}

/// Whether serde leaves a field of a request out.
pub(crate) fn is_absent<T: Describe>(field: &T) -> bool {
    field.is_absent()
}

/// The name of a field in JSON.
macro_rules! json_name {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $name:literal) => {
        $name
    };
}

/// Declares a body: `request` is read, and written without what it need not say; `report` is read, and
/// written whole; `answer` is written, and read by serde alone.
///
/// A field is called in JSON as in the code, or what follows `as`. What `check` notes holds several
/// fields against each other: each of them is an `Option` there, empty if it was not acceptable.
macro_rules! body {
    (request $($definition:tt)+) => {
        $crate::body::define! { (::serde::Serialize) (skip_serializing_if = "crate::body::is_absent") false $($definition)+ }
        $crate::body::readable! { $($definition)+ }
    };
    (report $($definition:tt)+) => {
        $crate::body::define! { (::serde::Serialize, ::serde::Deserialize) () true $($definition)+ }
        $crate::body::readable! { $($definition)+ }
    };
    (answer $($definition:tt)+) => {
        $crate::body::define! { (::serde::Serialize, ::serde::Deserialize) () true $($definition)+ }
    };
}

macro_rules! define {
    (
        $derives:tt $written:tt $is_written_whole:literal
        $(#[doc = $about:literal])+ $(#[derive($($derive:ident),+)])?
        pub struct $name:ident {
            $($(#[doc = $doc:literal])+ $(#[serde($($serde:tt)+)])? $field:ident $(as $json:literal)? : $type:ty,)+
        }
        $(check($fields:ident) $check:block)?
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, $($($derive),+)?)]
        #[derive $derives]
        pub struct $name {
            $($(#[doc = $doc])+ #[serde $written] $(#[serde($($serde)+)])? $(#[serde(rename = $json)])? pub $field: $type,)+
        }

        impl $crate::body::Describe for $name {
            fn schema() -> ::serde_json::Value {
                $crate::body::reference(stringify!($name))
            }

            fn collect(schemas: &mut $crate::body::Schemas) {
                if schemas.contains_key(stringify!($name)) {
                    return;
                }
                let mut object = $crate::body::Properties::new($is_written_whole);
                $(<$type as $crate::body::Describe>::describe(
                    &mut object,
                    $crate::body::json_name!($field $($json)?),
                    concat!($($doc, "\n"),+),
                    false $(|| stringify!($($serde)+).contains("skip_serializing_if"))?,
                );)+
                schemas.insert(stringify!($name).to_owned(), object.into_schema(concat!($($about, "\n"),+)));
                $(<$type as $crate::body::Describe>::collect(schemas);)+
            }
        }

        $crate::body::openapi! { $name }
    };
}

/// Declares an answer that is one of several bodies.
macro_rules! alternatives {
    (
        $(#[doc = $about:literal])+
        pub enum $name:ident {
            $($(#[doc = $doc:literal])+ $variant:ident($type:ty),)+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, ::serde::Serialize, ::serde::Deserialize)]
        #[serde(untagged)]
        pub enum $name {
            $($(#[doc = $doc])+ $variant($type),)+
        }

        impl $crate::body::Describe for $name {
            fn schema() -> ::serde_json::Value {
                $crate::body::reference(stringify!($name))
            }

            fn collect(schemas: &mut $crate::body::Schemas) {
                let schema = $crate::body::one_of(
                    concat!($($about, "\n"),+),
                    [$((<$type as $crate::body::Describe>::schema(), concat!($($doc, "\n"),+))),+],
                );
                schemas.insert(stringify!($name).to_owned(), schema);
                $(<$type as $crate::body::Describe>::collect(schemas);)+
            }
        }

        $crate::body::openapi! { $name }
    };
}

/// Lets utoipa refer to a described type by its name.
macro_rules! openapi {
    ($name:ident) => {
        impl ::utoipa::PartialSchema for $name {
            fn schema() -> ::utoipa::openapi::RefOr<::utoipa::openapi::schema::Schema> {
                $crate::body::openapi_schema::<Self>(stringify!($name))
            }
        }

        impl ::utoipa::ToSchema for $name {
            fn name() -> ::std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn schemas(found: &mut Vec<(String, ::utoipa::openapi::RefOr<::utoipa::openapi::schema::Schema>)>) {
                $crate::body::openapi_schemas::<Self>(found);
            }
        }
    };
}

macro_rules! readable {
    (
        $(#[doc = $about:literal])+ $(#[derive($($derive:ident),+)])?
        pub struct $name:ident {
            $($(#[doc = $doc:literal])+ $(#[serde($($serde:tt)+)])? $field:ident $(as $json:literal)? : $type:ty,)+
        }
        $(check($fields:ident) $check:block)?
    ) => {
        impl $crate::body::Body for $name {
            fn read(fields: &mut $crate::fields::Fields<'_>) -> Option<Self> {
                $(let $field: Option<$type> = <$type as $crate::body::Field>::take(fields, $crate::body::json_name!($field $($json)?));)+
                $({
                    let $fields = &mut *fields;
                    $check
                })?
                Some(Self { $($field: $field?),+ })
            }
        }

        impl $crate::body::Field for $name {
            fn read(value: $crate::json::Json, place: &mut $crate::fields::Place<'_>) -> Option<Self> {
                place.object(value)
            }
        }
    };
}

pub(crate) use {alternatives, body, define, json_name, openapi, readable};

type OpenApiSchema = utoipa::openapi::RefOr<utoipa::openapi::schema::Schema>;

/// The schema of a name, in utoipa's words. Both are the schema of a JSON document, so that it is
/// understood is not in doubt; a test holds it.
pub(crate) fn openapi_schema<T: Describe>(name: &str) -> OpenApiSchema {
    let mut schemas = Schemas::new();
    T::collect(&mut schemas);
    schemas.remove(name).and_then(|schema| serde_json::from_value(schema).ok()).unwrap_or_default()
}

/// Every schema that a type refers to, in utoipa's words.
pub(crate) fn openapi_schemas<T: Describe>(found: &mut Vec<(String, OpenApiSchema)>) {
    let mut schemas = Schemas::new();
    T::collect(&mut schemas);
    found.extend(schemas.into_iter().map(|(name, schema)| (name, serde_json::from_value(schema).unwrap_or_default())));
}
