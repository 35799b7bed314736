//! Bodies of requests and of reports: the first byte chooses the reader.

use std::sync::OnceLock;

use sakshi_domain::checks::CHECKS;
use sakshi_domain::flow::report_kind::ReportKind;
use sakshi_domain::http_url::{HttpUrl, Schemes, WebhookUrl};
use sakshi_domain::invalid::Invalid;
use sakshi_domain::limits::REPORT_PROBLEMS_MAX;
use sakshi_domain::time::Timestamp;
use sakshi_wire::checks::CheckRequest;
use sakshi_wire::reports::FlowReport;
use sakshi_wire::{Body, Context, Describe, ReceivedObject, Schemas, UnreadableBody, UrlRules, read_report};
use serde::Serialize;
use serde_json::Value;

use crate::schema::assert_described;
use crate::{CANARY, choice};

/// Rules for URLs in bodies.
struct Rules;

impl UrlRules for Rules {
    fn webhook(&self, text: &str) -> Result<WebhookUrl, &'static str> {
        HttpUrl::parse(text, Schemes::HttpAndHttps)
    }

    fn page(&self, text: &str) -> Result<HttpUrl, &'static str> {
        HttpUrl::parse(text, Schemes::HttpsOnly)
    }
}

/// Returns the context in which bodies are read.
pub(crate) fn context() -> Context<'static> {
    Context { urls: &Rules, now: Timestamp::from_millis(1_800_000_000_000) }
}

/// Checks that errors about fields do not echo values, and that their number and length are bounded.
pub(crate) fn assert_echoes_nothing(invalid: &Invalid) {
    assert!((1..=REPORT_PROBLEMS_MAX).contains(&invalid.fields().len()));
    assert!(
        invalid
            .fields()
            .iter()
            .all(|problem| !problem.message.contains(CANARY) && problem.field.chars().count() <= 400)
    );
}

/// Reads a request's body as a `B`. Checks that it is the same after writing and reading, and that its schema describes
/// it.
fn read_request_as<B: Body + Describe + Serialize>(schemas: &'static OnceLock<Schemas>, bytes: &[u8]) {
    let sent = match ReceivedObject::read(bytes) {
        Ok(sent) => sent,
        Err(UnreadableBody::Json(error)) => return assert!(error.line >= 1),
        Err(UnreadableBody::Empty | UnreadableBody::NoObject) => return,
    };
    assert!(
        !format!("{sent:?}").contains(CANARY) || sent.0.iter().any(|(name, _)| name.contains(CANARY)),
        "the debug text shows a value"
    );
    match sent.into_request::<B>(context()) {
        Ok(body) => {
            let written = serde_json::to_vec(&body).expect("a body is written");
            assert_described::<B>(schemas, &serde_json::from_slice(&written).expect("what is written is JSON"));
            let reread: B = ReceivedObject::read(&written)
                .expect("a body is an object")
                .into_request(context())
                .expect("what is written is read");
            assert_eq!(serde_json::to_vec(&reread).expect("a body is written"), written);
        }
        Err(invalid) => assert_echoes_nothing(&invalid),
    }
}

/// Reads a report as a `B`, with the same checks.
fn read_report_as<B: Body + Describe + Serialize>(schemas: &'static OnceLock<Schemas>, bytes: &[u8]) {
    match read_report::<B>(bytes) {
        Ok(body) => {
            let written = serde_json::to_vec(&body).expect("a body is written");
            assert_described::<B>(
                schemas,
                &serde_json::from_slice::<Value>(&written).expect("what is written is JSON"),
            );
            let reread: B = read_report(&written).expect("what is written is read");
            assert_eq!(serde_json::to_vec(&reread).expect("a body is written"), written);
        }
        Err(invalid) => assert_echoes_nothing(&invalid),
    }
}

/// Reads the bytes of a body and checks the result.
type Reader = fn(&[u8]);

/// Defines a reader for each body.
macro_rules! readers {
    ($read:ident: $($body:ty),+ $(,)?) => {
        &[$({
            fn read_body(bytes: &[u8]) {
                static SCHEMAS: OnceLock<Schemas> = OnceLock::new();
                $read::<$body>(&SCHEMAS, bytes);
            }
            read_body
        }),+]
    };
}

const REQUESTS: &[Reader] = readers!(read_request_as:
    sakshi_wire::ovse::InitRequest,
    sakshi_wire::ovse::QrIntentRequest,
    sakshi_wire::events::CreateEventRequest,
    sakshi_wire::events::PatchEventRequest,
    sakshi_wire::esign::EsignRequest,
    sakshi_wire::esign::EsignStatusRequest,
    sakshi_wire::doclocker::DocLockerInitRequest,
    sakshi_wire::estamp::EStampInitRequest,
    sakshi_wire::wealth::WealthConsentRequest,
    sakshi_wire::webhook_urls::RegisterWebhookRequest,
    sakshi_wire::operator::operators::AddOperatorRequest,
    sakshi_wire::operator::intent_keys::UseIntentKeyRequest,
    sakshi_wire::operator::credits::MoveCreditsRequest,
    sakshi_wire::operator::tenancy::CreateClientRequest,
    sakshi_wire::operator::tenancy::PatchClientRequest,
    sakshi_wire::operator::tenancy::CreateAppRequest,
    sakshi_wire::operator::tenancy::PatchAppRequest,
    sakshi_wire::operator::keys::IssueKeyRequest,
    sakshi_wire::operator::keys::RotateKeyRequest,
    sakshi_wire::operator::erasure::EraseRequest,
    sakshi_wire::operator::reseal::ResealRequest,
    sakshi_wire::operator::transfer::ExportedClient,
);

const REPORTS: &[Reader] = readers!(read_report_as:
    sakshi_wire::esign::EsignOutcome,
    sakshi_wire::doclocker::DocLockerOutcome,
    sakshi_wire::estamp::EStampOutcome,
    sakshi_wire::wealth::WealthConsentChange,
    sakshi_wire::wealth::WealthDataNotice,
    sakshi_wire::wealth::WealthHistoricalNotice,
);

/// Splits off the letter that chooses the body; `A` is the first. Letters keep seeds readable.
fn letter_choice(data: &[u8], cases: usize) -> Option<(usize, &[u8])> {
    let (first, rest) = data.split_first()?;
    choice(&[first.wrapping_sub(b'A')], cases).map(|(index, _)| (index, rest))
}

/// Target: the letter chooses the request, whose body follows.
pub(crate) fn requests(data: &[u8]) {
    if let Some((index, body)) = letter_choice(data, REQUESTS.len()) {
        REQUESTS[index](body);
    }
}

/// Target: the letter chooses the kind of report, whose body follows.
pub(crate) fn reports(data: &[u8]) {
    let Some((index, body)) = letter_choice(data, REPORTS.len()) else { return };
    REPORTS[index](body);
    if let Err(invalid) = FlowReport::parse(ReportKind::ALL[index], body) {
        assert_echoes_nothing(&invalid);
    }
}

/// Target: the letter chooses the check of a number, whose request follows.
pub(crate) fn checks(data: &[u8]) {
    let Some((index, body)) = letter_choice(data, CHECKS.len()) else { return };
    let Ok(sent) = ReceivedObject::read(body) else { return };
    match CheckRequest::read(&CHECKS[index], sent, context()) {
        Ok(request) => {
            assert!(!format!("{request:?}").contains(CANARY), "the debug text shows a request");
            match request.query() {
                Ok(query) => {
                    assert_eq!(query.numbers.len(), query.check.numbers.len());
                    assert_eq!(query.consent.is_some(), query.check.needs_consent);
                    for (form, number) in query.check.numbers.iter().zip(&query.numbers) {
                        let reparsed = form.parse(number.as_str()).expect("a parsed number is valid");
                        assert_eq!(reparsed.as_str(), number.as_str());
                    }
                }
                Err(form) => assert!(!format!("{} {}", form.rule, form.example).contains(CANARY)),
            }
        }
        Err(invalid) => assert_echoes_nothing(&invalid),
    }
}
