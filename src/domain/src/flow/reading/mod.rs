//! Reads an upstream's JSON so that every problem is found at once and named by its path.
//!
//! Serde's derived readers stop at the first wrong type; a connector's author wants the whole
//! list. [`json`] bounds the tree, [`fields`] takes it apart.

pub(crate) mod fields;
pub(crate) mod json;

pub(crate) use fields::{Fields, FromJson, read};
pub(crate) use json::Json;
