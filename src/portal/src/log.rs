//! `GET /portal/log`: the actions of the client's people and keys, and of operators, newest first.

use std::collections::HashMap;

use actix_web::http::StatusCode;
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use sakshi_domain::client_log::{Action, Actor, LogEntry, LogFilter, Subject};
use sakshi_domain::limits::CLIENT_LOG_MONTHS;
use sakshi_service::Service;
use sakshi_service::client_log::list;
use sakshi_store::LogPosition;
use sakshi_web::query::Query;
use url::form_urlencoded;

use super::error::PortalError;
use super::layout::{Layout, Section, page};
use super::portal_user::PortalUser;
use super::team::list::user_names;
use super::when::When;

const ENTRIES_PER_PAGE: u32 = 50;

const fn action_label(action: Action) -> &'static str {
    match action {
        Action::SignedIn => "Signed in",
        Action::RecoveryCodeUsed => "Signed in with a recovery code",
        Action::SignedOut => "Signed out",
        Action::SessionEnded => "Ended sessions",
        Action::AppSwitched => "Switched the application",
        Action::UserInvited => "Invited a user",
        Action::UserReset => "Made a new link for a user",
        Action::InviteAccepted => "Accepted the invitation",
        Action::RoleChanged => "Changed a role",
        Action::UserDisabled => "Disabled a user",
        Action::UserEnabled => "Enabled a user",
        Action::UserRemoved => "Removed a user",
        Action::KeyIssued => "Issued an API key",
        Action::KeyRotated => "Rotated an API key",
        Action::KeyRevoked => "Revoked an API key",
        Action::KeySignInAllowed => "Allowed sign-in with API keys",
        Action::KeySignInRefused => "Switched off sign-in with API keys",
        Action::VerificationOpened => "Opened a verification",
        Action::DetailsShown => "Looked at the details of a transaction",
        Action::CheckMade => "Made a check",
        Action::EventCreated => "Created an event",
        Action::EventChanged => "Changed an event",
        Action::DoorsChanged => "Changed the doors of an event",
        Action::GuestsListed => "Downloaded a guest list",
        Action::WebhookUrlChanged => "Changed a webhook URL",
        Action::WebhookSentAgain => "Sent a webhook again",
    }
}

/// The object of an action.
struct Object {
    /// A name, or an id.
    words: String,
    path: Option<String>,
}

impl Object {
    fn new(subject: &Subject, names: &HashMap<String, String>) -> Self {
        match subject {
            Subject::Transaction(id) => {
                Self { words: id.to_string(), path: Some(format!("/portal/transactions/{id}")) }
            }
            Subject::Event(id) => Self { words: id.to_string(), path: Some(format!("/portal/events/{id}")) },
            Subject::App(id) => Self { words: id.to_string(), path: None },
            Subject::Key(id) => Self { words: id.to_string(), path: None },
            Subject::User(id) => {
                Self { words: names.get(id.as_str()).cloned().unwrap_or_else(|| id.to_string()), path: None }
            }
        }
    }
}

struct Row {
    at: When,
    actor: String,
    action: &'static str,
    objects: Vec<Object>,
    request_id: String,
}

impl Row {
    fn new(entry: &LogEntry, names: &HashMap<String, String>) -> Self {
        let actor = match &entry.actor {
            Actor::User { name, .. } => name.as_str().to_owned(),
            Actor::Key { id } => format!("API key {id}"),
            Actor::Operator { .. } => "Operator".to_owned(),
            Actor::Link => "Holder of a link".to_owned(),
        };
        Self {
            at: When::second(entry.at),
            actor,
            action: action_label(entry.action),
            objects: entry.subjects.iter().map(|subject| Object::new(subject, names)).collect(),
            request_id: entry.request_id.as_str().to_owned(),
        }
    }
}

/// A choice of a filter.
struct Choice {
    value: String,
    label: String,
    is_chosen: bool,
}

/// The page of the log.
#[derive(Template)]
#[template(path = "log.html")]
struct Page {
    layout: Layout,
    actions: Vec<Choice>,
    actors: Vec<Choice>,
    rows: Vec<Row>,
    is_filtered: bool,
    /// True for the page with the newest entries.
    is_first: bool,
    /// Address of the page with older entries.
    older: Option<String>,
    /// Days for which entries are stored.
    days: i64,
}

/// Shows a page of the log.
///
/// # Errors
/// 303 to the sign-in page without a session; 503 while the store is unavailable.
pub(crate) async fn show(
    user: PortalUser,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, PortalError> {
    let mut query = Query::parse(request.query_string());
    let mut text = |name| query.text(name).unwrap_or_default();
    let (action, actor, before) = (text("action"), text("who"), parse_place(&text("before")));
    let filter =
        LogFilter { action: action.parse().ok(), actor: Some(actor.clone()).filter(|actor| !actor.is_empty()) };
    let is_filtered = filter != LogFilter::default();
    let entries = list(&service, user.caller.client.clone(), filter, before, ENTRIES_PER_PAGE).await?;
    let names = user_names(&user, &service).await?;
    let older = entries.next.map(|LogPosition { month, number }| {
        let pairs = [("action", action.as_str()), ("who", &actor), ("before", &format!("{month}.{number}"))];
        format!("/portal/log?{}", form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish())
    });
    let choice = |value: &str, label: &str, chosen: &str| Choice {
        value: value.to_owned(),
        label: label.to_owned(),
        is_chosen: value == chosen,
    };
    let mut actors: Vec<_> = names.iter().map(|(id, name)| choice(id, name, &actor)).collect();
    actors.sort_by(|actor, other| actor.label.cmp(&other.label));
    let keys = service.store.list_keys(user.caller.client.clone()).await?;
    actors.extend(keys.iter().map(|key| choice(key.key_id.as_str(), &format!("API key {}", key.key_id), &actor)));
    actors.push(choice("operator", "Operators", &actor));
    let template = Page {
        layout: user.layout(Section::Log, &service),
        actions: Action::ALL.iter().map(|kind| choice(kind.as_str(), action_label(*kind), &action)).collect(),
        actors,
        rows: entries.entries.iter().map(|entry| Row::new(entry, &names)).collect(),
        is_filtered,
        is_first: before.is_none(),
        older,
        days: CLIENT_LOG_MONTHS * 30,
    };
    Ok(page(StatusCode::OK, &template))
}

/// Parses the place in the log before which a page begins: `MONTH.NUMBER`. Malformed text gives `None`, the newest
/// entries.
fn parse_place(text: &str) -> Option<LogPosition> {
    let (month, number) = text.split_once('.')?;
    Some(LogPosition { month: month.parse().ok()?, number: number.parse().ok()? })
}
