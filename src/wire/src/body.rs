//! The `body!` macro, which declares how a body is read, written and described.

pub use crate::describe::{Describe, ORDER, Properties, Schemas};
pub(crate) use crate::describe::{choice, reference};
pub use crate::fields::{Body, Field};

/// The name of a field in JSON.
macro_rules! json_name {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $name:literal) => {
        $name
    };
}

/// Declares a body. A `request` is read strictly, and written without absent fields. A `report` is read strictly, and
/// written with all fields. A `response` is written with all fields, and read leniently by serde.
///
/// The JSON name of a field is its name in the code, or the one after `as`. `check` validates fields against each
/// other; there each is an `Option`, empty if it was invalid.
macro_rules! body {
    (request $($definition:tt)+) => {
        $crate::body::define! {
            (::serde::Serialize) (skip_serializing_if = "crate::body::Describe::is_absent") of_request $($definition)+
        }
        $crate::body::readable! { $($definition)+ }
    };
    (report $($definition:tt)+) => {
        $crate::body::define! { (::serde::Serialize, ::serde::Deserialize) () of_response $($definition)+ }
        $crate::body::readable! { $($definition)+ }
    };
    (response $($definition:tt)+) => {
        $crate::body::define! { (::serde::Serialize, ::serde::Deserialize) () of_response $($definition)+ }
    };
}

/// Declares the struct of a body, and its schema. The arguments are the serde traits to derive, a serde attribute for
/// every field, and the constructor of [`Properties`].
macro_rules! define {
    (
        $derives:tt $field_attribute:tt $properties:ident
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
            $($(#[doc = $doc])+
            #[serde $field_attribute] $(#[serde($($serde)+)])? $(#[serde(rename = $json)])? pub $field: $type,)+
        }

        impl $crate::body::Describe for $name {
            fn schema() -> ::serde_json::Value {
                $crate::body::reference(stringify!($name))
            }

            fn collect(schemas: &mut $crate::body::Schemas) {
                if schemas.contains_key(stringify!($name)) {
                    return;
                }
                let mut object = $crate::body::Properties::$properties();
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

/// Implements [`Describe`] for field types, with the JSON schema after each type.
macro_rules! described {
    ($($type:ty: $schema:tt)+) => {
        $(impl $crate::body::Describe for $type {
            fn schema() -> ::serde_json::Value {
                ::serde_json::json!($schema)
            }
        })+
    };
}

/// Implements [`Describe`] for field types whose JSON schema has a name, to which bodies refer.
macro_rules! named {
    ($($type:ty as $name:literal: $schema:tt)+) => {
        $(impl $crate::body::Describe for $type {
            fn schema() -> ::serde_json::Value {
                $crate::body::reference($name)
            }

            fn collect(schemas: &mut $crate::body::Schemas) {
                schemas.insert($name.to_owned(), ::serde_json::json!($schema));
            }
        })+
    };
}

/// Declares a response that is one of several bodies. Its schema is `oneOf` if constants distinguish the bodies, and
/// `anyOf` if only the names of their fields do: a generated client takes the first body that it can read.
macro_rules! alternatives {
    (
        $keyword:ident
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
                let bodies = [$(<$type as $crate::body::Describe>::schema()),+];
                let schema = $crate::body::choice(stringify!($keyword), concat!($($about, "\n"),+), &bodies);
                schemas.insert(stringify!($name).to_owned(), schema);
                $(<$type as $crate::body::Describe>::collect(schemas);)+
            }
        }

        $crate::body::openapi! { $name }
    };
}

/// Implements the traits of utoipa for a body, so that operations can refer to its schema by name.
macro_rules! openapi {
    ($name:ident) => {
        impl ::utoipa::PartialSchema for $name {
            fn schema() -> ::utoipa::openapi::RefOr<::utoipa::openapi::schema::Schema> {
                $crate::body::wrap_schema(&$crate::body::schemas::<Self>()[stringify!($name)])
            }
        }

        impl ::utoipa::ToSchema for $name {
            fn name() -> ::std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn schemas(collected: &mut Vec<(String, ::utoipa::openapi::RefOr<::utoipa::openapi::schema::Schema>)>) {
                collected.extend(
                    $crate::body::schemas::<Self>()
                        .iter()
                        .map(|(name, schema)| (name.clone(), $crate::body::wrap_schema(schema))),
                );
            }
        }
    };
}

/// Implements the strict reader of a body: every field is read, also after an error, so that all problems are reported.
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
                $(let $field: Option<$type> = <$type as $crate::body::Field>::take(fields,
                    $crate::body::json_name!($field $($json)?));)+
                $({
                    let $fields = &mut *fields;
                    $check
                })?
                Some(Self { $($field: $field?),+ })
            }
        }

        impl $crate::body::Field for $name {
            fn read(value: $crate::json::Json, reader: &mut $crate::fields::FieldReader<'_>) -> Option<Self> {
                reader.object(value)
            }
        }
    };
}

pub(crate) use {alternatives, body, define, described, json_name, named, openapi, readable};

/// Extension that holds a whole schema, because utoipa does not support every keyword of JSON Schema used here.
pub const SCHEMA_EXTENSION: &str = "x-schema";

/// Returns every named schema that a type refers to, itself included.
pub(crate) fn schemas<T: Describe>() -> Schemas {
    let mut schemas = Schemas::new();
    T::collect(&mut schemas);
    schemas
}

/// Wraps a schema in the extension [`SCHEMA_EXTENSION`]. The API crate unwraps it in the finished document.
pub(crate) fn wrap_schema(schema: &serde_json::Value) -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
    let extensions = utoipa::openapi::extensions::Extensions::from_iter([(SCHEMA_EXTENSION, schema.clone())]);
    utoipa::openapi::schema::ObjectBuilder::new().extensions(Some(extensions)).into()
}
