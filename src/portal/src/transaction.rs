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
use super::form::Submitted;
use super::json_body::JsonBody;
use super::layout::{Layout, Section, page, redirect};
use super::portal_user::PortalUser;
use super::story::{Step, steps};
use super::trial::asked;
use super::when::When;

/// The person's way to the identity app.
#[derive(Debug)]
enum Way {
    /// The verify page, which is a code for another device and a link on this one.
    Page { code: String },
    /// A link that a native app fires.
    Link { address: String, system: &'static str },
}

/// The stage of the transaction.
#[derive(Debug)]
enum Stage {
    Waiting {
        left: TimeLeft,
        until: When,
        way: Way,
        intent: String,
        sandbox: Option<String>,
        stub: JsonBody,
    },
    /// Labels and names of the shared claims. Values and the body are included only on request.
    Verified {
        names: Vec<(String, String)>,
        values: Option<Vec<Shared>>,
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
pub(super) struct Shared {
    pub(super) name: String,
    pub(super) value: String,
    /// Label for people.
    pub(super) label: String,
    /// True if the value is a JPEG in Base64.
    pub(super) is_photo: bool,
}

impl Shared {
    /// Returns the claims in the order of the specification, unnamed ones last.
    pub(super) fn all(claims: &VerifiedClaims) -> Vec<Self> {
        let known = |name: &str| Claim::ALL.into_iter().position(|claim| credential_name(claim) == name);
        let one = |(name, shared): (&String, &Value)| {
            let value = plain(shared);
            let label = known(name).map_or(name.clone(), |place| asked(Claim::ALL[place]).to_owned());
            // The first bytes of every JPEG, in Base64.
            Self { name: name.clone(), label, is_photo: value.starts_with("/9j/"), value }
        };
        let mut all: Vec<_> = claims.as_map().iter().map(one).collect();
        all.sort_by_key(|shared| known(&shared.name).unwrap_or(usize::MAX));
        all
    }
}

/// Returns a value without the quotes of JSON.
pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A lost webhook: the reason, and the command that fetches the result.
struct Lost {
    words: String,
    command: Command,
}

#[derive(Template)]
#[template(path = "transaction.html")]
struct Page {
    layout: Layout,
    id: TxnId,
    /// The client's own reference.
    reference: Option<String>,
    steps: Vec<Step>,
    asked: String,
    channel: &'static str,
    language: &'static str,
    webhook: Option<String>,
    lost: Option<Lost>,
    /// True if it may be resent, in the sandbox only.
    can_repeat: bool,
    /// Outcome of a resend just now.
    repeated: Option<DeliveryOutcome>,
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
    let repeated = request.query_string().strip_prefix("again=").and_then(|outcome| outcome.parse().ok());
    shown(&user, &path, &service, Details::Hidden, repeated).await
}

/// Shows the same with the details, after an entry in the client's log.
///
/// # Errors
/// 404 unless the app has such a transaction. Nothing is shown without its log entry.
pub(crate) async fn show_details(
    submitted: Submitted,
    path: Path<String>,
    service: Data<Service>,
) -> Result<HttpResponse, PortalError> {
    let Submitted { user, .. } = submitted;
    let id = own(&user, &path, &service).await?.opened.id;
    user.log(&service, Action::DetailsShown, vec![Subject::Transaction(id)]).await?;
    shown(&user, &path, &service, Details::Shown, None).await
}

/// Redirects a `GET` of the details to the transaction: they are shown only in response to a form.
pub(crate) async fn leave_details(_: PortalUser, path: Path<String>) -> HttpResponse {
    let id = path.parse::<TxnId>().map(|id| format!("/portal/transactions/{id}"));
    redirect(id.as_deref().unwrap_or("/portal/verifications"))
}

/// The details on the page: shown or hidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Details {
    Hidden,
    Shown,
}

/// Returns the transaction of a path, if it is the app's own.
async fn own(user: &PortalUser, path: &str, service: &Service) -> Result<TransactionSummary, PortalError> {
    let id: TxnId = path.parse().map_err(|_| ServiceError::TransactionNotFound)?;
    let found = service.store.summarise_transactions(vec![id]).await?.pop().flatten();
    let own = found.filter(|found| found.opened.app == user.caller.app.app_id);
    Ok(own.ok_or(ServiceError::TransactionNotFound)?)
}

async fn shown(
    user: &PortalUser,
    path: &str,
    service: &Service,
    details: Details,
    repeated: Option<DeliveryOutcome>,
) -> Result<HttpResponse, PortalError> {
    let found = own(user, path, service).await?;
    let id = found.opened.id;
    let stage = match service.transactions.get(id).await? {
        View::Pending(pending) => waiting(service, &pending).await?,
        View::Expired(_) => Stage::Expired,
        View::Completed(record) => ended(service, *record, user, details)?,
        View::Unknown => return Err(ApiError::Service(ServiceError::TransactionNotFound).into()),
    };
    let opened = &found.opened;
    let event = match opened.event {
        Some(id) => service.store.load_event(id).await?.map(|event| (id, event.terms.name.as_str().to_owned())),
        None => None,
    };
    let asked: Vec<&str> = opened.terms.claims.iter().map(asked).collect();
    let curl = Curl(&service.authority.public_base);
    let mut commands = vec![curl.qr_intent(id), curl.result(id)];
    if event.is_none() {
        commands.insert(0, curl.init(&opened.terms));
    }
    let lost = found.delivery.as_ref().map(DeliveryLine::of).filter(|line| line.is_lost);
    let template = Page {
        layout: user.layout(Section::Verifications, service),
        id,
        reference: reference(opened).map(str::to_owned),
        steps: steps(&found),
        asked: asked.join("\u{a0}· "),
        channel: opened.terms.channel.name(),
        language: opened.terms.language.name(),
        webhook: opened.terms.webhook_url.as_ref().map(|url| url.as_str().to_owned()),
        lost: lost.map(|line| Lost { words: format!("The attempt: {}.", line.words), command: curl.result(id) }),
        can_repeat: found.delivery.is_some() && found.verified_at.is_some() && service.authority.sandbox,
        repeated,
        event,
        stage,
        commands,
    };
    Ok(page(StatusCode::OK, &template))
}

/// Returns the stage of an answered transaction.
fn ended(service: &Service, record: CompletedRecord, user: &PortalUser, details: Details) -> Result<Stage, ApiError> {
    let (completed, body) = outcome_body(service, record, &user.caller.app)?;
    let body = || String::from_utf8(body).map(JsonBody::new).map_err(ApiError::internal);
    Ok(match completed.outcome {
        Outcome::Verified(claims) => {
            let shared = Shared::all(&claims);
            let names = shared.iter().map(|claim| (claim.label.clone(), claim.name.clone())).collect();
            let is_shown = details == Details::Shown;
            Stage::Verified {
                names,
                values: is_shown.then_some(shared),
                body: if is_shown { Some(body()?) } else { None },
            }
        }
        Outcome::NotVerified(failure) => {
            let reason = Texts::of(Language::ENGLISH).reason(&failure);
            Stage::NotVerified { reason, code: failure.code, body: Some(body()?) }
        }
    })
}

/// Resends the webhook of a transaction, in the sandbox.
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
    let again =
        load_stored_intent(service, pending.id).await.and_then(|kept| authority.rebuild_intent(pending, &kept, now));
    let intent = match again {
        Some(jwt) => jwt,
        None => authority.sign_intent(pending, now).await?.jwt,
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
