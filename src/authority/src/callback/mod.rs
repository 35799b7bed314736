//! The identity app's answer and our reply to it, in XML or JSON (protocol, section 5).
//!
//! Anyone may post here, so the readers are strict and bounded and never panic. Whether the
//! credential inside is to be believed is decided by [`crate::sdjwt`]; whether the transaction
//! still waits, by the domain.

mod json;
mod message;
mod reply;
#[cfg(test)]
mod tests;
mod verdict;
mod xml;

pub use message::{CallbackBody, CallbackError, CallbackFault, CallbackForm, CallbackMessage, parse};
pub use reply::reply;
pub use verdict::{Verdict, failure_answer, verdict};
