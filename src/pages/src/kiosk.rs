//! `GET /e/{eventId}/kiosk`: the event's code for a screen at the entrance, with its state as server-sent events at
//! `GET /e/{eventId}/kiosk/events`.
//!
//! The page is public, unless only guests at the kiosk can start. In that case the address needs the kiosk's key, and
//! the code changes. With the key and `places=1` the page shows the places left; it shows no other count and no guest.
//! It announces each registration for a moment. With `languages=hindi,english` the call, the steps and the state
//! alternate between Hindi and English.

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
use sakshi_service::names::DisplayNames;
use sakshi_service::{Service, ServiceError};
use sakshi_web::error::ApiError;
use sakshi_web::event_stream::{Next, STATE_INTERVAL, event_stream};
use sakshi_web::html::page as html_page;
use sakshi_web::rate_limit::RateLimits;
use serde::Serialize;
use tokio::time::{Instant, sleep_until};

use super::event::refused::Refusal;
use super::event::{find_event, start_and_place};
use super::files::{KIOSK_SCRIPT, KIOSK_STYLE};
use super::language::{PageLanguage, alternating_languages};
use super::layout::Layout;
use super::qr_code::QrCode;
use super::requester::{Requester, client_names, organiser_line};
use super::text::{ALL_TEXTS, Texts};
use super::time_left::date_and_time;

/// Status of an open event that cannot accept guests, because its organiser is out of credits.
const UNAVAILABLE: &str = "unavailable";

/// The page for a screen at the entrance.
#[derive(Template)]
#[template(path = "kiosk.html")]
struct Kiosk {
    layout: Layout,
    event: Arc<Event>,
    /// Address of the server-sent events.
    stream: String,
    state: State,
    clock: ScreenClock,
    code: String,
    /// True if the screen shows the places left while the event has them.
    shows_places: bool,
    /// The texts of the languages between which the screen alternates; of a single language without alternation.
    alternating_texts: Vec<&'static Texts>,
}

impl Kiosk {
    /// Returns the attributes of an element in one of the alternating languages. Without the script only the first
    /// language is shown.
    fn alternation_attributes(&self, index: &usize) -> String {
        let Some(texts) = self.alternating_texts.get(*index).filter(|_| self.alternating_texts.len() > 1) else {
            return String::new();
        };
        format!(" lang=\"{}\" dir=\"{}\"{}", texts.tag, texts.direction, if *index == 0 { "" } else { " hidden" })
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
    /// The status in words.
    words: &'static str,
    /// `words` in the other alternating languages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    other_words: Vec<&'static str>,
    name: String,
    organiser: Option<String>,
    purpose: Option<String>,
    /// Start and place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    occasion: Vec<String>,
    /// End of the event.
    until: String,
    /// True if a guest was registered since the previous state.
    registered: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    places_left: Option<u32>,
    /// Path data of the code, if the code changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
}

/// The time on a screen, and the remaining validity of its code. A screen without a connection continues from them.
#[derive(Debug, Serialize)]
struct ScreenClock {
    /// Time by the event's clock: `18:04`.
    time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    code_valid_ms: Option<u64>,
}

impl ScreenClock {
    fn new(event: &Event, now: Timestamp) -> Self {
        let valid_for = code_time_left(now) + Duration::from_millis(CODE_SHOWN_MS.unsigned_abs());
        let code_valid_ms =
            (!event.terms.entry.is_open()).then(|| u64::try_from(valid_for.as_millis()).unwrap_or_default());
        Self { time: event.terms.time_zone.local(now).time, code_valid_ms }
    }
}

/// A state on the stream.
#[derive(Debug, Serialize)]
struct Update {
    #[serde(flatten)]
    state: State,
    #[serde(flatten)]
    clock: ScreenClock,
}

impl State {
    fn new(
        event: &Event,
        client: Option<&DisplayNames>,
        alternating_texts: &[&'static Texts],
        screen: &Screen,
        service: &Service,
    ) -> Self {
        // There is always a first language.
        let (texts, others) = alternating_texts.split_first().unwrap_or((&ALL_TEXTS[0], &[]));
        let now = service.clock.now();
        let status = event.status(now);
        let until = date_and_time(event.terms.expires_at, event.terms.time_zone, texts);
        let occasion = start_and_place(&event.terms, texts);
        let text = |text: &Option<EventText>| text.as_ref().map(|text| text.as_str().to_owned());
        let is_unavailable = event.status_reason(now).is_some();
        let words = |texts: &&'static Texts| {
            if is_unavailable { texts.event.unavailable_heading } else { texts.event.status(status) }
        };
        Self {
            status: if is_unavailable { UNAVAILABLE } else { status.as_str() },
            words: words(texts),
            other_words: others.iter().map(words).collect(),
            name: event.terms.name.as_str().to_owned(),
            organiser: client.map(|client| organiser_line(&event.terms, client)),
            purpose: text(&event.terms.purpose),
            occasion,
            until,
            registered: false,
            places_left: (screen.shows_places && matches!(status, EventStatus::Active | EventStatus::AtCapacity))
                .then(|| event.remaining()),
            code: if event.terms.entry.is_open() || screen.key.is_none() {
                None
            } else {
                current_code(event, service).ok().map(|code| code.path())
            },
        }
    }
}

/// Draws the code that guests scan now.
fn current_code(event: &Event, service: &Service) -> Result<QrCode, ApiError> {
    QrCode::for_entrance(&service.authority.code_url(event, service.clock.now())).map_err(ApiError::internal)
}

/// Renders the screen, also for an event that is closed for now, because it may open again.
///
/// # Errors
/// The refusal itself, for a program that asks for JSON.
pub(crate) async fn page(
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    match render_page(&path, &request, &service, &rates).await {
        Ok(page) => Ok(page),
        Err(refusal) => refusal.respond(&request, &service, &path).await,
    }
}

async fn render_page(
    path: &str,
    request: &HttpRequest,
    service: &Service,
    rates: &RateLimits,
) -> Result<HttpResponse, Refusal> {
    rates.pages.take(&rates.client_address(request))?;
    let event = find_event(service, path).await?;
    let screen = Screen::from_request(request, service, &event).map_err(ApiError::from)?;
    let language = screen.language(request, &event);
    let alternating_texts = language.alternating_texts(&screen.languages);
    let client = client_names(service, &event).await;
    let code = current_code(&event, service)?;
    let query = screen.query();
    let template = Kiosk {
        layout: Layout {
            style: KIOSK_STYLE.url(),
            script: KIOSK_SCRIPT.url(),
            ..Layout::new(service, language, &format!("/e/{}/kiosk{query}", event.id))
                .for_guests(service, event.terms.retention)
                .requested_by(Requester::load_for_event(service, &event).await)
        },
        stream: language.localise(&format!("/e/{}/kiosk/events{}", event.id, screen.query_with_languages())),
        state: State::new(&event, client.as_ref(), &alternating_texts, &screen, service),
        clock: ScreenClock::new(&event, service.clock.now()),
        code: code.inline(),
        shows_places: screen.shows_places,
        alternating_texts,
        event,
    };
    Ok(html_page(StatusCode::OK, None, &template))
}

/// Streams the state now, at each change, and every few seconds.
///
/// # Errors
/// 404 for an unknown event, 429 when one address sends too many requests, 503 while the store is unavailable.
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
    let client = client_names(&service, &event).await;
    let screen = Screen::from_request(&request, &service, &event)?;
    let alternating_texts = screen.language(&request, &event).alternating_texts(&screen.languages);
    let mut last_sent = State::new(&event, client.as_ref(), &alternating_texts, &screen, &service);
    let mut registrations = event.counts.registrations;
    let first = Next::State(Update { state: last_sent.clone(), clock: ScreenClock::new(&event, service.clock.now()) });
    let drain = service.drain.clone();
    event_stream(&request, &drain, Some(id), &first, async move || {
        // The end of the event changes the state without a notification.
        let now = service.clock.now();
        let (until_end, is_open) = {
            let terms = &watch.borrow().terms;
            (terms.expires_at.since(now), terms.entry.is_open())
        };
        let repeat_after = if until_end.is_zero() { STATE_INTERVAL } else { STATE_INTERVAL.min(until_end) };
        // A changing code changes the state, too.
        let repeat_at = Instant::now() + if is_open { repeat_after } else { repeat_after.min(code_time_left(now)) };
        let mut is_watch_open = true;
        loop {
            let is_due = tokio::select! {
                changed = watch.changed(), if is_watch_open => { is_watch_open = changed.is_ok(); false }
                () = sleep_until(repeat_at) => true,
            };
            if is_due && !is_watch_open {
                // The watch closes some time after the event's end, but the organiser may move the end.
                match service.events.watch(id).await {
                    Ok(Some(event)) => watch = event,
                    _ => return Next::End,
                }
            }
            let event = service.events.latest(&mut watch, is_due).await;
            if !screen.may_show(&event) {
                return Next::End;
            }
            let previous = std::mem::replace(&mut registrations, event.counts.registrations);
            let state = State {
                registered: registrations > previous,
                ..State::new(&event, client.as_ref(), &alternating_texts, &screen, &service)
            };
            if is_due || state != last_sent {
                last_sent = State { registered: false, ..state.clone() };
                return Next::State(Update { state, clock: ScreenClock::new(&event, service.clock.now()) });
            }
        }
    })
}

/// Returns the time until the displayed code changes.
fn code_time_left(now: Timestamp) -> Duration {
    Duration::from_millis((CODE_SHOWN_MS - now.millis().rem_euclid(CODE_SHOWN_MS)).unsigned_abs())
}

/// The options of a screen, from its address.
struct Screen {
    /// Parameter `key=…`, if the key is right.
    key: Option<String>,
    /// Parameter `places=1`: the screen shows the places left.
    shows_places: bool,
    /// Languages that alternate.
    languages: Vec<Language>,
}

impl Screen {
    /// Parses the options.
    ///
    /// # Errors
    /// [`ServiceError::NotFound`] if the kiosk requires the key and the query lacks it.
    fn from_request(request: &HttpRequest, service: &Service, event: &Event) -> Result<Self, ServiceError> {
        let query = request.query_string();
        let key = query
            .split('&')
            .find(|pair| pair.starts_with("key="))
            .filter(|_| service.authority.has_kiosk_key(event.id, query));
        let shows_places = key.is_some() && query.split('&').any(|pair| pair == "places=1");
        let screen = Self { key: key.map(str::to_owned), shows_places, languages: alternating_languages(query) };
        if screen.may_show(event) { Ok(screen) } else { Err(ServiceError::NotFound("event")) }
    }

    /// Returns true unless the event requires a key that the address lacks.
    const fn may_show(&self, event: &Event) -> bool {
        self.key.is_some() || event.terms.entry.is_open()
    }

    /// Returns the language of the page: the first alternating language, or the event's.
    fn language(&self, request: &HttpRequest, event: &Event) -> PageLanguage {
        PageLanguage::from_request(request, Some(self.languages.first().copied().unwrap_or(event.terms.language)))
    }

    /// Returns the query of the same screen, with the alternating languages.
    fn query_with_languages(&self) -> String {
        let query = self.query();
        let names: Vec<_> = self.languages.iter().map(|language| language.code().to_string()).collect();
        match (names.is_empty(), query.is_empty()) {
            (true, _) => query,
            (false, true) => format!("?languages={}", names.join(",")),
            (false, false) => format!("{query}&languages={}", names.join(",")),
        }
    }

    /// Returns the query of the same screen, without the alternating languages: a link chooses a single language.
    fn query(&self) -> String {
        let places = if self.shows_places { "&places=1" } else { "" };
        self.key.as_ref().map_or_else(String::new, |key| format!("?{key}{places}"))
    }
}
