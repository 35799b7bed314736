//! `/portal/checks`: forms that run the synchronous checks, like `POST /api/v1/…/verify`, and show the response body.

use actix_web::http::StatusCode;
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use sakshi_domain::checks::{CHECKS, Check};
use sakshi_domain::client_log::Action;
use sakshi_service::checks::verify;
use sakshi_service::{Service, ServiceError};
use sakshi_web::edge::adopt_request_id;
use sakshi_web::error::ApiError;
use sakshi_web::rate_limit::RateLimits;
use serde_json::{Map, Value};

use super::curl::{Command, Curl};
use super::error::PortalError;
use super::field::Field;
use super::form::{Form, SessionForm};
use super::json_body::JsonBody;
use super::label::label;
use super::layout::{Layout, Section, page};
use super::portal_user::PortalUser;

const CONSENT_TEXT: &str = "I agree that this number is verified.";

/// The form of a check that has an upstream here.
struct CheckForm {
    check: &'static Check,
    /// Submitted values, or an example.
    form: Form,
}

impl CheckForm {
    /// Returns the suffix of the form's element ids, which must be unique on the page.
    fn id_suffix(&self) -> String {
        format!("-{}", self.check.name)
    }

    /// Returns the fields for the numbers and for the values to compare.
    fn fields(&self) -> Vec<Field<'_>> {
        let numbers = self.check.numbers.iter().map(|form| form.field);
        let compared = self.check.compared.iter().map(|compared| compared.field);
        numbers
            .chain(compared)
            .map(|name| self.form.field(name, label(name), "text").with_id_suffix(self.check.name))
            .collect()
    }
}

/// A check that was run: the API's response, and the equivalent command.
struct Exchange {
    body: JsonBody,
    commands: Vec<Command>,
}

/// The page with the form of each check.
#[derive(Template)]
#[template(path = "checks.html")]
struct Page {
    layout: Layout,
    rows: Vec<CheckForm>,
    exchange: Option<Exchange>,
    consent_text: &'static str,
}

impl Page {
    fn has_errors(&self) -> bool {
        self.rows.iter().any(|row| row.form.has_errors())
    }
}

/// Renders the page. `submitted` is a form with the name of its check; the other forms have examples.
fn render_page(
    status: StatusCode,
    user: &PortalUser,
    service: &Service,
    mut submitted: Option<(&str, Form)>,
    exchange: Option<Exchange>,
) -> HttpResponse {
    let offered = CHECKS.iter().filter(|check| service.upstreams.checks.contains_key(check.name));
    let rows = offered.map(|check| {
        let form = submitted.take_if(|(name, _)| *name == check.name).map(|(_, form)| form);
        CheckForm { check, form: form.unwrap_or_else(|| example(check, service.authority.sandbox)) }
    });
    let rows = rows.collect();
    page(status, &Page { layout: user.layout(Section::Checks, service), rows, exchange, consent_text: CONSENT_TEXT })
}

/// Returns example values that the sandbox's upstreams know, or an empty form.
fn example(check: &Check, is_sandbox: bool) -> Form {
    let examples: Vec<_> = check.numbers.iter().map(|form| (form.field, form.example)).collect();
    if is_sandbox { Form::prefilled(&examples) } else { Form::default() }
}

/// Shows the forms.
///
/// # Errors
/// 303 to the sign-in page without a session.
pub(crate) async fn show(user: PortalUser, service: Data<Service>) -> Result<HttpResponse, PortalError> {
    Ok(render_page(StatusCode::OK, &user, &service, None, None))
}

/// Runs the check that the form names.
///
/// # Errors
/// Any error that does not concern the form.
pub(crate) async fn submit(
    submitted: SessionForm,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, PortalError> {
    let SessionForm { user, mut form } = submitted;
    let kind = form.take("kind").unwrap_or_default();
    let check = Check::named(&kind).ok_or(ApiError::Service(ServiceError::NotFound("check")))?;
    match run_check(check, &user, &form, &request, &service, &rates).await {
        Ok(exchange) => Ok(render_page(StatusCode::OK, &user, &service, Some((check.name, form)), Some(exchange))),
        Err(error) => {
            let (status, form) = form.with_error(error)?;
            Ok(render_page(status, &user, &service, Some((check.name, form)), None))
        }
    }
}

async fn run_check(
    check: &'static Check,
    user: &PortalUser,
    form: &Form,
    request: &HttpRequest,
    service: &Service,
    rates: &RateLimits,
) -> Result<Exchange, ApiError> {
    rates.init.take(&user.caller.app.app_id)?;
    rates.orders.take(&user.caller.client)?;
    let response =
        verify(service, &user.caller, check, form.to_object(&[]), |id_in_body| adopt_request_id(request, id_in_body))
            .await?;
    user.log(service, Action::CheckMade, Vec::new()).await?;
    let consent_fields: &[&str] = if check.needs_consent { &["consent", "consent_text"] } else { &[] };
    let names = check.numbers.iter().map(|form| form.field).chain(check.compared.iter().map(|compared| compared.field));
    let filled_fields = names.chain(consent_fields.iter().copied()).filter(|name| !form.value(name).is_empty());
    let body: Map<String, Value> = filled_fields.map(|name| (name.to_owned(), form.value(name).into())).collect();
    Ok(Exchange {
        body: JsonBody::new(serde_json::to_string(&response).map_err(ApiError::internal)?),
        commands: vec![Curl(&service.authority.public_base).check(check, &body.into())],
    })
}
