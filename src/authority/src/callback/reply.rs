//! The reply to a callback, in the format of the callback.

use quick_xml::escape::escape;
use sakshi_domain::limits::CALLBACK_TXN_CHARS_MAX;
use serde::Serialize;

use super::message::CallbackForm;

/// A reply in JSON.
#[derive(Serialize)]
struct JsonReply<'a> {
    txn: &'a str,
    #[serde(rename = "responseCode")]
    code: u16,
    #[serde(rename = "responseMsg")]
    message: &'a str,
}

/// Builds the content type and body of a reply. `status` is also the HTTP status. The untrusted `txn` is cut to 64
/// characters; characters that XML does not allow are removed.
#[must_use]
pub fn build_reply(form: CallbackForm, txn: &str, status: u16, message: &str) -> (&'static str, Vec<u8>) {
    let txn: String = txn
        .chars()
        .filter(|c| !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}'))
        .take(CALLBACK_TXN_CHARS_MAX)
        .collect();
    match form {
        CallbackForm::Xml => {
            let (txn, message) = (escape(&*txn), escape(message));
            let body = format!(
                "<Response><TxnID>{txn}</TxnID><ResponseCode>{status}</ResponseCode><ResponseMsg>{message}</ResponseMsg></Response>"
            );
            ("application/xml", body.into_bytes())
        }
        CallbackForm::Json => {
            let body = JsonReply { txn: &txn, code: status, message };
            ("application/json", serde_json::to_vec(&body).unwrap_or_default())
        }
    }
}
