//! `/portal/keys`: the API keys of the client, which admins issue, rotate and revoke. The text of a key is shown once.

use actix_web::http::StatusCode;
use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use sakshi_domain::client_log::{Action, Subject};
use sakshi_domain::ids::KeyId;
use sakshi_domain::profile::Profile;
use sakshi_domain::time::Timestamp;
use sakshi_service::keys::{issue, list, load, load_active, revoke, rotate};
use sakshi_service::{Service, ServiceError};
use sakshi_wire::operator::keys::{IssueKeyRequest, KeyResponse, RotateKeyRequest};

use super::error::PortalError;
use super::form::{Form, Kind, SessionForm};
use super::layout::{Layout, Section, page, redirect};
use super::portal_user::PortalUser;
use super::when::When;

/// Kinds of the fields in the form for a new key.
const SHAPE: &[(&str, Kind)] =
    &[("environments", Kind::Words), ("networks", Kind::Words), ("expires_at", Kind::Moment)];
/// Kinds of the fields in the form for a rotation.
const ROTATION_SHAPE: &[(&str, Kind)] = &[("overlap_s", Kind::Whole)];
/// Overlaps to choose from, in seconds; the first is the default.
const OVERLAPS: [(u32, &str); 5] = [
    (86_400, "1 day"),
    (0, "none: the old key ends now"),
    (3_600, "1 hour"),
    (7 * 86_400, "7 days"),
    (30 * 86_400, "30 days"),
];

/// A key in the list.
struct Row {
    id: String,
    label: String,
    environments: String,
    networks: String,
    state: &'static str,
    /// Style of the state.
    tag: &'static str,
    created_at: When,
    expires_at: Option<When>,
    last_used_at: Option<When>,
    is_active: bool,
}

impl Row {
    fn new(key: KeyResponse, now: Timestamp) -> Self {
        let (state, tag) = match (key.revoked_at, key.expires_at) {
            (Some(_), _) => ("Revoked", "not_verified"),
            (None, Some(end)) if end <= now => ("Expired", "not_verified"),
            (None, Some(_)) => ("Ends", "waiting"),
            (None, None) => ("Active", "active"),
        };
        let join_or_all = |words: Vec<String>| if words.is_empty() { "all".to_owned() } else { words.join(", ") };
        Self {
            id: key.key_id.as_str().to_owned(),
            label: key.label,
            environments: join_or_all(key.environments.iter().map(ToString::to_string).collect()),
            networks: join_or_all(key.networks),
            state,
            tag,
            created_at: When::minute(key.created_at),
            expires_at: key.expires_at.map(When::minute),
            last_used_at: key.last_used_at.map(When::minute),
            is_active: matches!(state, "Active" | "Ends"),
        }
    }
}

/// The page of the API keys.
#[derive(Template)]
#[template(path = "keys.html")]
struct Page {
    layout: Layout,
    rows: Vec<Row>,
    form: Form,
    is_revoked: bool,
    /// Text of the key that has just been issued.
    issued: Option<String>,
    environments: &'static [Profile],
    overlaps: [(u32, &'static str); 5],
}

/// The outcome of a request, for the page.
#[derive(Default)]
struct Outcome {
    status: StatusCode,
    form: Form,
    is_revoked: bool,
    /// Text of the key that has just been issued.
    issued: Option<String>,
}

async fn render_page(user: &PortalUser, service: &Service, outcome: Outcome) -> Result<HttpResponse, PortalError> {
    let Outcome { status, form, is_revoked, issued } = outcome;
    let now = service.clock.now();
    let keys = list(&service.store, user.caller.client.clone()).await?;
    let template = Page {
        layout: user.layout(Section::Keys, service),
        rows: keys.into_iter().rev().map(|key| Row::new(key, now)).collect(),
        form,
        is_revoked,
        issued,
        environments: &[Profile::Sandbox, Profile::Stage, Profile::Production],
        overlaps: OVERLAPS,
    };
    Ok(page(status, &template))
}

/// Shows the keys.
///
/// # Errors
/// 303 to the sign-in page without a session; 403 for a role below admin; 503 while the store is unavailable.
pub(crate) async fn show(
    user: PortalUser,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, PortalError> {
    render_page(&user, &service, Outcome { is_revoked: request.query_string() == "done=revoked", ..Outcome::default() })
        .await
}

/// Issues a key, and shows its text.
///
/// # Errors
/// Any error that does not concern the form.
pub(crate) async fn issue_key(submitted: SessionForm, service: Data<Service>) -> Result<HttpResponse, PortalError> {
    let SessionForm { user, form } = submitted;
    match issue_from_form(&user, &service, &form).await {
        Ok(text) => render_page(&user, &service, Outcome { issued: Some(text), ..Outcome::default() }).await,
        Err(error) => {
            let (status, form) = form.with_error(error)?;
            render_page(&user, &service, Outcome { status, form, ..Outcome::default() }).await
        }
    }
}

/// Issues the key that the form describes, and returns its text.
async fn issue_from_form(user: &PortalUser, service: &Service, form: &Form) -> Result<String, ServiceError> {
    let request: IssueKeyRequest =
        form.split_words("networks").to_object(SHAPE).into_request(service.request_context())?;
    // The entry comes first: a failure after the key exists would lose its text.
    let id = KeyId::generate();
    user.log(service, Action::KeyIssued, vec![Subject::Key(id.clone())]).await?;
    let issued = issue(&service.store, &*service.clock, (user.caller.client.clone(), id), request).await?;
    Ok(issued.key.reveal().to_owned())
}

/// Rotates or revokes a key, as the form's button says.
///
/// # Errors
/// The client has no such key; the store is unavailable.
pub(crate) async fn change(
    submitted: SessionForm,
    path: Path<String>,
    service: Data<Service>,
) -> Result<HttpResponse, PortalError> {
    let SessionForm { user, mut form } = submitted;
    let id: KeyId = path.parse().map_err(|_| ServiceError::NotFound("key"))?;
    let key = load(&service.store, id.clone()).await?;
    if key.client_id != user.caller.client {
        return Err(ServiceError::NotFound("key").into());
    }
    match form.take("action").as_deref() {
        Some("revoke") => {
            revoke(&service.store, &*service.clock, id.clone()).await?;
            user.log(&service, Action::KeyRevoked, vec![Subject::Key(id)]).await?;
            Ok(redirect("/portal/keys?done=revoked"))
        }
        Some("rotate") => match rotate_from_form(&user, &service, id, &form).await {
            Ok(text) => render_page(&user, &service, Outcome { issued: Some(text), ..Outcome::default() }).await,
            Err(error) => {
                let (status, form) = form.with_error(error)?;
                render_page(&user, &service, Outcome { status, form, ..Outcome::default() }).await
            }
        },
        _ => Err(ServiceError::NotFound("action").into()),
    }
}

/// Replaces a key, and returns the text of the new key.
async fn rotate_from_form(
    user: &PortalUser,
    service: &Service,
    id: KeyId,
    form: &Form,
) -> Result<String, ServiceError> {
    let request: RotateKeyRequest = form.to_object(ROTATION_SHAPE).into_request(service.request_context())?;
    let old = load_active(&service.store, &*service.clock, id.clone()).await?;
    user.log(service, Action::KeyRotated, vec![Subject::Key(id)]).await?;
    let (issued, _) = rotate(&service.store, &*service.clock, old, request.overlap_s.map(|overlap| overlap.0)).await?;
    Ok(issued.key.reveal().to_owned())
}
