//! `GET /e/{eventId}/kiosk`: the event's code for a screen at the entrance, with its state as
//! server-sent events at `GET /e/{eventId}/kiosk/events`.
//!
//! Anybody may open it. It shows the places left if the URL has `?places=1`; no other count and no guest is shown.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use actix_web::http::{Method, StatusCode};
use actix_web::web::{Bytes, Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use futures_util::stream::{Stream, StreamExt as _, once, unfold};
use sakshi_actors::EventWatch;
use sakshi_domain::event::{Event, EventStatus};
use sakshi_domain::ids::EventId;
use sakshi_service::drain::UnderWay;
use sakshi_service::error::ServiceError;
use sakshi_service::service::Service;
use sakshi_web::error::ApiError;
use sakshi_web::html::{page as rendered, private};
use sakshi_web::rate_limit::RateLimits;
use serde::Serialize;
use tokio::time::{Instant, sleep_until};

use super::event::refused::Refusal;
use super::event::{is_funded, named};
use super::files::KIOSK;
use super::frame::Frame;
use super::language::PageLanguage;
use super::qr_code::QrCode;
use super::text::Texts;

/// How long one stream lasts; the browser opens the next one by itself.
const STREAM_LIFETIME: Duration = Duration::from_secs(60);
/// How often an unchanged state is sent again: the screen takes longer silence for a lost network.
const STATE_INTERVAL: Duration = Duration::from_secs(10);
/// Tells the browser when to reconnect after the stream has ended.
const RETRY: &str = "retry: 2000\n\n";
/// The state of an event that is open while its organiser is out of credits.
const UNAVAILABLE: &str = "unavailable";

#[derive(Template)]
#[template(path = "kiosk.html")]
struct Kiosk {
    frame: Frame,
    event: Arc<Event>,
    stream: String,
    state: State,
    code: String,
}

/// The state that a screen shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct State {
    status: &'static str,
    words: &'static str,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    places_left: Option<u32>,
}

impl State {
    fn of(event: &Event, texts: &Texts, places: bool, funded: bool, service: &Service) -> Self {
        let status = event.status(service.clock.now());
        let texts = &texts.event;
        let unavailable = status == EventStatus::Active && !funded;
        Self {
            status: if unavailable { UNAVAILABLE } else { status.as_str() },
            words: if unavailable { texts.unavailable_heading } else { texts.status(status) },
            name: event.terms.name.as_str().to_owned(),
            places_left: (places && matches!(status, EventStatus::Active | EventStatus::AtCapacity)).then(|| event.remaining()),
        }
    }

    fn to_sse(&self) -> String {
        format!("event: state\ndata: {}\n\n", serde_json::to_string(self).unwrap_or_default())
    }
}

/// Shows the screen; an event that takes no guest now has one too, because it may open again.
///
/// # Errors
/// The refusal, for programs that read the error table.
pub async fn page(
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    match shown(&path, &request, &service, &rates).await {
        Ok(response) => Ok(response),
        Err(refusal) => refusal.answer(&request, &service, &path),
    }
}

async fn shown(path: &str, request: &HttpRequest, service: &Service, rates: &RateLimits) -> Result<HttpResponse, Refusal> {
    rates.pages.take(&rates.client_address(request))?;
    let event = named(service, path).await?;
    let language = PageLanguage::of(request, Texts::of(event.terms.language));
    let PageLanguage { texts, .. } = language;
    let places = shows_places(request);
    let funded = is_funded(service, &event).await.map_err(|error| Refusal::at(&event, error))?;
    let code = QrCode::for_entrance(&service.authority.event_url(event.id)).map_err(ApiError::internal)?;
    let asked = if places { "?places=1" } else { "" };
    let template = Kiosk {
        frame: Frame { script: KIOSK.url(), ..Frame::new(language, service.authority.sandbox, &format!("/e/{}/kiosk{asked}", event.id)) },
        stream: language.at(&format!("/e/{}/kiosk/events{asked}", event.id)),
        state: State::of(&event, texts, places, funded, service),
        code: code.inline(),
        event,
    };
    Ok(rendered(StatusCode::OK, None, &template))
}

/// Answers with the state now, whenever it has changed, and every few seconds.
///
/// # Errors
/// 404, 429 and 503 of the error table.
pub async fn events(
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.pages.take(&rates.client_address(&request))?;
    let id: EventId = path.parse().map_err(|_| ServiceError::NotFound("event"))?;
    let event = service.events.watch(id).await?.ok_or(ServiceError::NotFound("event"))?;
    let seen = Arc::clone(&event.borrow());
    let funded = is_funded(&service, &seen).await?;
    let mut response = private(StatusCode::OK);
    response.content_type("text/event-stream").insert_header(("x-accel-buffering", "no"));
    if request.method() == Method::HEAD {
        return Ok(response.finish());
    }
    let ends = Instant::now() + STREAM_LIFETIME;
    let places = shows_places(&request);
    let PageLanguage { texts, .. } = PageLanguage::of(&request, Texts::of(seen.terms.language));
    let screen = StateStream { id, event, texts, places, funded, told: None, ends, _under_way: service.drain.enter(), service };
    Ok(response.streaming(screen.stream()))
}

fn shows_places(request: &HttpRequest) -> bool {
    request.query_string().split('&').any(|pair| pair == "places=1")
}

/// One open stream.
struct StateStream {
    service: Data<Service>,
    id: EventId,
    event: EventWatch,
    texts: &'static Texts,
    places: bool,
    /// Read at the beginning and at every change.
    funded: bool,
    told: Option<State>,
    ends: Instant,
    _under_way: UnderWay,
}

impl StateStream {
    fn stream(mut self) -> impl Stream<Item = Result<Bytes, Infallible>> {
        let first = format!("{RETRY}{}", self.tell());
        let rest = unfold(Some(self), |screen| async move {
            let mut screen = screen?;
            let text = screen.next().await;
            let more = text.is_some().then_some(screen);
            Some((text.unwrap_or_else(|| RETRY.to_owned()), more))
        });
        once(async { first }).chain(rest).map(|text| Ok(Bytes::from(text)))
    }

    fn state(&mut self) -> State {
        State::of(&self.event.borrow_and_update(), self.texts, self.places, self.funded, &self.service)
    }

    fn tell(&mut self) -> String {
        let state = self.state();
        let text = state.to_sse();
        self.told = Some(state);
        text
    }

    /// The next text of the stream; `None` at its end.
    async fn next(&mut self) -> Option<String> {
        let now = Instant::now();
        // When the event ends its state changes without a notification.
        let left = self.event.borrow().terms.expires_at.since(self.service.clock.now());
        let to_end = if left.is_zero() { STATE_INTERVAL } else { left };
        let next_send = (now + STATE_INTERVAL.min(to_end)).min(self.ends);
        let mut followed = true;
        loop {
            tokio::select! {
                changed = self.event.changed(), if followed => followed = changed.is_ok(),
                () = sleep_until(next_send) => break,
                () = self.service.drain.begun() => return None,
            }
            let event = Arc::clone(&self.event.borrow());
            // If the store cannot answer, the last value stays.
            self.funded = is_funded(&self.service, &event).await.unwrap_or(self.funded);
            let state = self.state();
            if self.told.as_ref() != Some(&state) {
                return Some(self.tell());
            }
        }
        if Instant::now() >= self.ends {
            return None;
        }
        if !followed {
            // The watch of an ended event closes after a while, but the end may be moved.
            self.event = self.service.events.watch(self.id).await.ok()??;
        }
        Some(self.tell())
    }
}
