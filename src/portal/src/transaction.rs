//! `GET /portal/transactions/{txnId}`: a transaction of the app from its code to its outcome, with the webhook's body
//! and the response to a poll. Shared details are hidden until they are requested, which the client's log records.

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
use sakshi_domain::ids::{EventId, TxnId};
use sakshi_domain::language::Language;
use sakshi_domain::transaction::{Outcome, Pending, VerifiedClaims};
use sakshi_domain::user::UserRole;
use sakshi_outbound::client::WebhookClient;
use sakshi_pages::qr_code::QrCode;
use sakshi_pages::text::Texts;
use sakshi_pages::time_left::TimeLeft;
use sakshi_service::transactions::{self, load_stored_intent, outcome_body};
use sakshi_service::verifications::reference;
use sakshi_service::{Service, ServiceError};
use sakshi_store::{CompletedRecord, TransactionSummary};
use sakshi_web::error::ApiError;
use sakshi_wire::ovse::OvsePending;
use serde_json::Value;

use super::curl::{Command, Curl};
use super::delivery::DeliveryLine;
use super::error::PortalError;
use super::form::SessionForm;
use super::json_body::JsonBody;
use super::layout::{Layout, Section, page, redirect};
use super::portal_user::PortalUser;
use super::story::{Step, steps};
use super::trial::claim_label;
use super::when::When;

/// The way in which the person opens the identity app.
#[derive(Debug)]
enum AppEntry {
    /// By the verify page: scanned with another device, or opened on this one.
    Page { code: String },
    /// By a link that a native app opens.
    Link { address: String, system: &'static str },
}

/// The stage of the transaction.
#[derive(Debug)]
enum Stage {
    /// Waiting for the person; `pending_body` is the response to a poll.
    Waiting {
        left: TimeLeft,
        until: When,
        entry: AppEntry,
        intent: String,
        /// Link to the sandbox's identity app.
        sandbox: Option<String>,
        pending_body: JsonBody,
    },
    /// Labels and names of the shared claims. Values and body are included only on request.
    Verified {
        names: Vec<(String, String)>,
        values: Option<Vec<SharedClaim>>,
        body: Option<JsonBody>,
    },
    NotVerified {
        reason: &'static str,
        code: Option<String>,
        body: Option<JsonBody>,
    },
    Expired,
}

/// A shared claim.
#[derive(Debug)]
pub(super) struct SharedClaim {
    pub(super) name: String,
    pub(super) value: String,
    /// Label for people.
    pub(super) label: String,
    /// True if the value is a JPEG in Base64.
    pub(super) is_photo: bool,
}

impl SharedClaim {
    /// Returns the claims in the order of the specification; claims that it does not name come last.
    pub(super) fn list(claims: &VerifiedClaims) -> Vec<Self> {
        let index = |name: &str| Claim::ALL.into_iter().position(|claim| credential_name(claim) == name);
        let shared_claim = |(name, value): (&String, &Value)| {
            let value = unquote(value);
            let label = index(name).map_or(name.clone(), |index| claim_label(Claim::ALL[index]).to_owned());
            // The first bytes of every JPEG, in Base64.
            Self { name: name.clone(), label, is_photo: value.starts_with("/9j/"), value }
        };
        let mut shared_claims: Vec<_> = claims.as_map().iter().map(shared_claim).collect();
        shared_claims.sort_by_key(|shared| index(&shared.name).unwrap_or(usize::MAX));
        shared_claims
    }
}

/// Returns a value without the quotes of JSON.
pub(super) fn unquote(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A lost webhook: the reason, and the command that fetches the result.
struct LostWebhook {
    words: String,
    command: Command,
}

/// The page of a transaction.
#[derive(Template)]
#[template(path = "transaction.html")]
struct Page {
    layout: Layout,
    id: TxnId,
    /// The client's own reference.
    reference: Option<String>,
    steps: Vec<Step>,
    claims: String,
    channel: &'static str,
    language: &'static str,
    /// URL of the webhook; only its origin for a person who may not see the URLs of webhooks.
    webhook: Option<String>,
    /// The webhook, if it was not delivered.
    lost: Option<LostWebhook>,
    /// True if the webhook may be resent, in the sandbox only.
    can_resend: bool,
    /// Outcome of a resend that was just requested.
    resend_outcome: Option<DeliveryOutcome>,
    /// Event of the transaction, and its name.
    event: Option<(EventId, String)>,
    stage: Stage,
    commands: Vec<Command>,
}

impl Page {
    fn is_waiting(&self) -> bool {
        matches!(self.stage, Stage::Waiting { .. })
    }
}

/// Shows the state of the transaction, without the shared details.
///
/// # Errors
/// 404 unless the app has such a transaction.
pub(crate) async fn show(
    user: PortalUser,
    request: HttpRequest,
    path: Path<String>,
    service: Data<Service>,
) -> Result<HttpResponse, PortalError> {
    let resend_outcome = request.query_string().strip_prefix("again=").and_then(|outcome| outcome.parse().ok());
    render_page(&user, &path, &service, Details::Hidden, resend_outcome).await
}

/// Shows the transaction with the shared details, after an entry in the client's log.
///
/// # Errors
/// 404 unless the app has such a transaction; any error of the log. No details are shown without a log entry.
pub(crate) async fn show_details(
    submitted: SessionForm,
    path: Path<String>,
    service: Data<Service>,
) -> Result<HttpResponse, PortalError> {
    let SessionForm { user, .. } = submitted;
    let id = find_own(&user, &path, &service).await?.opened.id;
    user.log(&service, Action::DetailsShown, vec![Subject::Transaction(id)]).await?;
    render_page(&user, &path, &service, Details::Shown, None).await
}

/// Redirects a `GET` of the details to the transaction, because only a form shows them.
pub(crate) async fn leave_details(_: PortalUser, path: Path<String>) -> HttpResponse {
    let id = path.parse::<TxnId>().map(|id| format!("/portal/transactions/{id}"));
    redirect(id.as_deref().unwrap_or("/portal/verifications"))
}

/// Visibility of the shared details.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Details {
    Hidden,
    Shown,
}

/// Finds the transaction of a path, if it belongs to the app.
async fn find_own(user: &PortalUser, path: &str, service: &Service) -> Result<TransactionSummary, PortalError> {
    let id: TxnId = path.parse().map_err(|_| ServiceError::TransactionNotFound)?;
    let summary = service.store.summarise_transactions(vec![id]).await?.pop().flatten();
    let own = summary.filter(|summary| summary.opened.app == user.caller.app.app_id);
    Ok(own.ok_or(ServiceError::TransactionNotFound)?)
}

async fn render_page(
    user: &PortalUser,
    path: &str,
    service: &Service,
    details: Details,
    resend_outcome: Option<DeliveryOutcome>,
) -> Result<HttpResponse, PortalError> {
    let summary = find_own(user, path, service).await?;
    let id = summary.opened.id;
    let stage = match service.transactions.get(id).await? {
        View::Pending(pending) => waiting_stage(service, &pending).await?,
        View::Expired(_) => Stage::Expired,
        View::Completed(record) => completed_stage(service, *record, user, details)?,
        View::Unknown => return Err(ApiError::Service(ServiceError::TransactionNotFound).into()),
    };
    let opened = &summary.opened;
    let event = match opened.event {
        Some(id) => service.store.load_event(id).await?.map(|event| (id, event.terms.name.as_str().to_owned())),
        None => None,
    };
    let claims: Vec<&str> = opened.terms.claims.iter().map(claim_label).collect();
    let curl = Curl(&service.authority.public_base);
    let mut commands = vec![curl.qr_intent(id), curl.result(id)];
    // URLs may hold secrets, so the page of webhooks needs this role, too.
    let sees_urls = user.caller.role >= UserRole::Organise;
    if event.is_none() && sees_urls {
        commands.insert(0, curl.init(&opened.terms));
    }
    let webhook = opened.terms.webhook_url.as_ref();
    let lost = summary.delivery.as_ref().map(DeliveryLine::describe).filter(|line| line.is_lost);
    let template = Page {
        layout: user.layout(Section::Verifications, service),
        id,
        reference: reference(opened).map(str::to_owned),
        steps: steps(&summary),
        claims: claims.join("\u{a0}· "),
        channel: opened.terms.channel.name(),
        language: opened.terms.language.name(),
        webhook: webhook.map(|url| if sees_urls { url.as_str().to_owned() } else { url.origin() }),
        lost: lost.map(|line| LostWebhook { words: format!("The attempt: {}.", line.words), command: curl.result(id) }),
        can_resend: summary.delivery.is_some() && summary.verified_at.is_some() && service.authority.sandbox,
        resend_outcome,
        event,
        stage,
        commands,
    };
    Ok(page(StatusCode::OK, &template))
}

/// Returns the stage of a completed transaction.
fn completed_stage(
    service: &Service,
    record: CompletedRecord,
    user: &PortalUser,
    details: Details,
) -> Result<Stage, ApiError> {
    let (completed, body) = outcome_body(service, record, &user.caller.app)?;
    let body = || String::from_utf8(body).map(JsonBody::new).map_err(ApiError::internal);
    Ok(match completed.outcome {
        Outcome::Verified(claims) => {
            let shared = SharedClaim::list(&claims);
            let names = shared.iter().map(|claim| (claim.label.clone(), claim.name.clone())).collect();
            let is_shown = details == Details::Shown;
            Stage::Verified {
                names,
                values: is_shown.then_some(shared),
                body: if is_shown { Some(body()?) } else { None },
            }
        }
        Outcome::NotVerified(failure) => {
            let reason = Texts::for_language(Language::ENGLISH).reason(&failure);
            Stage::NotVerified { reason, code: failure.code, body: Some(body()?) }
        }
    })
}

/// Resends the webhook of a transaction, in the sandbox.
///
/// # Errors
/// 404 outside the sandbox, and unless the app has such a transaction with a webhook.
pub(crate) async fn resend_webhook(
    submitted: SessionForm,
    path: Path<String>,
    service: Data<Service>,
    webhooks: Option<Data<Arc<WebhookClient>>>,
) -> Result<HttpResponse, PortalError> {
    let id: TxnId = path.parse().map_err(|_| ServiceError::TransactionNotFound)?;
    let webhooks = webhooks.filter(|_| service.authority.sandbox).ok_or(ServiceError::NotFound("path"))?;
    let attempt = transactions::send_again(&service, &submitted.user.caller.app, id, &webhooks).await?;
    submitted.user.log(&service, Action::WebhookSentAgain, vec![Subject::Transaction(id)]).await?;
    let query = attempt.map(|attempt| format!("?again={}", attempt.outcome.as_str())).unwrap_or_default();
    Ok(redirect(&format!("/portal/transactions/{id}{query}")))
}

/// Returns the stage of a pending transaction, with its intent.
async fn waiting_stage(service: &Service, pending: &Pending) -> Result<Stage, ApiError> {
    let now = service.clock.now();
    let authority = &service.authority;
    let stored =
        load_stored_intent(service, pending.id).await.and_then(|parts| authority.rebuild_intent(pending, &parts, now));
    let intent = match stored {
        Some(jwt) => jwt,
        None => authority.sign_intent(pending, now).await?.jwt,
    };
    let entry = match pending.terms.channel {
        Channel::Web | Channel::Qr => {
            let code = QrCode::for_screen(&authority.request_url(pending.id)).map_err(ApiError::internal)?;
            AppEntry::Page { code: code.inline() }
        }
        Channel::Android(_) => AppEntry::Link { address: authority.links.android_native(&intent), system: "Android" },
        Channel::Ios => AppEntry::Link { address: authority.links.ios(&intent), system: "iOS" },
    };
    let pending_body = serde_json::to_string(&OvsePending::new(pending.id)).map_err(ApiError::internal)?;
    Ok(Stage::Waiting {
        left: TimeLeft::until_expiry(pending, now),
        until: When::time(pending.expires_at),
        sandbox: authority.sandbox.then(|| format!("/sandbox/app?from=portal&req={intent}")),
        entry,
        intent,
        pending_body: JsonBody::new(pending_body),
    })
}
