//! `/console/clients/{client_id}/keys` and `/console/keys/{key_id}`: the API keys of a client. The text of a key is
//! shown once.

use actix_web::HttpResponse;
use actix_web::web::Path;
use askama::Template;
use sakshi_domain::ids::{ClientId, KeyId};
use sakshi_domain::profile::Profile;
use sakshi_domain::tenancy::ApiKeyRecord;
use sakshi_service::ServiceError;
use sakshi_web::field::Field;
use sakshi_web::form::Kind;
use sakshi_web::html::{form_page, redirect};
use sakshi_wire::ReceivedObject;
use sakshi_wire::json::Json;
use serde_json::Value;

use crate::error::ConsoleError;
use crate::layout::{Layout, Section};
use crate::records::{client_cell, find_client};
use crate::staff::Staff;
use crate::submitted::{Form, SubmittedForm};
use crate::view::{Cell, Choices, FormView, Part, Table, View};

/// Conversions of the forms' fields that are not texts.
const FIELD_KINDS: &[(&str, Kind)] =
    &[("environments", Kind::Words), ("expires_at", Kind::Moment), ("overlap_s", Kind::Whole)];
/// Times for which an old key stays valid after a rotation, in seconds and in words.
const OVERLAPS: [(&str, &str); 4] =
    [("86400", "one day"), ("3600", "one hour"), ("604800", "one week"), ("0", "not at all")];

/// Shows the keys of a client.
///
/// # Errors
/// 404 for an unknown client.
pub(crate) async fn list(staff: Staff, path: Path<String>) -> Result<HttpResponse, ConsoleError> {
    let id = path.parse().map_err(|_| ServiceError::NotFound("client"))?;
    Ok(keys_page(&staff, id, &Form::default()).await?.ok())
}

async fn keys_page(staff: &Staff, id: ClientId, form: &Form) -> Result<View, ConsoleError> {
    let client = find_client(staff, &id).await?;
    let keys = staff.api.store.list_keys(id.clone()).await?;
    let rows = keys.iter().rev().map(|key| key_row(staff, key)).collect();
    let table =
        Table { caption: "Keys", columns: &["Key", "Label", "State", "Works in", "From", "Issued", "Ends"], rows };
    let mut view = View::new(staff, Some(Section::Clients), format!("Keys of {}", client.name))
        .back(format!("/console/clients/{id}"), client.name)
        .problems_if(form.problems())
        .part(Part::new("keys", "API keys").table(table, "The client has no keys yet."));
    if staff.may("issueKey") {
        view = view.part(issue_part(staff, &id, form));
    }
    Ok(view)
}

fn state_tag(staff: &Staff, key: &ApiKeyRecord) -> Cell {
    let has_ended = key.expires_at.is_some_and(|end| end <= staff.api.clock.now());
    match (key.revoked_at, has_ended) {
        (Some(_), _) => Cell::tag("revoked", "revoked"),
        (None, true) => Cell::tag("bad", "ended"),
        (None, false) => Cell::tag("good", "works"),
    }
}

/// Lists texts, or shows `if_empty`.
fn list_cell(texts: &[String], if_empty: &str) -> Cell {
    if texts.is_empty() { Cell::text(if_empty) } else { Cell::text(texts.join(", ")) }
}

fn environments_cell(key: &ApiKeyRecord) -> Cell {
    list_cell(&key.environments.iter().map(|profile| profile.as_str().to_owned()).collect::<Vec<_>>(), "everywhere")
}

fn key_row(staff: &Staff, key: &ApiKeyRecord) -> Vec<Cell> {
    vec![
        Cell::link("keys", &key.key_id),
        Cell::text(key.label.clone()),
        state_tag(staff, key),
        environments_cell(key),
        list_cell(&key.networks.texts().collect::<Vec<_>>(), "any address"),
        Cell::at(key.created_at),
        Cell::or_none(key.revoked_at.or(key.expires_at), Cell::at),
    ]
}

fn issue_part(staff: &Staff, id: &ClientId, form: &Form) -> Part {
    let value = |name: &str| form.value(name).to_owned();
    let everywhere = (String::new(), "everywhere".to_owned());
    let profiles = [Profile::Sandbox, Profile::Stage, Profile::Production]
        .map(|profile| (profile.as_str().to_owned(), profile.as_str().to_owned()));
    let environments = Choices {
        name: "environments",
        label: "Works in",
        options: [everywhere].into_iter().chain(profiles).collect(),
        chosen: value("environments"),
    };
    let form = FormView::new(staff, format!("/console/clients/{id}/keys"), "Issue a key")
        .field(Field::new("label", "Label, such as the system that uses it", "text", value("label"), None))
        .field(Field::new("networks", "Only from these networks, separated by commas", "text", value("networks"), None))
        .field(Field::new("expires_at", "Expires, in UTC", "datetime-local", value("expires_at"), None))
        .choices(environments);
    Part::new("issue", "Issue a key")
        .words("The text of the key is shown once, on the next page. Hand it over by a private channel.")
        .form(form)
}

/// Builds the body of a request for a key. The networks are in one field of the form.
fn issue_body(form: &Form) -> ReceivedObject {
    let mut body = form.request_body(FIELD_KINDS);
    for (name, value) in &mut body.0 {
        if let ("networks", Json::Text(text)) = (name.as_str(), &*value) {
            *value = Json::List(
                text.split([',', ' '])
                    .filter(|part| !part.is_empty())
                    .map(|part| Json::Text(part.to_owned()))
                    .collect(),
            );
        }
    }
    body
}

/// Issues a key, and shows its text.
///
/// # Errors
/// Any error that the form cannot show.
pub(crate) async fn issue(submitted: SubmittedForm, path: Path<String>) -> Result<HttpResponse, ConsoleError> {
    let id: ClientId = path.parse().map_err(|_| ServiceError::NotFound("client"))?;
    match submitted.carry_out("issueKey", Some(issue_body(&submitted.form))).await {
        Ok(issued) => Ok(key_text_page(&submitted.staff, &issued, id.as_str())),
        Err(error) => {
            let SubmittedForm { staff, form } = submitted;
            let (status, form) = form.with_error(error)?;
            Ok(keys_page(&staff, id, &form).await?.respond(status))
        }
    }
}

#[derive(Template)]
#[template(path = "key_text.html")]
struct KeyText<'a> {
    layout: Layout,
    key_id: &'a str,
    text: &'a str,
    client: &'a str,
}

/// Builds the page with the text of a new key; no other page shows it.
fn key_text_page(staff: &Staff, issued: &Value, client: &str) -> HttpResponse {
    let text = |name: &str| issued[name].as_str().unwrap_or_default();
    let layout = Layout::new(&staff.request, Some(Section::Clients));
    let page = KeyText { layout, key_id: text("key_id"), text: text("api_key"), client };
    form_page(actix_web::http::StatusCode::OK, &page)
}

/// Shows a key.
///
/// # Errors
/// 404 for an unknown key.
pub(crate) async fn show(staff: Staff, path: Path<String>) -> Result<HttpResponse, ConsoleError> {
    let id = path.parse().map_err(|_| ServiceError::NotFound("key"))?;
    let key = find_key(&staff, id).await?;
    Ok(key_page(&staff, key, &Form::default()).await?.ok())
}

async fn find_key(staff: &Staff, id: KeyId) -> Result<ApiKeyRecord, ConsoleError> {
    Ok(staff.api.store.load_key(id).await?.ok_or(ServiceError::NotFound("key"))?)
}

async fn key_page(staff: &Staff, key: ApiKeyRecord, form: &Form) -> Result<View, ConsoleError> {
    let (id, client) = (key.key_id.clone(), key.client_id.clone());
    let about = Part::new("about", "API key")
        .words("The text of a key is stored nowhere.")
        .fact("Id", Cell::code(&id))
        .fact("Client", client_cell(staff, &client).await?)
        .fact("Works in", environments_cell(&key))
        .fact("From", list_cell(&key.networks.texts().collect::<Vec<_>>(), "any address"))
        .fact("Issued", Cell::at(key.created_at))
        .fact("Expires", Cell::or_none(key.expires_at, Cell::at))
        .fact("Revoked", Cell::or_none(key.revoked_at, Cell::at));
    let is_valid = key.revoked_at.is_none() && key.expires_at.is_none_or(|end| end > staff.api.clock.now());
    let title = if key.label.is_empty() { id.to_string() } else { key.label.clone() };
    let mut view = View::new(staff, Some(Section::Clients), title)
        .back(format!("/console/clients/{client}/keys"), "Keys of the client")
        .tag(state_tag(staff, &key))
        .problems_if(form.problems())
        .part(about);
    if is_valid && staff.may("rotateKey") {
        let options = OVERLAPS.map(|(seconds, words)| (seconds.to_owned(), words.to_owned())).into();
        let overlap = Choices {
            name: "overlap_s",
            label: "The old key stays valid for",
            options,
            chosen: form.value("overlap_s").to_owned(),
        };
        let rotate = FormView::new(staff, format!("/console/keys/{id}/rotate"), "Issue a replacement").choices(overlap);
        let words = "The replacement has the same label, environments and networks. Its text is shown once.";
        view = view.part(Part::new("rotate", "Rotate").words(words).form(rotate));
    }
    if key.revoked_at.is_none() && staff.may("revokeKey") {
        let revoke = FormView::new(staff, format!("/console/keys/{id}/revoke"), "Revoke it now").dangerous();
        let words = "Every node refuses the key within a second. A revocation cannot be undone.";
        view = view.part(Part::new("revoke", "Revoke").words(words).form(revoke));
    }
    Ok(view)
}

/// Issues a replacement for a key, and shows its text.
///
/// # Errors
/// Any error that the form cannot show.
pub(crate) async fn rotate(submitted: SubmittedForm, path: Path<String>) -> Result<HttpResponse, ConsoleError> {
    let id: KeyId = path.parse().map_err(|_| ServiceError::NotFound("key"))?;
    match submitted.carry_out("rotateKey", Some(submitted.form.request_body(FIELD_KINDS))).await {
        // Reads nothing more: an error of the store would lose the text of the key.
        Ok(issued) => {
            let client = issued["previous"]["client_id"].as_str().unwrap_or_default();
            Ok(key_text_page(&submitted.staff, &issued, client))
        }
        Err(error) => error_page(submitted, id, error).await,
    }
}

/// Revokes a key.
///
/// # Errors
/// Any error that the form cannot show.
pub(crate) async fn revoke(submitted: SubmittedForm, path: Path<String>) -> Result<HttpResponse, ConsoleError> {
    let id: KeyId = path.parse().map_err(|_| ServiceError::NotFound("key"))?;
    match submitted.carry_out("revokeKey", None).await {
        Ok(_) => Ok(redirect(&format!("/console/keys/{id}?done=revoked"))),
        Err(error) => error_page(submitted, id, error).await,
    }
}

/// Shows the page of a key with the error of a form.
async fn error_page(
    submitted: SubmittedForm,
    id: KeyId,
    error: sakshi_web::error::ApiError,
) -> Result<HttpResponse, ConsoleError> {
    let SubmittedForm { staff, form } = submitted;
    let (status, form) = form.with_error(error)?;
    let key = find_key(&staff, id).await?;
    Ok(key_page(&staff, key, &form).await?.respond(status))
}
