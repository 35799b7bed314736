//! Forms: the submitted fields, read as those of the API's request. Errors are shown beside the fields in the API's
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
use sakshi_wire::Sent;
use url::form_urlencoded;

use super::error::PortalError;
use super::field::Field;
use super::label::{label, sentence};
use super::portal_user::PortalUser;

/// Largest form in bytes.
const FORM_BYTES_MAX: usize = 16 * 1_024;
/// Field that identifies one filling-in, so that two clicks are one request.
const ONCE: &str = "once";

/// The values of a form, and its errors.
#[derive(Debug, Default)]
pub(super) struct Form {
    pairs: Pairs,
    problems: Vec<(String, String)>,
    /// Error of the request as a whole.
    trouble: Option<String>,
}

/// An entry of the list above a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) sentence: String,
    /// Id of the field on the page, if a form has it.
    pub(super) field: Option<String>,
}

impl Problem {
    fn of(field: &str, words: &str) -> Self {
        let name = field.split('[').next().unwrap_or(field);
        // The wording of a consent is a hidden field.
        let name = if name == "consent_text" { "consent" } else { name };
        Self { sentence: sentence(field, words), field: (label(name) != name).then(|| name.to_owned()) }
    }
}

impl Form {
    /// Builds a prefilled form.
    pub(super) fn filled(pairs: &[(&str, &str)]) -> Self {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self { pairs, ..Self::default() }
    }

    pub(super) fn read(bytes: &[u8]) -> Self {
        Self { pairs: form::parse(bytes), ..Self::default() }
    }

    /// Returns the value of a field; empty when it has none.
    pub(super) fn value(&self, name: &str) -> &str {
        self.given(name).unwrap_or_default()
    }

    /// Returns the submitted value of a field, which may be empty.
    pub(super) fn given(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns true if a field has this value, among others.
    pub(super) fn has(&self, name: &str, value: &str) -> bool {
        self.pairs.iter().any(|(known, chosen)| known == name && chosen == value)
    }

    /// Removes and returns the submitted value of a name.
    pub(super) fn take(&mut self, name: &str) -> Option<String> {
        let mut taken = self.pairs.extract_if(.., |(known, _)| known == name).map(|(_, value)| value);
        taken.next()
    }

    /// Returns the errors of a field or of parts of it, in sentences.
    pub(super) fn problem(&self, name: &str) -> Option<String> {
        let of_field =
            |field: &str| field.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('['));
        let mut found: Vec<String> = self
            .problems
            .iter()
            .filter(|(field, _)| of_field(field))
            .map(|(field, words)| sentence(field, words))
            .collect();
        found.dedup();
        (!found.is_empty()).then(|| found.join(" "))
    }

    /// Builds a field of this form.
    pub(super) fn field<'a>(&'a self, name: &'a str, label: &'a str, kind: &'a str) -> Field<'a> {
        Field::new(name, label, kind, self.value(name), self.problem(name))
    }

    /// Returns the fields of a request. Fields outside the shape are included, to be refused.
    pub(super) fn sent(&self, shape: &[(&str, Kind)]) -> Sent {
        form::request_fields(self.pairs.iter().filter(|(name, _)| name != ONCE), shape)
    }

    /// Splits a field of words into one field for each word.
    pub(super) fn split(&self, name: &str) -> Self {
        let words = |(known, value): &(String, String)| {
            let parts = if known == name {
                value.split([' ', ',']).filter(|part| !part.is_empty()).collect()
            } else {
                vec![value.as_str()]
            };
            parts.into_iter().map(|part| (known.clone(), part.to_owned())).collect::<Vec<_>>()
        };
        Self { pairs: self.pairs.iter().flat_map(words).collect(), ..Self::default() }
    }

    /// Returns the request as an idempotent one.
    pub(super) fn once(&self, caller: &Caller, operation: &str) -> Option<IdempotentRequest> {
        let key = self.value(ONCE);
        let canonical = form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.pairs).finish();
        (!key.is_empty())
            .then(|| IdempotentRequest::new(scope(key.as_bytes(), caller), operation, canonical.as_bytes()))
    }

    /// Returns the form with its errors; hands on an error that is not about the form.
    pub(super) fn refused(mut self, error: impl Into<ApiError>) -> Result<(StatusCode, Self), PortalError> {
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
                    "The event was changed meanwhile. This is how it is now; nothing of your change was saved."
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
        let mut problems: Vec<_> = self.problems.iter().map(|(field, words)| Problem::of(field, words)).collect();
        problems.dedup();
        problems
    }

    /// Returns true if there is an error.
    pub(super) fn is_wrong(&self) -> bool {
        self.trouble.is_some() || !self.problems.is_empty()
    }

    /// Returns the error of the form as a whole.
    pub(super) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }
}

/// Generates a value for the field that identifies one filling-in. Without randomness it is empty, and every submission
/// is a separate request.
pub(super) fn once() -> String {
    let mut bytes = [0; 16];
    if rand::fill(&mut bytes).is_ok() { URL_SAFE_NO_PAD.encode(bytes) } else { String::new() }
}

/// A form sent by a page of ours, from a browser that has not signed in; an error when its address exceeds the limit.
pub(crate) struct Posted(pub(super) Result<Form, ApiError>);

/// A form sent by a page of this session.
pub(crate) struct Submitted {
    /// Sender of the form.
    pub(super) user: PortalUser,
    /// Values of the form.
    pub(super) form: Form,
}

/// Checks that the request is of a page of ours, then reads its body.
fn sent(request: &HttpRequest, payload: &mut Payload) -> impl Future<Output = Result<Bytes, ApiError>> + use<> {
    let service = request.app_data::<Data<Service>>();
    let ours = match service {
        Some(service) => refuse_cross_site(request, service).and_then(|()| check_media_type(request.headers())),
        None => Err(ApiError::Service(ServiceError::Internal("the portal is not configured".to_owned()))),
    };
    let body = read_bounded(request, payload, FORM_BYTES_MAX);
    async move {
        ours?;
        body.await
    }
}

impl FromRequest for Posted {
    type Error = PortalError;
    type Future = LocalBoxFuture<'static, Result<Self, PortalError>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        // Before any of the body is read.
        let counted = match request.app_data::<Data<RateLimits>>() {
            Some(rates) => rates.sign_ins.take(&rates.client_address(request)),
            None => Err(ApiError::internal("there are no limits")),
        };
        if let Err(error) = counted {
            return Box::pin(async move { Ok(Self(Err(error))) });
        }
        let sent = sent(request, payload);
        Box::pin(async move { Ok(Self(Ok(Form::read(&sent.await?)))) })
    }
}

impl FromRequest for Submitted {
    type Error = PortalError;
    type Future = LocalBoxFuture<'static, Result<Self, PortalError>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let user = PortalUser::from_request(request, payload);
        let sent = sent(request, payload);
        Box::pin(async move {
            let user = user.await?;
            let mut form = Form::read(&sent.await?);
            // The sender may have withheld the last byte for long.
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

    fn asked<B: Body>(form: &Form) -> Result<B, ApiError> {
        let now = Timestamp::parse_iso8601("2026-12-01T00:00:00Z").unwrap();
        Ok(form.sent(SHAPE).request(UrlPolicy::PUBLIC.at(now))?)
    }

    #[test]
    fn a_form_is_read_as_the_fields_of_a_request() {
        let event =
            form("claims=name&max_guests=+12+&claims=dob&expires_at=2026-12-31T18%3A30&name=Fair&webhook_url=+&once=x");
        let event: CreateEventRequest = asked(&event).unwrap();
        assert_eq!((event.claims.iter().count(), event.max_guests.get()), (2, 12));
        assert_eq!(event.expires_at.to_string(), "2026-12-31T18:30:00.000Z");
        let patch: PatchEventRequest = asked(&form("is_active=false&webhook_url=&name=&once=x")).unwrap();
        assert_eq!(
            (patch.is_active.0, patch.webhook_url.0, patch.name.0),
            (Some(false), Some(None), None),
            "what is empty is left out"
        );
    }

    #[test]
    fn what_is_wrong_stands_beside_its_field_in_the_sentences_of_the_api() {
        let sent = form("name=Fair&claims=name&claims=shoe&max_guests=many&expires_at=soon&colour=red");
        let error = asked::<CreateEventRequest>(&sent).unwrap_err();
        let (status, sent) = sent.refused(error).unwrap();
        assert_eq!(status, 400);
        assert!(sent.problem("claims").unwrap().starts_with("Choice of details is not a known claim"));
        assert!(sent.problem("max_guests").unwrap().starts_with("Places must be"));
        assert!(sent.problem("expires_at").unwrap().contains("ISO 8601"));
        assert_eq!(sent.problem("colour").unwrap(), "colour is not a field of this request.");
        assert_eq!((sent.problem("max"), sent.value("max_guests")), (None, "many"), "what was filled in stays");
    }

    #[test]
    fn what_is_wrong_with_the_whole_is_said_once_and_what_is_not_the_forms_is_handed_on() {
        let (status, told) = Form::default().refused(ApiError::Service(ServiceError::InsufficientCredits)).unwrap();
        assert_eq!((status.as_u16(), told.trouble()), (402, Some("The credit balance does not cover this operation.")));
        assert!(matches!(
            Form::default().refused(ApiError::Service(ServiceError::NotFound("event"))),
            Err(PortalError::Refused(_))
        ));
    }
}
