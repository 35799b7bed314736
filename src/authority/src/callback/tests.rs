//! Callbacks in both formats, valid and invalid, and the effect of each code.

use proptest::prelude::*;
use sakshi_domain::ids::{ClientId, TxnId};
use sakshi_domain::limits::CALLBACK_BYTES_MAX;
use sakshi_domain::transaction::Failure;
use serde_json::{Value, json};

use super::*;

const XML: Option<&str> = Some("application/xml; charset=utf-8");
const JSON: Option<&str> = Some("application/json");

fn fault_of(content_type: Option<&str>, body: &str) -> CallbackFault {
    parse(content_type, body.as_bytes()).unwrap_err().fault
}

fn credential(text: &str) -> CallbackBody {
    CallbackBody::Credential(text.into())
}

fn failure(code: &str, message: &str) -> CallbackBody {
    CallbackBody::Failure { code: code.into(), message: message.into() }
}

#[test]
fn xml_callbacks_of_the_protocol_are_read() {
    let success = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Request>\n <TxnID> t-1 </TxnID>\n \
        <Credential>a.b.c~d~</Credential>\n</Request>\n";
    for content_type in [XML, Some("TEXT/XML"), Some("application/soap+xml"), Some("text/plain"), None] {
        let message = parse(content_type, success.as_bytes()).unwrap();
        assert_eq!(
            message,
            CallbackMessage { form: CallbackForm::Xml, txn: "t-1".into(), body: credential("a.b.c~d~") }
        );
    }
    let commented =
        "<!-- a --><Request><!-- b --><TxnID>t-1</TxnID><Credential>x</Credential><!-- c --></Request><!-- d -->";
    assert_eq!(parse(XML, commented.as_bytes()).unwrap().body, credential("x"));
    let declined = "<Request><TxnID>t-1</TxnID><ErrorCode>301</ErrorCode><ErrorMsg>User &lt;R&#101;ject&gt; \
        <![CDATA[& left]]></ErrorMsg></Request>";
    assert_eq!(parse(XML, declined.as_bytes()).unwrap().body, failure("301", "User <Reject> & left"));
}

#[test]
fn json_callbacks_of_the_protocol_are_read() {
    let success =
        br#"{"txn":"t-1","response":"a.b.c~d~","errCode":null,"errInfo":"","dateTime":"2026-01-01T00:00:00"}"#;
    for content_type in [JSON, Some("application/vnd.x+json"), Some("application/octet-stream"), None] {
        let message = parse(content_type, success).unwrap();
        assert_eq!(
            message,
            CallbackMessage { form: CallbackForm::Json, txn: "t-1".into(), body: credential("a.b.c~d~") }
        );
    }
    for code in ["303", "\"303\""] {
        let body = format!(r#"{{"txn":"t-1","response":null,"errCode":{code},"errInfo":"gone"}}"#);
        assert_eq!(parse(JSON, body.as_bytes()).unwrap().body, failure("303", "gone"));
    }
    assert_eq!(parse(JSON, br#"{"txn":"t-1","errCode":303}"#).unwrap().body, failure("303", ""));
    let spaced = parse(JSON, br#"{"txn":" t-1\n","response":"\ta.b.c~d~ "}"#).unwrap();
    assert_eq!((spaced.txn.as_str(), spaced.body), ("t-1", credential("a.b.c~d~")));
}

#[test]
fn document_types_and_entities_are_refused() {
    let nested_entities = "<!DOCTYPE r [<!ENTITY a \"aaaa\"><!ENTITY \
        b \"&a;&a;\">]><Request><TxnID>&b;</TxnID><Credential>x</Credential></Request>";
    let external_type = "<!DOCTYPE r SYSTEM \"file:///etc/passwd\"><Request/>";
    let unknown_entity = "<Request><TxnID>&xxe;</TxnID><Credential>x</Credential></Request>";
    let type_inside_root = "<Request><!DOCTYPE r><TxnID>t</TxnID></Request>";
    for body in [nested_entities, external_type, unknown_entity, type_inside_root] {
        assert_eq!(fault_of(XML, body), CallbackFault::Entities, "{body}");
    }
}

#[test]
fn repeated_fields_are_refused_in_both_formats() {
    let twice = "<Request><TxnID>a</TxnID><TxnID>b</TxnID><Credential>x</Credential></Request>";
    let prefixed = "<Request><TxnID>a</TxnID><n:TxnID xmlns:n=\"u\">b</n:TxnID><Credential>x</Credential></Request>";
    let empty = "<Request><TxnID>a</TxnID><Credential/><Credential>x</Credential></Request>";
    for body in [twice, prefixed, empty] {
        assert_eq!(fault_of(XML, body), CallbackFault::Repeated, "{body}");
    }
    assert_eq!(fault_of(JSON, r#"{"txn":"a","txn":"b","response":"x"}"#), CallbackFault::Repeated);
}

#[test]
fn a_callback_needs_either_a_credential_or_an_error_code() {
    assert_eq!(
        fault_of(XML, "<Request><TxnID>t</TxnID><Credential>x</Credential><ErrorCode>301</ErrorCode></Request>"),
        CallbackFault::BothReported
    );
    assert_eq!(fault_of(JSON, r#"{"txn":"t","response":"x","errCode":301}"#), CallbackFault::BothReported);
    assert_eq!(
        fault_of(XML, "<Request><TxnID>t</TxnID><Credential> </Credential></Request>"),
        CallbackFault::NothingReported
    );
    assert_eq!(fault_of(JSON, r#"{"txn":"t","errInfo":"only words"}"#), CallbackFault::NothingReported);
}

#[test]
fn the_transaction_id_has_1_to_64_characters() {
    assert_eq!(fault_of(XML, "<Request><Credential>x</Credential></Request>"), CallbackFault::NoTransaction);
    assert_eq!(fault_of(JSON, r#"{"txn":" ","response":"x"}"#), CallbackFault::NoTransaction);
    assert_eq!(
        fault_of(JSON, &json!({"txn": "t".repeat(65), "response": "x"}).to_string()),
        CallbackFault::NoTransaction
    );
}

#[test]
fn documents_with_too_many_or_nested_elements_are_refused() {
    let deep = format!("<Request>{}</Request>", "<a>".repeat(100_000));
    assert_eq!(fault_of(XML, &deep), CallbackFault::Structure);
    let many_elements: String = (0..40).map(|number| format!("<e{number}/>")).collect();
    assert_eq!(fault_of(XML, &format!("<Request>{many_elements}</Request>")), CallbackFault::Structure);
    assert_eq!(fault_of(JSON, &format!("{{\"x\":{}", "[".repeat(100_000))), CallbackFault::Structure);
}

#[test]
fn the_error_for_a_malformed_body_has_its_format() {
    let comment_in_value = "<Request><TxnID>t</TxnID><Credential>a<!-- x -->b</Credential></Request>";
    let unclosed = "<Request><TxnID>t</TxnID>";
    let crossed_tags = "<Request><TxnID>t</Request></TxnID>";
    let two_roots = "<Request><TxnID>t</TxnID><Credential>x</Credential></Request><Request/>";
    let other_root = "<Response><TxnID>t</TxnID><Credential>x</Credential></Response>";
    let utf16 =
        "<?xml version=\"1.0\" encoding=\"UTF-16\"?><Request><TxnID>t</TxnID><Credential>x</Credential></Request>";
    let valid = "<Request><TxnID>t</TxnID><Credential>x</Credential></Request>";
    let (text_before, text_after) = (format!("words{valid}"), format!("{valid}words"));
    let late_declaration = format!("<!-- a --><?xml version=\"1.0\"?>{valid}");
    for body in [
        comment_in_value,
        unclosed,
        crossed_tags,
        two_roots,
        other_root,
        utf16,
        &text_before,
        &text_after,
        &late_declaration,
        "",
        "<",
        "words",
        "<Request>words</Request>",
    ] {
        assert_eq!(
            parse(XML, body.as_bytes()),
            Err(CallbackError { form: CallbackForm::Xml, fault: CallbackFault::Malformed }),
            "{body}"
        );
    }
    for body in [
        "",
        "[]",
        "{",
        "null",
        r#"{"txn":{},"response":"x"}"#,
        r#"{"txn":"t","response":["x"]}"#,
        r#"{"txn":"t","errCode":3.5}"#,
    ] {
        assert_eq!(
            parse(JSON, body.as_bytes()),
            Err(CallbackError { form: CallbackForm::Json, fault: CallbackFault::Malformed }),
            "{body}"
        );
    }
    assert_eq!(parse(XML, b"<Request><TxnID>\xff</TxnID></Request>").unwrap_err().fault, CallbackFault::Malformed);
}

#[test]
fn other_content_types_and_oversized_bodies_are_refused() {
    let refused = parse(Some("multipart/form-data"), b"<Request/>").unwrap_err();
    assert_eq!(refused, CallbackError { form: CallbackForm::Xml, fault: CallbackFault::MediaType });
    assert_eq!(fault_of(JSON, &" ".repeat(CALLBACK_BYTES_MAX)), CallbackFault::Malformed);
    assert_eq!(fault_of(JSON, &" ".repeat(CALLBACK_BYTES_MAX + 1)), CallbackFault::TooLarge);
}

#[test]
fn a_reply_has_the_format_of_the_callback_and_escapes_its_content() {
    let (content_type, body) = build_reply(CallbackForm::Xml, "<t>\u{0}&", 200, "Success");
    assert_eq!(content_type, "application/xml");
    assert_eq!(
        String::from_utf8(body).unwrap(),
        "<Response><TxnID>&lt;t&gt;&amp;</TxnID><ResponseCode>200</ResponseCode><ResponseMsg>Success</ResponseMsg></Response>"
    );
    let (content_type, body) = build_reply(CallbackForm::Json, "t\"1", 409, "Already completed");
    assert_eq!(content_type, "application/json");
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body, json!({"txn": "t\"1", "responseCode": 409, "responseMsg": "Already completed"}));
}

#[test]
fn every_code_ends_the_transaction_except_308() {
    for code in ["301", "302", "303", "304", "305", "306", "307", "999", "E-1"] {
        let Verdict::Terminal(failure) = judge_failure(code, "") else { panic!("{code} is terminal") };
        assert_eq!(failure.code.as_deref(), Some(code));
        assert!(!failure.message.is_empty());
    }
    assert_eq!(judge_failure("308", "callback retry"), Verdict::RetryExpected);
    assert_eq!(judge_failure(" 308 ", ""), Verdict::RetryExpected);
    assert_eq!(judge_failure("301", "User Reject"), Verdict::Terminal(Failure::new("User Reject", Some("301"))));
    assert_eq!(
        judge_failure("302", " "),
        Verdict::Terminal(Failure::new("The face liveness check failed", Some("302")))
    );
}

#[test]
fn the_digest_of_a_failure_depends_on_transaction_code_and_reason() {
    let new_txn = || TxnId::generate(ClientId::generate().partition(), 0);
    let txn = new_txn();
    let digest = |txn, message, code| failure_answer(txn, Failure::new(message, Some(code))).digest();
    assert_eq!(digest(txn, "User Reject", "301"), digest(txn, "User Reject", "301"));
    for other in
        [digest(txn, "User Reject", "302"), digest(txn, "Other", "301"), digest(new_txn(), "User Reject", "301")]
    {
        assert_ne!(digest(txn, "User Reject", "301"), other);
    }
    assert_ne!(digest(txn, "1x", "30"), digest(txn, "x", "301"), "code and reason are separated");
}

#[test]
fn debug_output_hides_the_credential() {
    let message = parse(JSON, br#"{"txn":"t-1","response":"secret~"}"#).unwrap();
    assert!(!format!("{message:?}").contains("secret"));
}

proptest! {
    #[test]
    fn no_body_makes_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..400),
        xml_like in "(<|>|/|&|;|#|!|\\[|\\]|-|Request|TxnID|Credential|CDATA|x| |\"|=|\\?){0,60}") {
        for content_type in [XML, JSON, None] {
            let _ = parse(content_type, &bytes);
            let _ = parse(content_type, xml_like.as_bytes());
        }
    }

    #[test]
    fn codes_and_messages_survive_both_formats(code in "[!-~]{1,30}",
        message in "[^\\p{C}\\s]([^\\p{C}]{0,80}[^\\p{C}\\s])?") {
        let escaped = |text: &str| quick_xml::escape::escape(text).into_owned();
        let xml = format!("<Request><TxnID>t</TxnID><ErrorCode>{}</ErrorCode><ErrorMsg>{}</ErrorMsg></Request>",
            escaped(&code), escaped(&message));
        let json = json!({"txn": "t", "errCode": &code, "errInfo": &message}).to_string();
        prop_assert_eq!(parse(XML, xml.as_bytes()).unwrap().body, failure(&code, &message));
        prop_assert_eq!(parse(JSON, json.as_bytes()).unwrap().body, failure(&code, &message));
    }
}

#[test]
fn the_reply_to_an_unread_callback_follows_content_type_then_accept() {
    for (content_type, accept, form) in [
        (Some("application/xml"), Some("application/json"), CallbackForm::Xml),
        (Some("text/xml; charset=utf-8"), None, CallbackForm::Xml),
        (Some("application/json"), Some("application/xml"), CallbackForm::Json),
        (None, Some("text/html, Application/XML;q=0.9"), CallbackForm::Xml),
        (Some("application/octet-stream"), Some("*/*"), CallbackForm::Json),
        (Some("image/png"), None, CallbackForm::Json),
        (None, None, CallbackForm::Json),
    ] {
        assert_eq!(CallbackForm::for_unread_body(content_type, accept), form, "{content_type:?} {accept:?}");
    }
}
