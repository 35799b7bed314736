//! Forms: the submitted fields, read as the fields of an API request. Errors are shown beside the fields in the API's
//! words, with the form's labels.

use actix_web::dev::Payload;
use actix_web::http::StatusCode;
use actix_web::web::{Bytes, Data};
use actix_web::{FromRequest, HttpRequest, ResponseError as _};
use aws_lc_rs::rand;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::future::LocalBoxFuture;
use sakshi_service::authentication::Caller;
use sakshi_service::idempotency::{IdempotentRequest, scope};
use sakshi_service::{Service, ServiceError};
use sakshi_web::body::read_bounded;
use sakshi_web::error::ApiError;
pub(super) use sakshi_web::form::Kind;
use sakshi_web::form::{self, CSRF_FIELD, Pairs, check_media_type};
use sakshi_web::rate_limit::RateLimits;
use sakshi_web::same_site::refuse_cross_site;
use sakshi_wire::ReceivedObject;
use url::form_urlencoded;

use super::error::PortalError;
use super::field::Field;
use super::label::{label, sentence};
use super::portal_user::PortalUser;

/// Largest form in bytes.
const FORM_BYTES_MAX: usize = 16 * 1_024;
/// Hidden field with an idempotency key: two clicks on a button are one request.
const ONCE_FIELD: &str = "once";

/// The values of a form, and its errors.
#[derive(Debug, Default)]
pub(super) struct Form {
    pairs: Pairs,
    /// Validation errors: the path of the field, and the message.
    problems: Vec<(String, String)>,
    /// Error of the request as a whole.
    trouble: Option<String>,
}

/// A validation error in the list above a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) sentence: String,
    /// Id of the field on the page, if a form has it.
    pub(super) field: Option<String>,
}

impl Problem {
    fn new(field: &str, words: &str) -> Self {
        let name = field.split('[').next().unwrap_or(field);
        // `consent_text` is a hidden field; the link leads to the visible field `consent`.
        let name = if name == "consent_text" { "consent" } else { name };
        Self { sentence: sentence(field, words), field: (label(name) != name).then(|| name.to_owned()) }
    }
}

impl Form {
    /// Builds a prefilled form.
    pub(super) fn prefilled(pairs: &[(&str, &str)]) -> Self {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self { pairs, ..Self::default() }
    }

    /// Parses a body in the media type of forms.
    pub(super) fn read(bytes: &[u8]) -> Self {
        Self { pairs: form::parse(bytes), ..Self::default() }
    }

    /// Returns the submitted value of a field, or an empty text.
    pub(super) fn value(&self, name: &str) -> &str {
        self.submitted(name).unwrap_or_default()
    }

    /// Returns the submitted value of a field, if the form has the field.
    pub(super) fn submitted(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str())
    }

    /// Returns true if `value` is among the values of a field.
    pub(super) fn has(&self, name: &str, value: &str) -> bool {
        self.pairs.iter().any(|(field, submitted)| field == name && submitted == value)
    }

    /// Removes a field and returns its value.
    pub(super) fn take(&mut self, name: &str) -> Option<String> {
        let mut values = self.pairs.extract_if(.., |(field, _)| field == name).map(|(_, value)| value);
        values.next()
    }

    /// Returns the errors of a field and of its parts, in sentences.
    pub(super) fn problem(&self, name: &str) -> Option<String> {
        let is_part =
            |field: &str| field.strip_prefix(name).is_some_and(|tail| tail.is_empty() || tail.starts_with('['));
        let mut sentences: Vec<String> = self
            .problems
            .iter()
            .filter(|(field, _)| is_part(field))
            .map(|(field, words)| sentence(field, words))
            .collect();
        sentences.dedup();
        (!sentences.is_empty()).then(|| sentences.join(" "))
    }

    /// Builds a field of this form.
    pub(super) fn field<'a>(&'a self, name: &'a str, label: &'a str, kind: &'a str) -> Field<'a> {
        Field::new(name, label, kind, self.value(name), self.problem(name))
    }

    /// Converts the form into the object of a request. Fields outside the shape are included, and will be refused.
    pub(super) fn to_object(&self, shape: &[(&str, Kind)]) -> ReceivedObject {
        form::request_fields(self.pairs.iter().filter(|(name, _)| name != ONCE_FIELD), shape)
    }

    /// Splits a field of words into one field for each word.
    pub(super) fn split_words(&self, name: &str) -> Self {
        let split_field = |(field, value): &(String, String)| {
            let parts = if field == name {
                value.split([' ', ',']).filter(|part| !part.is_empty()).collect()
            } else {
                vec![value.as_str()]
            };
            parts.into_iter().map(|part| (field.clone(), part.to_owned())).collect::<Vec<_>>()
        };
        Self { pairs: self.pairs.iter().flat_map(split_field).collect(), ..Self::default() }
    }

    /// Returns the key and the digest of an idempotent request.
    pub(super) fn idempotent_request(&self, caller: &Caller, operation: &str) -> Option<IdempotentRequest> {
        let key = self.value(ONCE_FIELD);
        let canonical = form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.pairs).finish();
        (!key.is_empty())
            .then(|| IdempotentRequest::new(scope(key.as_bytes(), caller), operation, canonical.as_bytes()))
    }

    /// Returns the value for [`ONCE_FIELD`] on the page with this status: after an error of the service the submitted
    /// value, because the request may have been carried out, and sending the form again must not do it twice. Else a
    /// fresh value.
    pub(super) fn next_once_value(&self, status: StatusCode) -> String {
        match self.submitted(ONCE_FIELD) {
            Some(value) if status.is_server_error() => value.to_owned(),
            _ => generate_once_value(),
        }
    }

    /// Adds an error to the form, and returns the status of the response.
    ///
    /// # Errors
    /// `error` itself, if it does not concern the form.
    pub(super) fn with_error(mut self, error: impl Into<ApiError>) -> Result<(StatusCode, Self), PortalError> {
        let error = error.into();
        let status = error.status_code();
        match &error {
            ApiError::Service(ServiceError::Invalid(invalid)) => {
                self.problems =
                    invalid.fields().iter().map(|problem| (problem.field.clone(), problem.message.clone())).collect();
            }
            ApiError::Service(ServiceError::MalformedNumber(form)) => {
                self.problems =
                    vec![(form.field.to_owned(), format!("must be {}, such as {}", form.rule, form.example))];
            }
            ApiError::Service(ServiceError::IdempotencyKeyReused) => {
                self.trouble =
                    Some("This form was sent before with other values. Check it and send it again.".to_owned());
            }
            ApiError::Service(ServiceError::EventChanged) => {
                self.trouble = Some(
                    "Somebody else has changed the event. The form shows the current settings; yours were not saved."
                        .to_owned(),
                );
            }
            ApiError::Service(ServiceError::Unauthorized)
            | ApiError::Service(ServiceError::NotFound(_))
            | ApiError::Service(ServiceError::Internal(_)) => return Err(error.into()),
            _ => self.trouble = Some(error.message()),
        }
        Ok((status, self))
    }

    /// Returns the errors, for the list above the form.
    pub(super) fn problems(&self) -> Vec<Problem> {
        let mut problems: Vec<_> = self.problems.iter().map(|(field, words)| Problem::new(field, words)).collect();
        problems.dedup();
        problems
    }

    /// Returns true if there is an error.
    pub(super) fn has_errors(&self) -> bool {
        self.trouble.is_some() || !self.problems.is_empty()
    }

    /// Returns the error of the form as a whole.
    pub(super) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }
}

/// Generates a value for [`ONCE_FIELD`]. Without randomness it is empty, and every submission is a separate request.
fn generate_once_value() -> String {
    let mut bytes = [0; 16];
    if rand::fill(&mut bytes).is_ok() { URL_SAFE_NO_PAD.encode(bytes) } else { String::new() }
}

/// A form from a page of this service, before the sign-in; an error if the caller's address exceeds the limit.
pub(crate) struct PublicForm(pub(super) Result<Form, ApiError>);

/// A form from a page of the person's session.
pub(crate) struct SessionForm {
    /// Sender of the form.
    pub(super) user: PortalUser,
    /// Values of the form.
    pub(super) form: Form,
}

/// Checks that the request comes from a page of this service, then reads its body.
fn read_body(request: &HttpRequest, payload: &mut Payload) -> impl Future<Output = Result<Bytes, ApiError>> + use<> {
    let service = request.app_data::<Data<Service>>();
    let origin = match service {
        Some(service) => refuse_cross_site(request, service).and_then(|()| check_media_type(request.headers())),
        None => Err(ApiError::Service(ServiceError::Internal("the portal is not configured".to_owned()))),
    };
    let body = read_bounded(request, payload, FORM_BYTES_MAX);
    async move {
        origin?;
        body.await
    }
}

impl FromRequest for PublicForm {
    type Error = PortalError;
    type Future = LocalBoxFuture<'static, Result<Self, PortalError>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        // The limit applies before any of the body is read.
        let allowance = match request.app_data::<Data<RateLimits>>() {
            Some(rates) => rates.sign_ins.take(&rates.client_address(request)),
            None => Err(ApiError::internal("there are no limits")),
        };
        if let Err(error) = allowance {
            return Box::pin(async move { Ok(Self(Err(error))) });
        }
        let body = read_body(request, payload);
        Box::pin(async move { Ok(Self(Ok(Form::read(&body.await?)))) })
    }
}

impl FromRequest for SessionForm {
    type Error = PortalError;
    type Future = LocalBoxFuture<'static, Result<Self, PortalError>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let user = PortalUser::from_request(request, payload);
        let body = read_body(request, payload);
        Box::pin(async move {
            let user = user.await?;
            let mut form = Form::read(&body.await?);
            // The body may have arrived slowly: the person may have lost access meanwhile.
            user.caller.recheck().await?;
            let token = form.take(CSRF_FIELD).unwrap_or_default();
            if user.csrf_token.matches(&token) { Ok(Self { user, form }) } else { Err(PortalError::ForeignForm) }
        })
    }
}

#[cfg(test)]
mod tests {
    use sakshi_domain::time::Timestamp;
    use sakshi_service::url_policy::UrlPolicy;
    use sakshi_wire::Body;
    use sakshi_wire::events::{CreateEventRequest, PatchEventRequest};

    use super::*;

    const SHAPE: &[(&str, Kind)] = &[
        ("claims", Kind::Words),
        ("max_guests", Kind::Whole),
        ("expires_at", Kind::Moment),
        ("is_active", Kind::Flag),
        ("webhook_url", Kind::Removable),
    ];

    fn form(text: &str) -> Form {
        Form::read(text.as_bytes())
    }

    fn parse_request<B: Body>(form: &Form) -> Result<B, ApiError> {
        let now = Timestamp::parse_iso8601("2026-12-01T00:00:00Z").unwrap();
        Ok(form.to_object(SHAPE).into_request(UrlPolicy::PUBLIC.at(now))?)
    }

    #[test]
    fn a_form_is_read_as_the_fields_of_a_request() {
        let event =
            form("claims=name&max_guests=+12+&claims=dob&expires_at=2026-12-31T18%3A30&name=Fair&webhook_url=+&once=x");
        let event: CreateEventRequest = parse_request(&event).unwrap();
        assert_eq!((event.claims.iter().count(), event.max_guests.get()), (2, 12));
        assert_eq!(event.expires_at.to_string(), "2026-12-31T18:30:00.000Z");
        let patch: PatchEventRequest = parse_request(&form("is_active=false&webhook_url=&name=&once=x")).unwrap();
        assert_eq!(
            (patch.is_active.0, patch.webhook_url.0, patch.name.0),
            (Some(false), Some(None), None),
            "empty fields are left out"
        );
    }

    #[test]
    fn field_errors_are_shown_beside_their_fields_in_the_words_of_the_api() {
        let submitted = form("name=Fair&claims=name&claims=shoe&max_guests=many&expires_at=soon&colour=red");
        let error = parse_request::<CreateEventRequest>(&submitted).unwrap_err();
        let (status, submitted) = submitted.with_error(error).unwrap();
        assert_eq!(status, 400);
        assert!(submitted.problem("claims").unwrap().starts_with("Choice of details is not a known claim"));
        assert!(submitted.problem("max_guests").unwrap().starts_with("Places must be"));
        assert!(submitted.problem("expires_at").unwrap().contains("ISO 8601"));
        assert_eq!(submitted.problem("colour").unwrap(), "colour is not a field of this request.");
        assert_eq!((submitted.problem("max"), submitted.value("max_guests")), (None, "many"), "submitted values stay");
    }

    #[test]
    fn errors_of_the_whole_form_are_shown_once_and_other_errors_are_returned() {
        let (status, form) = Form::default().with_error(ApiError::Service(ServiceError::InsufficientCredits)).unwrap();
        assert_eq!((status.as_u16(), form.trouble()), (402, Some("The credit balance does not cover this operation.")));
        assert!(matches!(
            Form::default().with_error(ApiError::Service(ServiceError::NotFound("event"))),
            Err(PortalError::Refused(_))
        ));
    }
}
