//! Pages with a single message: the outcome of a transaction, an unknown one, or a request to wait.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, ResponseError as _};
use askama::Template;
use sakshi_domain::event::{Event, EventRefusal};
use sakshi_domain::ids::TxnId;
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::Pending;
use sakshi_service::Service;
use sakshi_web::error::ApiError;
use sakshi_web::html::page;
use url::Url;

use super::language::PageLanguage;
use super::layout::Layout;
use super::requester::Requester;
use super::state::PageState;
use super::text::Texts;
use super::time_left::date_and_time;

/// A link below the message.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) address: String,
    pub(super) label: &'static str,
    /// Name of the target site, and the text after it.
    pub(super) site: Option<(String, &'static str)>,
    /// True if the script follows the link after a moment.
    pub(super) is_automatic: bool,
}

/// Colour and mark of a notice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    /// Class in the style sheet, which sets the colour.
    tone: &'static str,
    /// SVG path data within 48 by 48.
    mark: &'static str,
}

const CHECK: Look = Look { tone: "good", mark: "m15 24.5 6.5 6.5L34 18" };
pub(super) const CROSS: Look = Look { tone: "bad", mark: "m17 17 14 14M31 17 17 31" };
/// Declining is a choice, not an error.
const NEUTRAL_CROSS: Look = Look { tone: "quiet", ..CROSS };
pub(super) const CLOCK: Look = Look { tone: "quiet", mark: "M24 13a11 11 0 1 0 0 22 11 11 0 0 0 0-22zm0 4.5V24l4.5 3" };
pub(super) const QUESTION: Look =
    Look { tone: "quiet asks", mark: "M18.8 19a5.3 5.3 0 1 1 8 4.6c-1.9 1.2-2.8 2.2-2.8 4.4M24 34h.1" };
pub(super) const DOTS: Look = Look { tone: "quiet", mark: "M14.5 24h.1M24 24h.1M33.5 24h.1" };

/// Seconds until a busy page is loaded again, unless the error states a time.
const RETRY_S_DEFAULT: u64 = 5;

/// The identity app's code for a person who declined (authority protocol, error codes).
const DECLINED: &str = "301";

/// The subject of a notice: the requester, and the event's name.
#[derive(Debug, Default)]
pub(super) struct Subject {
    pub(super) requester: Option<Requester>,
    pub(super) event: Option<String>,
}

impl Subject {
    /// Loads the requester and the name of an event, if the event is known.
    pub(super) async fn load_for_event(service: &Service, event: Option<&Event>) -> Self {
        let Some(event) = event else { return Self::default() };
        Self {
            requester: Requester::load_for_event(service, event).await,
            event: Some(event.terms.name.as_str().to_owned()),
        }
    }

    /// Loads the requester of a transaction, and the name of its event.
    async fn load_for_transaction(service: &Service, opened: Option<&Pending>) -> Self {
        let Some(opened) = opened else { return Self::default() };
        let event = match opened.event {
            Some(id) => service.events.get_recent(id).await.ok().flatten(),
            None => None,
        };
        match event {
            Some(event) => Self::load_for_event(service, Some(&event)).await,
            None => Self { requester: Requester::load(service, &opened.client, &opened.app).await, event: None },
        }
    }
}

/// A transaction's id that a person can quote: its last group, and the whole id on demand.
#[derive(Debug)]
pub(super) struct Reference {
    /// Last group of the id.
    pub(super) short: String,
    pub(super) whole: String,
}

impl Reference {
    pub(super) fn new(id: TxnId) -> Self {
        let whole = id.to_string();
        Self { short: whole.rsplit('-').next().unwrap_or_default().to_owned(), whole }
    }
}

/// The claims that a person has shared, and the time of sharing.
#[derive(Debug)]
pub(super) struct Receipt {
    claims: Vec<&'static str>,
    at: Timestamp,
    at_in_words: String,
}

impl Receipt {
    /// Builds the receipt of a verified person.
    fn new(service: &Service, state: &PageState, texts: &'static Texts) -> Option<Self> {
        let PageState::Verified(opened, at) = state else { return None };
        let claims = opened.terms.claims.iter().map(texts.claim).collect();
        Some(Self { claims, at: *at, at_in_words: date_and_time(*at, service.rules.time_zone, texts) })
    }
}

/// A page with a single message.
#[derive(Template)]
#[template(path = "notice.html")]
pub(super) struct Notice {
    pub(super) layout: Layout,
    pub(super) look: Look,
    /// Name of the event.
    pub(super) event: Option<String>,
    pub(super) heading: &'static str,
    /// Paragraphs below the heading.
    pub(super) words: Vec<&'static str>,
    /// A tip, and the next step.
    pub(super) tips: Vec<&'static str>,
    pub(super) receipt: Option<Receipt>,
    pub(super) link: Option<Link>,
    /// Seconds after which the page is loaded again.
    pub(super) retry_s: Option<u64>,
    pub(super) reference: Option<Reference>,
}

/// Renders the page of a transaction that is no longer pending.
pub(super) async fn render_ended(
    service: &Service,
    state: &PageState,
    language: PageLanguage,
    path: &str,
) -> HttpResponse {
    let PageLanguage { texts, .. } = language;
    let (status, look, heading, mut words) = match state {
        PageState::Waiting(_) => (StatusCode::OK, CLOCK, texts.waiting_heading, vec![texts.waiting]),
        PageState::Verified(..) => (StatusCode::OK, CHECK, texts.verified_heading, vec![texts.verified]),
        PageState::NotVerified(_, failure) if failure.code.as_deref() == Some(DECLINED) => {
            (StatusCode::OK, NEUTRAL_CROSS, texts.declined_heading, vec![texts.reason(failure)])
        }
        PageState::NotVerified(_, failure) => {
            (StatusCode::OK, CROSS, texts.not_verified_heading, vec![texts.reason(failure)])
        }
        PageState::Expired(_) => (StatusCode::GONE, CLOCK, texts.expired_heading, vec![texts.expired]),
        PageState::Unknown => (StatusCode::NOT_FOUND, QUESTION, texts.unknown_heading, vec![texts.unknown]),
    };
    let event = state.opened().and_then(|opened| opened.event);
    match state {
        PageState::NotVerified(..) | PageState::Expired(_) if event.is_none() => words.push(texts.nothing_shared),
        PageState::NotVerified(_, failure) if failure.code.as_deref() == Some(EventRefusal::Full.code()) => {
            words.push(texts.event.more_places);
        }
        // A guest can only go back to the event.
        PageState::Expired(_) if event.is_some() => words = vec![texts.event.too_late],
        _ => {}
    }
    let tips = choose_tips(state, texts);
    let link = choose_link(state, language);
    if link.is_none() && matches!(state, PageState::Verified(..)) {
        words.push(texts.close_page);
    }
    let reference = state.opened().map(|opened| Reference::new(opened.id));
    let layout = Layout::new(service, language, path);
    let layout = match state.opened() {
        Some(opened) => layout.for_transaction(service, opened),
        None => layout,
    };
    let Subject { requester, event } = Subject::load_for_transaction(service, state.opened()).await;
    let layout = layout.requested_by(requester);
    page(
        status,
        None,
        &Notice {
            layout,
            look,
            event,
            heading,
            words,
            tips,
            receipt: Receipt::new(service, state, texts),
            link,
            retry_s: None,
            reference,
        },
    )
}

/// Returns the link back to the requester. Without one, returns the link to the event after a failure.
fn choose_link(state: &PageState, language: PageLanguage) -> Option<Link> {
    let PageLanguage { texts, .. } = language;
    // After a failure, people read the reason before they follow the link.
    let is_automatic = matches!(state, PageState::Verified(..));
    let label = if is_automatic { &texts.continue_to } else { &texts.back_to };
    let redirect = state.redirect_url().map(|address| Link {
        address: address.to_owned(),
        label: label.before,
        site: Some((host(address), label.after)),
        is_automatic,
    });
    let event_link = |id| Link {
        address: language.localise(&format!("/e/{id}")),
        label: texts.event.to_event,
        site: None,
        is_automatic: false,
    };
    match state {
        PageState::NotVerified(opened, _) => redirect.or(opened.event.map(event_link)),
        PageState::Expired(opened) => redirect.or(opened.event.map(event_link)),
        _ => redirect,
    }
}

/// Returns the tip for a person who was not verified, and the next step.
fn choose_tips(state: &PageState, texts: &Texts) -> Vec<&'static str> {
    let (opened, tip) = match state {
        PageState::NotVerified(opened, failure) => (opened, texts.tip(failure)),
        PageState::Expired(opened) => (&**opened, Some(texts.tips.ready)),
        _ => return Vec::new(),
    };
    // Guests start again on the event's page, which is linked.
    let next =
        opened.event.is_none().then(|| if state.redirect_url().is_some() { texts.start_again } else { texts.new_link });
    tip.into_iter().chain(next).collect()
}

/// The way in which a page is loaded again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retry {
    /// Automatically, after a while.
    Automatic,
    /// By the person, because the request must not be repeated without one.
    ByHand,
}

/// Renders the page of an unavailable service for the page at `path`.
pub(super) fn render_busy(
    service: &Service,
    error: &ApiError,
    language: PageLanguage,
    path: &str,
    retry: Retry,
) -> HttpResponse {
    let PageLanguage { texts, .. } = language;
    if let Some(detail) = error.detail() {
        tracing::error!(error.detail = detail.as_ref(), "a page could not be rendered");
    }
    let seconds = error.retry_after().unwrap_or(RETRY_S_DEFAULT);
    let (look, heading, reason) = match error {
        ApiError::RateLimited { .. } => (CLOCK, texts.too_many_heading, texts.too_many),
        _ => (DOTS, texts.busy_heading, texts.busy),
    };
    let notice = Notice {
        layout: Layout::new(service, language, path),
        look,
        event: None,
        heading,
        words: if retry == Retry::Automatic { vec![reason, texts.busy_again] } else { vec![reason] },
        tips: Vec::new(),
        receipt: None,
        link: Some(Link { address: language.localise(path), label: texts.try_again, site: None, is_automatic: false }),
        retry_s: (retry == Retry::Automatic).then_some(seconds),
        reference: None,
    };
    page(error.status_code(), Some(seconds), &notice)
}

/// Returns the host of an address in its ASCII form, so that lookalike letters stay visible.
pub(super) fn host(address: &str) -> String {
    Url::parse(address).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default()
}
