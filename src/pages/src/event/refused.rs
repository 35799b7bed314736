//! The refusal of a guest, as a page in the event's language or as the error table's body for programs.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, ResponseError as _};
use sakshi_domain::event::{Event, EventRefusal};
use sakshi_domain::ids::EventId;
use sakshi_domain::retention::ClientRetention;
use sakshi_service::entrance::kept_query;
use sakshi_service::{Service, ServiceError};
use sakshi_web::error::ApiError;
use sakshi_web::html::page;

use crate::accept::wants_json;
use crate::language::PageLanguage;
use crate::layout::Layout;
use crate::notice::{CLOCK, CROSS, DOTS, Link, Notice, QUESTION, Retry, Subject, render_busy};

/// The refusal of a guest, with the event if it is known.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) error: ApiError,
    event: Option<Box<Event>>,
}

impl Refusal {
    /// Builds the refusal of a guest of a known event.
    pub(crate) fn for_event(event: &Event, error: ApiError) -> Self {
        Self { error, event: Some(Box::new(event.clone())) }
    }

    /// Renders the page of the refusal.
    ///
    /// # Errors
    /// The refusal itself, for a program that asks for JSON.
    pub(crate) async fn respond(
        self,
        request: &HttpRequest,
        service: &Service,
        path: &str,
    ) -> Result<HttpResponse, ApiError> {
        if wants_json(request) {
            return Err(self.error);
        }
        let language = PageLanguage::from_request(request, self.event.as_ref().map(|event| event.terms.language));
        let PageLanguage { texts, .. } = language;
        let (is_safe, query) = (request.method().is_safe(), kept_query(request.query_string()));
        // A path goes into a link only if it is an event's id.
        let path = path.parse::<EventId>().map_or_else(|_| "/".to_owned(), |id| format!("/e/{id}{query}"));
        let page_address = if is_safe { format!("{}{query}", request.path()) } else { path.clone() };
        let event = &texts.event;
        let (look, heading, words, label) = match &self.error {
            // Only a guest who pressed the button was not registered.
            ApiError::Service(ServiceError::EventRefused(EventRefusal::Full)) if is_safe => {
                (CROSS, event.full_heading, vec![event.more_places], None)
            }
            ApiError::Service(ServiceError::EventRefused(EventRefusal::Full)) => {
                (CROSS, event.full_heading, vec![event.full, event.more_places], None)
            }
            ApiError::Service(ServiceError::EventRefused(EventRefusal::Disabled)) => {
                (CLOCK, event.closed_heading, vec![event.closed], None)
            }
            ApiError::Service(ServiceError::EventRefused(EventRefusal::Expired)) => {
                (CLOCK, event.ended_heading, vec![event.ended], None)
            }
            ApiError::Service(ServiceError::CodeExpired) => {
                (CLOCK, event.scan, vec![event.code_expired, event.scan_again], None)
            }
            ApiError::Service(ServiceError::InsufficientCredits | ServiceError::BudgetSpent) => {
                (DOTS, event.unavailable_heading, vec![event.unavailable, event.ask_at_entrance], Some(texts.try_again))
            }
            ApiError::Service(ServiceError::NotFound(_)) => {
                (QUESTION, event.unknown_heading, vec![event.unknown], None)
            }
            ApiError::CrossSite => (CROSS, event.elsewhere_heading, vec![event.elsewhere], Some(event.to_event)),
            error => {
                let retry = if is_safe { Retry::Automatic } else { Retry::ByHand };
                return Ok(render_busy(service, error, language, &page_address, retry));
            }
        };
        // A guest must not learn the organiser's balance, not from the status either.
        let is_out_of_credits = self.error == ApiError::Service(ServiceError::InsufficientCredits);
        let status = if is_out_of_credits { StatusCode::OK } else { self.error.status_code() };
        let retention = self.event.as_ref().map_or_else(ClientRetention::default, |event| event.terms.retention);
        let Subject { requester, event } = Subject::load_for_event(service, self.event.as_deref()).await;
        let notice = Notice {
            layout: Layout::new(service, language, &page_address)
                .for_guests(service, retention)
                .requested_by(requester),
            look,
            event,
            heading,
            words,
            tips: Vec::new(),
            receipt: None,
            link: label.map(|label| Link { address: language.localise(&path), label, site: None, is_automatic: false }),
            retry_s: None,
            reference: None,
        };
        Ok(page(status, None, &notice))
    }
}

/// The refusal of a request whose event is unknown, in the browser's language.
impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        Self { error, event: None }
    }
}
