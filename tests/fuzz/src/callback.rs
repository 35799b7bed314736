//! Callbacks of the identity app, in XML and JSON, and the replies to them.

use quick_xml::escape::unescape;
use sakshi_authority::callback::{
    self, CallbackBody, CallbackForm, CallbackMessage, Verdict, failure_answer, judge_failure,
};
use sakshi_domain::ids::TxnId;
use sakshi_domain::limits::{CALLBACK_TXN_CHARS_MAX, REASON_CHARS_MAX, REASON_CODE_CHARS_MAX};
use serde_json::{Value, json};

use crate::{CANARY, choice};

/// Target: a callback in XML.
pub(crate) fn xml(data: &[u8]) {
    check_callback("application/xml", CallbackForm::Xml, data);
}

/// Target: a callback in JSON.
pub(crate) fn json(data: &[u8]) {
    check_callback("application/json", CallbackForm::Json, data);
}

/// Parses a callback and checks the message or the error.
fn check_callback(media_type: &str, form: CallbackForm, data: &[u8]) {
    match callback::parse(Some(media_type), data) {
        Ok(message) => {
            assert_eq!(message.form, form);
            assert_within_bounds(&message);
            assert_survives_both_formats(&message);
        }
        Err(error) => {
            assert_eq!(error.form, form, "a reply has another format");
            assert!(!format!("{error} {error:?}").contains(CANARY));
        }
    }
    // Without a media type the first character decides, with the same result.
    if let (Ok(declared), Ok(detected)) = (callback::parse(Some(media_type), data), callback::parse(None, data)) {
        assert_eq!(declared, detected);
    }
}

/// Checks the lengths in a message, and that its debug text hides the credential.
fn assert_within_bounds(message: &CallbackMessage) {
    let CallbackMessage { txn, body, .. } = message;
    assert!((1..=CALLBACK_TXN_CHARS_MAX).contains(&txn.chars().count()) && txn.trim() == txn);
    let debug_text = format!("{body:?}");
    match body {
        CallbackBody::Credential(credential) => {
            assert!(!credential.is_empty() && credential.trim() == credential);
            assert!(!debug_text.contains(CANARY), "the debug text shows the credential");
        }
        CallbackBody::Failure { code, message } => {
            assert!(!code.is_empty());
            if let Verdict::Terminal(failure) = judge_failure(code, message) {
                assert!(failure.message.chars().count() <= REASON_CHARS_MAX);
                assert!(failure.code.as_ref().is_none_or(|code| code.chars().count() <= REASON_CODE_CHARS_MAX));
                let id = TxnId::from_bytes([7; 16]);
                let digest = |failure| match failure_answer(id, failure) {
                    sakshi_domain::transaction::Answer::Failure { digest, .. } => digest,
                    _ => panic!("a failure became something else"),
                };
                assert!(digest(failure.clone()) == digest(failure));
            }
        }
    }
}

/// Checks that a message is the same after writing and reading it in both formats.
fn assert_survives_both_formats(message: &CallbackMessage) {
    let CallbackMessage { txn, body, .. } = message;
    let mut object = json!({ "txn": txn });
    let mut written = format!("<Request><TxnID>{}</TxnID>", escape(txn));
    match body {
        CallbackBody::Credential(credential) => {
            object["response"] = credential.as_str().into();
            written += &format!("<Credential>{}</Credential>", escape(credential));
        }
        CallbackBody::Failure { code, message } => {
            (object["errCode"], object["errInfo"]) = (code.as_str().into(), message.as_str().into());
            written += &format!("<ErrorCode>{}</ErrorCode><ErrorMsg>{}</ErrorMsg>", escape(code), escape(message));
        }
    }
    written += "</Request>";
    let again = callback::parse(Some("application/json"), object.to_string().as_bytes()).expect("it was read before");
    assert_eq!((&again.txn, &again.body), (txn, body));
    // XML cannot express NUL.
    if !written.contains('\0') {
        let again = callback::parse(Some("text/xml"), written.as_bytes()).expect("it was read before");
        assert_eq!((&again.txn, &again.body), (txn, body));
    }
}

/// Escapes text for an element; characters that XML would normalise become numbers.
fn escape(text: &str) -> String {
    let needs_number = |c: char| (c.is_control() && c != '\0') || matches!(c, '&' | '<' | '>' | '\u{2028}');
    text.chars().map(|c| if needs_number(c) { format!("&#{};", u32::from(c)) } else { c.to_string() }).collect()
}

/// Target: writes a reply. The first byte chooses format and status; a line names the transaction, the rest is the
/// message.
pub(crate) fn reply(data: &[u8]) {
    let Some((form, rest)) = choice(data, 2) else { return };
    let text = String::from_utf8_lossy(rest);
    let (txn, message) = text.split_once('\n').unwrap_or((&text, ""));
    let id_text: String =
        txn.chars().filter(|c| !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}')).take(64).collect();
    if form == 0 {
        let (kind, body) = callback::build_reply(CallbackForm::Json, txn, 400, message);
        assert_eq!(kind, "application/json");
        let body: Value = serde_json::from_slice(&body).expect("a reply is JSON");
        assert_eq!(body, json!({ "txn": id_text, "responseCode": 400, "responseMsg": message }));
    } else {
        let (kind, body) = callback::build_reply(CallbackForm::Xml, txn, 400, message);
        assert_eq!(kind, "application/xml");
        let body = String::from_utf8(body).expect("a reply is UTF-8");
        let rest = body.strip_prefix("<Response><TxnID>").expect("the root");
        let (id, rest) = rest.split_once("</TxnID><ResponseCode>400</ResponseCode><ResponseMsg>").expect("the id");
        let message_read = rest.strip_suffix("</ResponseMsg></Response>").expect("the message");
        assert!(!id.contains('<') && !message_read.contains('<'), "a text ends its element early");
        assert_eq!((unescape(id).unwrap().as_ref(), unescape(message_read).unwrap().as_ref()), (&*id_text, message));
    }
}
