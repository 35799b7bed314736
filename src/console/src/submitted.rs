//! Submitted forms: their fields, and errors of the admin API about them.

use actix_web::dev::Payload;
use actix_web::http::StatusCode;
use actix_web::http::header::CONTENT_TYPE;
use actix_web::{FromRequest, HttpRequest, ResponseError as _};
use futures_util::future::LocalBoxFuture;
use sakshi_operator::console_api;
use sakshi_service::ServiceError;
use sakshi_web::body::read_bounded;
use sakshi_web::error::ApiError;
use sakshi_web::form::{self, CSRF_FIELD, Kind, Pairs, check_media_type};
use sakshi_web::same_site::refuse_other_host;
use sakshi_wire::ReceivedObject;
use serde_json::Value;

use crate::error::ConsoleError;
use crate::multipart;
use crate::staff::Staff;

/// Maximum number of bytes of a form without files.
const FORM_BYTES_MAX: usize = 16 * 1_024;
/// Maximum number of bytes of a form with files.
const FILES_BYTES_MAX: usize = 64 * 1_024;

/// The values of a form, and their problems.
#[derive(Debug, Default)]
pub(crate) struct Form {
    pairs: Pairs,
    /// Files, by the names of their fields.
    pub(crate) files: Vec<(String, Vec<u8>)>,
    problems: Vec<String>,
}

impl Form {
    /// Returns the value of a field; empty if it is missing.
    pub(crate) fn value(&self, name: &str) -> &str {
        self.pairs.iter().find(|(field, _)| field == name).map_or("", |(_, value)| value.as_str())
    }

    /// Removes a field and returns its value; empty if it is missing.
    pub(crate) fn take(&mut self, name: &str) -> String {
        let mut values = self.pairs.extract_if(.., |(field, _)| field == name).map(|(_, value)| value);
        values.next().unwrap_or_default()
    }

    /// Builds the body of a request from the fields.
    pub(crate) fn request_body(&self, kinds: &[(&str, Kind)]) -> ReceivedObject {
        form::request_fields(self.pairs.iter(), kinds)
    }

    /// Returns the problems, in sentences.
    pub(crate) fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Returns the form with a problem.
    pub(crate) fn with_problem(self, problem: impl Into<String>) -> Self {
        Self { problems: vec![problem.into()], ..self }
    }

    /// Returns the form with the problems of an error, or the error if it does not concern the form.
    pub(crate) fn with_error(self, error: ApiError) -> Result<(StatusCode, Self), ConsoleError> {
        let status = error.status_code();
        let problems = match &error {
            ApiError::Service(ServiceError::Invalid(invalid)) => {
                invalid.fields().iter().map(|problem| format!("{} {}.", problem.field, problem.message)).collect()
            }
            ApiError::Service(ServiceError::NotFound(_) | ServiceError::Internal(_)) => return Err(error.into()),
            _ if status.is_server_error() => return Err(error.into()),
            _ => vec![error.message()],
        };
        Ok((status, Self { problems, ..self }))
    }
}

/// A form from a page of this session.
pub(crate) struct SubmittedForm {
    /// The operator who submitted the form.
    pub(crate) staff: Staff,
    /// The values of the form.
    pub(crate) form: Form,
}

impl SubmittedForm {
    /// Performs an operation of the admin API, with the ids of the path.
    pub(crate) async fn carry_out(
        &self,
        operation: &'static str,
        body: Option<ReceivedObject>,
    ) -> Result<Value, ApiError> {
        console_api::carry_out(&self.staff.request, operation, body).await
    }
}

/// A form from a browser without a session.
pub(crate) struct PublicForm(pub(crate) Form);

/// Reads a form, which must come from a page at this host.
fn read_form(request: &HttpRequest, payload: &mut Payload) -> impl Future<Output = Result<Form, ApiError>> + use<> {
    let media_type = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let boundary = media_type.and_then(multipart::boundary).map(str::to_owned);
    let is_form = if boundary.is_some() { Ok(()) } else { check_media_type(request.headers()) };
    let check = refuse_other_host(request).and(is_form);
    let body = read_bounded(request, payload, if boundary.is_some() { FILES_BYTES_MAX } else { FORM_BYTES_MAX });
    async move {
        check?;
        let body = body.await?;
        match boundary {
            Some(boundary) => parse_multipart(&boundary, &body)
                .ok_or_else(|| ApiError::MalformedBody("The form cannot be read.".to_owned())),
            None => Ok(Form { pairs: form::parse(&body), ..Form::default() }),
        }
    }
}

fn parse_multipart(boundary: &str, body: &[u8]) -> Option<Form> {
    let mut form = Form::default();
    for field in multipart::parse_fields(boundary, body)? {
        if field.is_file {
            form.files.push((field.name, field.bytes.to_vec()));
        } else {
            form.pairs.push((field.name, String::from_utf8(field.bytes.to_vec()).ok()?));
        }
    }
    Some(form)
}

impl FromRequest for PublicForm {
    type Error = ConsoleError;
    type Future = LocalBoxFuture<'static, Result<Self, ConsoleError>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let form = read_form(request, payload);
        Box::pin(async move { Ok(Self(form.await?)) })
    }
}

impl FromRequest for SubmittedForm {
    type Error = ConsoleError;
    type Future = LocalBoxFuture<'static, Result<Self, ConsoleError>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let form = read_form(request, payload);
        let request = request.clone();
        Box::pin(async move {
            let form = form.await;
            // The session is read after the body, because a client can delay the end of the body.
            let staff = Staff::extract(&request).await?;
            let mut form = form?;
            let token = form.take(CSRF_FIELD);
            if staff.csrf_token.matches(&token) { Ok(Self { staff, form }) } else { Err(ConsoleError::ForeignForm) }
        })
    }
}
