//! `GET /portal/transactions/{txnId}`: a transaction of the app from its code to its outcome, with
//! what the webhook carries and what a poll is answered.

use std::sync::Arc;

use actix_web::http::StatusCode;
use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use sakshi_actors::View;
use sakshi_authority::claims::credential_name;
use sakshi_domain::channel::Channel;
use sakshi_domain::claims::Claim;
use sakshi_domain::client_log::{Action, Subject};
use sakshi_domain::delivery::DeliveryOutcome;
use sakshi_domain::ids::TxnId;
use sakshi_domain::language::Language;
use sakshi_domain::transaction::{Outcome, Pending, VerifiedClaims};
use sakshi_outbound::client::WebhookClient;
use sakshi_pages::qr_code::QrCode;
use sakshi_pages::text::Texts;
use sakshi_pages::time_left::TimeLeft;
use sakshi_service::transactions::{self, kept_intent, outcome_body};
use sakshi_service::{Service, ServiceError};
use sakshi_web::error::ApiError;
use sakshi_wire::ovse::OvsePending;
use serde_json::Value;

use super::curl::{Command, Curl};
use super::delivery::DeliveryLine;
use super::error::PortalError;
use super::form::Submitted;
use super::json_body::JsonBody;
use super::layout::{Layout, Section, page, redirect};
use super::portal_user::PortalUser;
use super::trial::asked;
use super::when::{When, lasted};

/// How the person gets to the identity app.
#[derive(Debug)]
enum Way {
    /// By the verify page, which is a code for another device and a link on this one.
    Page { code: String },
    /// By a link that a native app fires.
    Link { address: String, system: &'static str },
}

/// How the transaction stands.
#[derive(Debug)]
enum Stage {
    Waiting { left: TimeLeft, until: When, way: Way, intent: String, sandbox: Option<String>, stub: JsonBody },
    Verified { shared: Vec<Shared>, at: When, body: JsonBody },
    NotVerified { reason: &'static str, code: Option<String>, at: When, body: JsonBody },
    Expired,
}

/// A claim that was shared.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) name: String,
    pub(super) value: String,
    /// What it is, for people.
    pub(super) label: String,
    /// Whether the value is a JPEG in Base64.
    pub(super) is_photo: bool,
}

impl Shared {
    pub(super) fn all(claims: &VerifiedClaims) -> Vec<Self> {
        let one = |(name, shared): (&String, &Value)| {
            let value = plain(shared);
            // The first bytes of every JPEG, in Base64.
            let label =
                Claim::ALL.into_iter().find(|claim| credential_name(*claim) == name).map_or(name.clone(), |claim| asked(claim).to_owned());
            Self { name: name.clone(), label, is_photo: value.starts_with("/9j/"), value }
        };
        claims.as_map().iter().map(one).collect()
    }
}

/// A value without the quotes of JSON.
pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[derive(Template)]
#[template(path = "transaction.html")]
struct Page {
    layout: Layout,
    id: TxnId,
    /// The client's own.
    reference: Option<String>,
    opened_at: When,
    /// The time of the person's answer, and the duration.
    answered: Option<(When, String)>,
    asked: String,
    channel: &'static str,
    language: &'static str,
    webhook: Option<String>,
    /// What became of it, once there is an outcome.
    delivery: Option<DeliveryLine>,
    /// True if it may be sent again, which is so in the sandbox alone.
    can_repeat: bool,
    /// The outcome of a repetition just now.
    repeated: Option<DeliveryOutcome>,
    event: Option<String>,
    stage: Stage,
    commands: Vec<Command>,
}

impl Page {
    fn is_waiting(&self) -> bool {
        matches!(self.stage, Stage::Waiting { .. })
    }
}

/// Shows how the transaction stands.
///
/// # Errors
/// 404 unless the app has such a transaction.
pub(crate) async fn show(
    user: PortalUser,
    request: HttpRequest,
    path: Path<String>,
    service: Data<Service>,
) -> Result<HttpResponse, PortalError> {
    let id: TxnId = path.parse().map_err(|_| ServiceError::TransactionNotFound)?;
    let app = &user.caller.app;
    let mut answered_at = None;
    let (opened, stage) = match service.transactions.get(id).await? {
        View::Pending(pending) if pending.app == app.app_id => (Pending::clone(&pending), waiting(&service, &pending).await?),
        View::Expired(opened) if opened.app == app.app_id => (Pending::clone(&opened), Stage::Expired),
        View::Completed(record) if record.opened.app == app.app_id => {
            let (completed, body) = outcome_body(&service, *record, app)?;
            let body = JsonBody::new(String::from_utf8(body).map_err(ApiError::internal)?);
            answered_at = Some(completed.verified_at);
            let at = When::minute(completed.verified_at);
            let stage = match completed.outcome {
                Outcome::Verified(claims) => Stage::Verified { shared: Shared::all(&claims), at, body },
                Outcome::NotVerified(failure) => {
                    let reason = Texts::of(Language::ENGLISH).reason(&failure);
                    Stage::NotVerified { reason, code: failure.code, at, body }
                }
            };
            (completed.opened, stage)
        }
        _ => return Err(ApiError::Service(ServiceError::TransactionNotFound).into()),
    };
    let asked: Vec<&str> = opened.terms.claims.iter().map(asked).collect();
    let curl = Curl(&service.authority.public_base);
    let mut commands = vec![curl.qr_intent(id), curl.result(id)];
    if opened.event.is_none() {
        commands.insert(0, curl.init(&opened.terms));
    }
    let delivery = match stage {
        Stage::Verified { .. } | Stage::NotVerified { .. } => service.store.load_delivery(id.into()).await?,
        Stage::Waiting { .. } | Stage::Expired => None,
    };
    let template = Page {
        layout: user.layout(Section::Verifications, &service),
        id,
        reference: opened.terms.extras.as_ref().and_then(|extras| extras.client_reference_id.clone()),
        opened_at: When::second(opened.opened_at),
        answered: answered_at.map(|at| (When::second(at), lasted(at.since(opened.opened_at)))),
        asked: asked.join("\u{a0}· "),
        channel: opened.terms.channel.name(),
        language: opened.terms.language.name(),
        webhook: opened.terms.webhook_url.as_ref().map(|url| url.as_str().to_owned()),
        can_repeat: delivery.is_some() && service.authority.sandbox,
        delivery: delivery.as_ref().map(DeliveryLine::of),
        repeated: request.query_string().strip_prefix("again=").and_then(|outcome| outcome.parse().ok()),
        event: opened.event.map(|event| event.to_string()),
        stage,
        commands,
    };
    Ok(page(StatusCode::OK, &template))
}

/// Sends the webhook of a transaction again, in the sandbox.
///
/// # Errors
/// 404 outside the sandbox, and unless the app has such a transaction with a webhook.
pub(crate) async fn send_again(
    submitted: Submitted,
    path: Path<String>,
    service: Data<Service>,
    webhooks: Option<Data<Arc<WebhookClient>>>,
) -> Result<HttpResponse, PortalError> {
    let id: TxnId = path.parse().map_err(|_| ServiceError::TransactionNotFound)?;
    let webhooks = webhooks.filter(|_| service.authority.sandbox).ok_or(ServiceError::NotFound("path"))?;
    let attempt = transactions::send_again(&service, &submitted.user.caller.app, id, &webhooks).await?;
    submitted.user.log(&service, Action::WebhookSentAgain, vec![Subject::Transaction(id)]).await?;
    let again = attempt.map(|attempt| format!("?again={}", attempt.outcome.as_str())).unwrap_or_default();
    Ok(redirect(&format!("/portal/transactions/{id}{again}")))
}

async fn waiting(service: &Service, pending: &Pending) -> Result<Stage, ApiError> {
    let now = service.clock.now();
    let authority = &service.authority;
    let again = kept_intent(service, pending.id).await.and_then(|kept| authority.intent_again(pending, &kept, now));
    let intent = match again {
        Some(jwt) => jwt,
        None => authority.intent(pending, now).await?.jwt,
    };
    let way = match pending.terms.channel {
        Channel::Web | Channel::Qr => {
            let code = QrCode::for_screen(&authority.request_url(pending.id)).map_err(ApiError::internal)?;
            Way::Page { code: code.inline() }
        }
        Channel::Android(_) => Way::Link { address: authority.links.android_native(&intent), system: "Android" },
        Channel::Ios => Way::Link { address: authority.links.ios(&intent), system: "iOS" },
    };
    let stub = serde_json::to_string(&OvsePending::of(pending.id)).map_err(ApiError::internal)?;
    Ok(Stage::Waiting {
        left: TimeLeft::of(pending, now),
        until: When::time(pending.expires_at),
        sandbox: authority.sandbox.then(|| format!("/sandbox/app?from=portal&req={intent}")),
        way,
        intent,
        stub: JsonBody::new(stub),
    })
}
