//! The identity app's answer and the service's reply, in XML or JSON (protocol, section 5).
//!
//! Anyone can post a callback, so the readers are strict and bounded and never panic. [`crate::sdjwt`]
//! verifies the credential.

use sakshi_domain::limits::{CALLBACK_BYTES_MAX, CALLBACK_TXN_CHARS_MAX};

mod json;
mod message;
mod reply;
#[cfg(test)]
mod tests;
mod verdict;
mod xml;

pub use message::{CallbackBody, CallbackError, CallbackFault, CallbackForm, CallbackMessage};
use message::{detect_form, sniff};
pub use reply::build_reply;
pub use verdict::{CODE_MEANINGS, Verdict, failure_answer, judge_failure};

/// Reads a callback. Without a content type, or with a generic one (`text/plain`,
/// `application/octet-stream`), the first character decides the format.
///
/// # Errors
/// [`CallbackError`] with the fault and the format of the reply.
pub fn parse(content_type: Option<&str>, body: &[u8]) -> Result<CallbackMessage, CallbackError> {
    let form = detect_form(content_type, body);
    let refuse = |fault| CallbackError { form: form.unwrap_or_else(|| sniff(body)), fault };
    if body.len() > CALLBACK_BYTES_MAX {
        return Err(refuse(CallbackFault::TooLarge));
    }
    let fields = match form {
        None => return Err(refuse(CallbackFault::MediaType)),
        Some(CallbackForm::Xml) => xml::read(body).map_err(refuse)?,
        Some(CallbackForm::Json) => json::read(body).map_err(refuse)?,
    };
    let txn = fields.txn.filter(|txn| txn.chars().count() <= CALLBACK_TXN_CHARS_MAX);
    let txn = txn.ok_or_else(|| refuse(CallbackFault::NoTransaction))?;
    let body = match (fields.credential, fields.code) {
        (Some(credential), None) => CallbackBody::Credential(credential),
        (None, Some(code)) => CallbackBody::Failure { code, message: fields.message.unwrap_or_default() },
        (None, None) => return Err(refuse(CallbackFault::NothingReported)),
        (Some(_), Some(_)) => return Err(refuse(CallbackFault::BothReported)),
    };
    Ok(CallbackMessage { form: form.unwrap_or(CallbackForm::Json), txn, body })
}
