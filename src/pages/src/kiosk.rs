//! `GET /e/{eventId}/kiosk`: the event's code for a screen at the entrance, with its state as server-sent events at
//! `GET /e/{eventId}/kiosk/events`.
//!
//! The page is public, unless only guests at the kiosk can start: then the address needs the kiosk's key, and the code
//! changes. With the key and `places=1` it shows the places left; no other count and no guest is shown. It announces
//! each registration for a moment. With `languages=hindi,english` the call, the steps and the state alternate between
//! those languages.

use std::sync::Arc;
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use sakshi_domain::event::{Event, EventStatus, EventText};
use sakshi_domain::ids::EventId;
use sakshi_domain::language::Language;
use sakshi_domain::time::Timestamp;
use sakshi_service::entrance::CODE_SHOWN_MS;
use sakshi_service::{Service, ServiceError};
use sakshi_web::error::ApiError;
use sakshi_web::event_stream::{Next, STATE_INTERVAL, event_stream};
use sakshi_web::html::page as rendered;
use sakshi_web::rate_limit::RateLimits;
use serde::Serialize;
use tokio::time::{Instant, sleep_until};

use super::event::refused::Refusal;
use super::event::{find_event, occasion};
use super::files::{KIOSK, KIOSK_STYLE};
use super::language::{PageLanguage, in_turn};
use super::layout::Layout;
use super::qr_code::QrCode;
use super::requester::{Requester, client_name, named};
use super::text::{TABLES, Texts};
use super::time_left::date_and_time;

/// State of an open event whose organiser is out of credits.
const UNAVAILABLE: &str = "unavailable";

#[derive(Template)]
#[template(path = "kiosk.html")]
struct Kiosk {
    layout: Layout,
    event: Arc<Event>,
    stream: String,
    state: State,
    moment: Moment,
    code: String,
    /// Texts that alternate.
    turns: Vec<&'static Texts>,
}

impl Kiosk {
    /// Returns the attributes of an element that alternates. Without the script only the first language is shown.
    fn mark(&self, at: &usize) -> String {
        let Some(texts) = self.turns.get(*at).filter(|_| self.turns.len() > 1) else { return String::new() };
        format!(" lang=\"{}\" dir=\"{}\"{}", texts.tag, texts.direction, if *at == 0 { "" } else { " hidden" })
    }

    /// Returns the state in each language.
    fn words(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.state.words).chain(self.state.other_words.iter().copied())
    }
}

/// The state that a screen shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct State {
    status: &'static str,
    words: &'static str,
    /// The same in the other languages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    other_words: Vec<&'static str>,
    name: String,
    organiser: Option<String>,
    purpose: Option<String>,
    /// Start and place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    occasion: Vec<String>,
    until: String,
    /// True if a guest was registered since the previous state.
    registered: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    places_left: Option<u32>,
    /// Path of the code, where it changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
}

/// The time of a state and the remaining validity of its code, for a screen that loses its connection.
#[derive(Debug, Serialize)]
struct Moment {
    /// Time by the event's clock: `18:04`.
    time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    code_valid_ms: Option<u64>,
}

impl Moment {
    fn of(event: &Event, now: Timestamp) -> Self {
        let valid = code_left(now) + Duration::from_millis(CODE_SHOWN_MS.unsigned_abs());
        let code_valid_ms =
            (!event.terms.entry.is_open()).then(|| u64::try_from(valid.as_millis()).unwrap_or_default());
        Self { time: event.terms.time_zone.local(now).time, code_valid_ms }
    }
}

/// A state on the stream.
#[derive(Debug, Serialize)]
struct Update {
    #[serde(flatten)]
    state: State,
    #[serde(flatten)]
    moment: Moment,
}

impl State {
    fn of(event: &Event, client: Option<&str>, turns: &[&'static Texts], screen: &Screen, service: &Service) -> Self {
        let (texts, others) = turns.split_first().unwrap_or((&TABLES[0], &[]));
        let now = service.clock.now();
        let status = event.status(now);
        let until = date_and_time(event.terms.expires_at, event.terms.time_zone, texts);
        let occasion = occasion(&event.terms, texts);
        let text = |text: &Option<EventText>| text.as_ref().map(|text| text.as_str().to_owned());
        let unavailable = event.status_reason(now).is_some();
        let words = |texts: &&'static Texts| {
            if unavailable { texts.event.unavailable_heading } else { texts.event.status(status) }
        };
        Self {
            status: if unavailable { UNAVAILABLE } else { status.as_str() },
            words: words(texts),
            other_words: others.iter().map(words).collect(),
            name: event.terms.name.as_str().to_owned(),
            organiser: client.map(|client| named(&event.terms, client)),
            purpose: text(&event.terms.purpose),
            occasion,
            until,
            registered: false,
            places_left: (screen.places && matches!(status, EventStatus::Active | EventStatus::AtCapacity))
                .then(|| event.remaining()),
            code: if event.terms.entry.is_open() || screen.key.is_none() {
                None
            } else {
                code(event, service).ok().map(|code| code.path())
            },
        }
    }
}

/// Returns the current code.
fn code(event: &Event, service: &Service) -> Result<QrCode, ApiError> {
    QrCode::for_entrance(&service.authority.code_url(event, service.clock.now())).map_err(ApiError::internal)
}

/// Renders the screen. An event that accepts no guests now has one too, because it may open again.
///
/// # Errors
/// The refusal, for programs that read the error table.
pub(crate) async fn page(
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    match shown(&path, &request, &service, &rates).await {
        Ok(page) => Ok(page),
        Err(refusal) => refusal.answer(&request, &service, &path).await,
    }
}

async fn shown(
    path: &str,
    request: &HttpRequest,
    service: &Service,
    rates: &RateLimits,
) -> Result<HttpResponse, Refusal> {
    rates.pages.take(&rates.client_address(request))?;
    let event = find_event(service, path).await?;
    let screen = Screen::of(request, service, &event).map_err(ApiError::from)?;
    let language = screen.language(request, &event);
    let turns = language.in_turn(&screen.languages);
    let client = client_name(service, &event).await;
    let code = code(&event, service)?;
    let asked = screen.query();
    let template = Kiosk {
        layout: Layout {
            style: KIOSK_STYLE.url(),
            script: KIOSK.url(),
            ..Layout::new(service, language, &format!("/e/{}/kiosk{asked}", event.id))
                .for_guests(service, event.terms.retention)
                .requested_by(Requester::of_event(service, &event).await)
        },
        stream: language.at(&format!("/e/{}/kiosk/events{}", event.id, screen.query_with_languages())),
        state: State::of(&event, client.as_deref(), &turns, &screen, service),
        moment: Moment::of(&event, service.clock.now()),
        code: code.inline(),
        turns,
        event,
    };
    Ok(rendered(StatusCode::OK, None, &template))
}

/// Streams the state now, at each change, and every few seconds.
///
/// # Errors
/// 404, 429 and 503 of the error table.
pub(crate) async fn events(
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.pages.take(&rates.client_address(&request))?;
    let id: EventId = path.parse().map_err(|_| ServiceError::NotFound("event"))?;
    let mut watch = service.events.watch(id).await?.ok_or(ServiceError::NotFound("event"))?;
    let event = Arc::clone(&watch.borrow_and_update());
    let client = client_name(&service, &event).await;
    let screen = Screen::of(&request, &service, &event)?;
    let turns = screen.language(&request, &event).in_turn(&screen.languages);
    let mut shown = State::of(&event, client.as_deref(), &turns, &screen, &service);
    let mut registrations = event.counts.registrations;
    let first = Next::State(Update { state: shown.clone(), moment: Moment::of(&event, service.clock.now()) });
    let drain = service.drain.clone();
    event_stream(&request, &drain, Some(id), &first, async move || {
        // The end of the event changes the state without a notification.
        let now = service.clock.now();
        let (left, is_open) = {
            let terms = &watch.borrow().terms;
            (terms.expires_at.since(now), terms.entry.is_open())
        };
        let left = if left.is_zero() { STATE_INTERVAL } else { STATE_INTERVAL.min(left) };
        // So does a code that changes.
        let repeat = Instant::now() + if is_open { left } else { left.min(code_left(now)) };
        let mut followed = true;
        loop {
            let is_due = tokio::select! {
                changed = watch.changed(), if followed => { followed = changed.is_ok(); false }
                () = sleep_until(repeat) => true,
            };
            if is_due && !followed {
                // The watch of an ended event closes after a while, but the end may be moved.
                match service.events.watch(id).await {
                    Ok(Some(event)) => watch = event,
                    _ => return Next::End,
                }
            }
            let event = service.events.latest(&mut watch, is_due).await;
            if !screen.may_show(&event) {
                return Next::End;
            }
            let before = std::mem::replace(&mut registrations, event.counts.registrations);
            let state = State {
                registered: registrations > before,
                ..State::of(&event, client.as_deref(), &turns, &screen, &service)
            };
            if is_due || state != shown {
                shown = State { registered: false, ..state.clone() };
                return Next::State(Update { state, moment: Moment::of(&event, service.clock.now()) });
            }
        }
    })
}

/// Returns the remaining time of the displayed code.
fn code_left(now: Timestamp) -> Duration {
    Duration::from_millis((CODE_SHOWN_MS - now.millis().rem_euclid(CODE_SHOWN_MS)).unsigned_abs())
}

/// The options of a screen, from its address.
struct Screen {
    /// Parameter with the key, if it is right.
    key: Option<String>,
    places: bool,
    /// Languages that alternate.
    languages: Vec<Language>,
}

impl Screen {
    /// Parses the options.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] if the kiosk requires the key and the query lacks it.
    fn of(request: &HttpRequest, service: &Service, event: &Event) -> Result<Self, ServiceError> {
        let query = request.query_string();
        let key = query
            .split('&')
            .find(|pair| pair.starts_with("key="))
            .filter(|_| service.authority.has_kiosk_key(event.id, query));
        let places = key.is_some() && query.split('&').any(|pair| pair == "places=1");
        let screen = Self { key: key.map(str::to_owned), places, languages: in_turn(query) };
        if screen.may_show(event) { Ok(screen) } else { Err(ServiceError::NotFound("event")) }
    }

    /// Returns true if the screen may be shown. It needs the key where only guests at the kiosk can start.
    const fn may_show(&self, event: &Event) -> bool {
        self.key.is_some() || event.terms.entry.is_open()
    }

    /// Returns the language of the page: the first of the alternating ones, or that of the event.
    fn language(&self, request: &HttpRequest, event: &Event) -> PageLanguage {
        PageLanguage::of(request, Some(self.languages.first().copied().unwrap_or(event.terms.language)))
    }

    fn query_with_languages(&self) -> String {
        let query = self.query();
        let names: Vec<_> = self.languages.iter().map(|language| language.code().to_string()).collect();
        match (names.is_empty(), query.is_empty()) {
            (true, _) => query,
            (false, true) => format!("?languages={}", names.join(",")),
            (false, false) => format!("{query}&languages={}", names.join(",")),
        }
    }

    /// Returns the query of the same screen. Links to other languages set one, which stays.
    fn query(&self) -> String {
        let places = if self.places { "&places=1" } else { "" };
        self.key.as_ref().map_or_else(String::new, |key| format!("?{key}{places}"))
    }
}
