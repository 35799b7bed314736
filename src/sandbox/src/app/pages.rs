//! The pages of the app. What a page shows is decided in [`super::intent`] and [`super::answer`].

use actix_web::http::StatusCode;
use actix_web::web::{Data, Form as FormBody, Query};
use actix_web::{HttpResponse, ResponseError as _};
use askama::Template;
use sakshi_domain::ids::TxnId;
use sakshi_domain::language::Language;
use serde::Deserialize;
use url::Url;

use super::SandboxApp;
use super::answer::{Action, Decision, Form, Reply, carry_out};
use super::error::{AppError, PageError};
use super::intent::Intent;
use super::scripts::DEFAULT_RESIDENT;
use super::wording;
use crate::page::page;
use crate::residents::Resident;

/// The names under which deep links and people hand an intent over.
#[derive(Deserialize)]
pub(super) struct Given {
    req: Option<String>,
    request: Option<String>,
    value: Option<String>,
    #[serde(default)]
    from: Origin,
}

/// Where the tester came from, and goes back to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Origin {
    /// The developer portal.
    Portal,
    #[default]
    #[serde(other)]
    Page,
}

impl Origin {
    /// The address of a transaction there. The portal's is on the host that the tester is on, where
    /// they have signed in.
    fn address(self, txn: TxnId, public_base: &Url) -> String {
        match self {
            Self::Portal => format!("../portal/transactions/{txn}"),
            Self::Page => format!("{}/v/{txn}", public_base.as_str().trim_end_matches('/')),
        }
    }
}

#[derive(Deserialize)]
pub(super) struct DecisionForm {
    intent: String,
    resident: String,
    action: String,
    #[serde(default)]
    form: Form,
    /// A check box: present when ticked.
    key_binding: Option<String>,
    #[serde(default)]
    from: Origin,
}

#[derive(Template)]
#[template(path = "ask.html")]
struct AskPage;

struct ResidentView {
    resident: &'static Resident,
    chosen: bool,
    missing: Vec<&'static str>,
}

#[derive(Template)]
#[template(path = "consent.html")]
struct ConsentPage<'a> {
    intent: &'a Intent,
    channel: &'static str,
    language: &'static str,
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
    approved: bool,
    accepted: bool,
    intent: &'a Intent,
    from: Origin,
    back: String,
}

#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemPage {
    message: String,
}

/// Shows the consent screen of an intent, or asks for one.
pub(super) async fn show(app: Data<SandboxApp>, given: Query<Given>) -> Result<HttpResponse, PageError> {
    let given = given.into_inner();
    let from = given.from;
    let Some(text) = given.req.or(given.request).or(given.value).filter(|text| !text.trim().is_empty()) else {
        return Ok(page(StatusCode::OK, &AskPage));
    };
    let intent = Intent::read(&text, &app.public_base)?;
    let now = app.clock.now();
    let requested = intent.requested();
    let residents = Resident::all().iter().map(|resident| ResidentView {
        resident,
        chosen: resident.id == DEFAULT_RESIDENT,
        missing: requested.iter().filter(|claim| !resident.has(*claim, now)).map(wording::claim).collect(),
    });
    let consent = ConsentPage {
        channel: wording::channel(&intent.says.ch),
        language: Language::parse(&intent.says.lang).unwrap_or_default().name(),
        claims: requested.iter().map(wording::claim).collect(),
        residents: residents.collect(),
        face_scan: intent.says.m != 0,
        expired: intent.is_expired(now),
        intent: &intent,
        from,
    };
    Ok(page(StatusCode::OK, &consent))
}

/// Carries out what the tester decided and shows the service's reply.
pub(super) async fn decide(app: Data<SandboxApp>, form: FormBody<DecisionForm>) -> Result<HttpResponse, PageError> {
    let form = form.into_inner();
    let action = Action::named(&form.action)?;
    let intent = Intent::read(&form.intent, &app.public_base)?;
    let resident = Resident::find(&form.resident).ok_or(AppError::UnknownResident)?;
    let decision = Decision { resident, action, form: form.form, key_binding: form.key_binding.is_some() };
    let reply = carry_out(&app, &intent, &decision).await?;
    let outcome = OutcomePage {
        approved: action == Action::Approve,
        accepted: reply.as_ref().is_some_and(|reply| (200..300).contains(&reply.status)),
        reply: reply.as_ref(),
        from: form.from,
        back: form.from.address(intent.txn, &app.public_base),
        intent: &intent,
    };
    Ok(page(StatusCode::OK, &outcome))
}

/// An error as a page.
pub(super) fn problem(error: AppError) -> HttpResponse {
    page(error.status_code(), &ProblemPage { message: error.to_string() })
}
