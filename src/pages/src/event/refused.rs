//! Why a guest cannot be verified, as a page in the event's language or as the body of the error
//! table for programs.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, ResponseError as _};
use sakshi_domain::event::{Event, EventRefusal};
use sakshi_domain::language::Language;
use sakshi_service::error::ServiceError;
use sakshi_service::service::Service;
use sakshi_web::error::ApiError;
use sakshi_web::html::page;

use crate::accept::wants_json;
use crate::frame::Frame;
use crate::language::PageLanguage;
use crate::notice::{CLOCK, CROSS, DOTS, Link, Look, Notice, QUESTION, Retry, busy};
use crate::text::Texts;

/// A refusal, and the language of the event once that is known.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) error: ApiError,
    event_language: Option<Language>,
}

impl Refusal {
    /// At an event.
    pub(crate) const fn at(event: &Event, error: ApiError) -> Self {
        Self { error, event_language: Some(event.terms.language) }
    }

    /// The page, or the error for the one place that renders error bodies.
    ///
    /// # Errors
    /// The refusal itself, for a program.
    pub(crate) fn answer(self, request: &HttpRequest, service: &Service, event: &str) -> Result<HttpResponse, ApiError> {
        if wants_json(request) {
            return Err(self.error);
        }
        let language = PageLanguage::of(request, self.event_language.map_or_else(|| Texts::asked_for(request), Texts::of));
        let PageLanguage { texts, .. } = language;
        let sandbox = service.authority.sandbox;
        // A path goes into a link only if it is an event's id.
        let path = event.parse::<sakshi_domain::ids::EventId>().map_or_else(|_| "/".to_owned(), |id| format!("/e/{id}"));
        let here = if request.method().is_safe() { request.path() } else { &path };
        let Some(message) = Message::of(&self.error, texts) else {
            let again = if request.method().is_safe() { Retry::Automatic } else { Retry::ByHand };
            return Ok(busy(&self.error, language, here, again, sandbox));
        };
        let link = message.link.map(|label| Link { address: language.at(&path), label, site: None, followed: false });
        let notice = Notice {
            frame: Frame::new(language, sandbox, here),
            look: message.look,
            heading: message.heading,
            words: vec![message.words],
            link,
            retry_s: None,
            reference: None,
        };
        Ok(page(message.status, None, &notice))
    }
}

/// Before the event is known; the browser's languages have to do.
impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        Self { error, event_language: None }
    }
}

/// The message of a page.
struct Message {
    status: StatusCode,
    look: Look,
    heading: &'static str,
    words: &'static str,
    link: Option<&'static str>,
}

impl Message {
    /// `None` for errors that are not about the event.
    fn of(error: &ApiError, texts: &Texts) -> Option<Self> {
        let event = &texts.event;
        let (look, heading, words, link) = match error {
            ApiError::Service(ServiceError::EventRefused(EventRefusal::Full)) => (CROSS, event.full_heading, event.full, None),
            ApiError::Service(ServiceError::EventRefused(EventRefusal::Disabled)) => (CLOCK, event.closed_heading, event.closed, None),
            ApiError::Service(ServiceError::EventRefused(EventRefusal::Expired)) => (CLOCK, event.ended_heading, event.ended, None),
            ApiError::Service(ServiceError::InsufficientCredits) => {
                (DOTS, event.unavailable_heading, event.unavailable, Some(texts.try_again))
            }
            ApiError::Service(ServiceError::NotFound(_)) => (QUESTION, event.unknown_heading, event.unknown, None),
            ApiError::CrossSite => (CROSS, event.elsewhere_heading, event.elsewhere, Some(event.to_event)),
            _ => return None,
        };
        // A guest does not learn the organiser's balance, not from the status either.
        let status = if *error == ApiError::Service(ServiceError::InsufficientCredits) { StatusCode::OK } else { error.status_code() };
        Some(Self { status, look, heading, words, link })
    }
}
