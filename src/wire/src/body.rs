//! `body!`, which declares a body: how it is read, written and described.

pub use crate::describe::{Describe, Properties, Schemas};
pub(crate) use crate::describe::{one_of, reference};
pub use crate::fields::{Body, Field};

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
