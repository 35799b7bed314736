//! The pages of the app, with its errors as pages.

use std::fmt;

use actix_web::http::StatusCode;
use actix_web::web::{Data, Form as FormBody, Query};
use actix_web::{HttpResponse, ResponseError};
use askama::Template;
use sakshi_domain::ids::TxnId;
use sakshi_domain::language::Language;
use serde::Deserialize;
use url::Url;

use super::action::Action;
use super::answer::{CallbackFormat, Decision, Reply, carry_out};
use super::error::AppError;
use super::intent::Intent;
use super::script_api::DEFAULT_RESIDENT;
use super::state::SandboxApp;
use super::status::StatusService;
use super::wording;
use crate::page::render_page;
use crate::residents::Resident;

/// The query parameters of the app's page. An intent has another name in each kind of link.
#[derive(Deserialize)]
pub(super) struct IntentQuery {
    /// The name in links for iOS.
    req: Option<String>,
    /// The name in links for Android.
    request: Option<String>,
    /// The name in QR payloads, and in the form where the tester enters an intent.
    value: Option<String>,
    #[serde(default)]
    from: Origin,
}

/// The page from which the tester came, and to which the tester returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Origin {
    /// The developer portal.
    Portal,
    /// The transaction's public verify page.
    #[default]
    #[serde(other)]
    Page,
}

impl Origin {
    /// Returns the URL of a transaction on this page. The URL of the portal is relative, because the tester is signed
    /// in on this host.
    fn transaction_url(self, txn: TxnId, public_base: &Url) -> String {
        match self {
            Self::Portal => format!("../portal/transactions/{txn}"),
            Self::Page => format!("{}/v/{txn}", public_base.as_str().trim_end_matches('/')),
        }
    }
}

/// The form of the consent screen.
#[derive(Deserialize)]
pub(super) struct DecisionForm {
    intent: String,
    resident: String,
    action: String,
    /// The format of the callback.
    #[serde(default)]
    form: CallbackFormat,
    /// A check box: present when ticked.
    key_binding: Option<String>,
    #[serde(default)]
    status: StatusService,
    #[serde(default)]
    from: Origin,
}

/// The page where the tester enters an intent.
#[derive(Template)]
#[template(path = "ask.html")]
struct EnterIntentPage;

/// A resident on the consent screen.
struct ResidentView {
    resident: &'static Resident,
    /// True if the resident is selected when the page opens.
    chosen: bool,
    /// The labels of the requested claims that the resident lacks.
    missing: Vec<&'static str>,
}

#[derive(Template)]
#[template(path = "consent.html")]
struct ConsentPage<'a> {
    intent: &'a Intent,
    channel: &'static str,
    language: &'static str,
    /// The labels of the requested claims.
    claims: Vec<&'static str>,
    residents: Vec<ResidentView>,
    face_scan: bool,
    expired: bool,
    from: Origin,
}

#[derive(Template)]
#[template(path = "outcome.html")]
struct OutcomePage<'a> {
    reply: Option<&'a Reply>,
    /// True if the user shared the details.
    approved: bool,
    /// True if the service accepted the callback.
    accepted: bool,
    intent: &'a Intent,
    from: Origin,
    /// The URL to which the tester returns.
    back: String,
}

#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemPage {
    message: String,
}

/// Shows the consent screen of an intent, or a form to enter one.
pub(super) async fn show(app: Data<SandboxApp>, query: Query<IntentQuery>) -> Result<HttpResponse, PageError> {
    let IntentQuery { req, request, value, from } = query.into_inner();
    let Some(text) = req.or(request).or(value).filter(|text| !text.trim().is_empty()) else {
        return Ok(render_page(StatusCode::OK, &EnterIntentPage));
    };
    let intent = Intent::read(&text, &app.public_base)?;
    let now = app.clock.now();
    let requested = intent.requested_claims();
    let residents = Resident::all().iter().map(|resident| ResidentView {
        resident,
        chosen: resident.id == DEFAULT_RESIDENT,
        missing: requested.iter().filter(|claim| !resident.has(*claim, now)).map(wording::claim_label).collect(),
    });
    let consent = ConsentPage {
        channel: wording::channel_label(&intent.claims.ch),
        language: parse_language(&intent.claims.lang).name(),
        claims: requested.iter().map(wording::claim_label).collect(),
        residents: residents.collect(),
        face_scan: intent.claims.m != 0,
        expired: intent.is_expired(now),
        intent: &intent,
        from,
    };
    Ok(render_page(StatusCode::OK, &consent))
}

/// Parses the language of an intent: a number or an ISO code.
fn parse_language(code: &str) -> Language {
    Language::from_tag(code).or_else(|| Language::parse(code).ok()).unwrap_or_default()
}

/// Carries out the tester's decision and shows the service's reply.
pub(super) async fn decide(app: Data<SandboxApp>, form: FormBody<DecisionForm>) -> Result<HttpResponse, PageError> {
    let form = form.into_inner();
    let action = Action::from_name(&form.action).ok_or(AppError::UnknownAction)?;
    let intent = Intent::read(&form.intent, &app.public_base)?;
    let resident = Resident::find(&form.resident).ok_or(AppError::UnknownResident)?;
    let decision =
        Decision { resident, action, format: form.form, key_binding: form.key_binding.is_some(), status: form.status };
    let reply = carry_out(&app, &intent, &decision).await?;
    let outcome = OutcomePage {
        approved: action == Action::Approve,
        accepted: reply.as_ref().is_some_and(|reply| (200..300).contains(&reply.status)),
        reply: reply.as_ref(),
        from: form.from,
        back: form.from.transaction_url(intent.txn, &app.public_base),
        intent: &intent,
    };
    Ok(render_page(StatusCode::OK, &outcome))
}

/// An error that is shown as a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageError(pub(super) AppError);

impl From<AppError> for PageError {
    fn from(error: AppError) -> Self {
        Self(error)
    }
}

impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl ResponseError for PageError {
    fn status_code(&self) -> StatusCode {
        self.0.status_code()
    }

    fn error_response(&self) -> HttpResponse {
        render_page(self.status_code(), &ProblemPage { message: self.to_string() })
    }
}
