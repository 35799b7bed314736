//! Every body that crosses a wire, defined once: requests, responses, reports of connectors, webhooks. Each subject of
//! the API has a module.
//!
//! A body is a struct declared by `body!`. The types of its fields implement reading ([`Field`]) and description in the
//! OpenAPI document ([`Describe`]). serde writes bodies, and reads responses leniently. [`json`] is the strict JSON
//! reader of the whole workspace.

mod body;
mod consent;
mod describe;
mod fields;
pub mod json;
mod language_name;
mod page_url;
mod polls;
mod spelling;
mod text;
mod values;

pub mod checks;
pub mod credits;
pub mod csv;
pub mod doclocker;
pub mod esign;
pub mod estamp;
pub mod events;
pub mod guests;
pub mod operator;
pub mod ovse;
pub mod refusal;
pub mod reports;
pub mod status;
pub mod transactions;
pub mod wealth;
pub mod webhook_urls;

pub use body::{Body, Describe, Field, ORDER, Properties, SCHEMA_EXTENSION, Schemas};
pub use consent::{Consent, OptionalConsent};
pub use fields::{Context, FieldReader, Fields, ReceivedObject, UnreadableBody, UrlRules, read_report};
pub use language_name::LanguageName;
pub use page_url::PageUrl;
pub use polls::merge_polls;
pub use spelling::Spellings;
pub use text::{Always, Bounded, Change, Flag, Label, List, OptionalList, PageAddress, Reference, Whole, Words};
pub use values::ISO_8601;

#[cfg(test)]
mod tests;
