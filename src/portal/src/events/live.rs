//! `GET /portal/events/{eventId}/live`: an event's counts as server-sent events, as they change. The
//! stream ends when the key is no longer valid.

use std::time::Duration;

use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use sakshi_domain::event::Event;
use sakshi_service::events::own_event;
use sakshi_service::{Service, ServiceError};
use sakshi_web::error::ApiError;
use sakshi_web::event_stream::{Next, STATE_INTERVAL, event_stream};
use serde::Serialize;
use tokio::time::{Instant, sleep};

use super::status_label;
use crate::error::PortalError;
use crate::portal_user::StreamUser;

/// How often the key is checked.
const CHECK: Duration = Duration::from_millis(900);

/// The counts that a page shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Counts {
    pub(super) status: &'static str,
    pub(super) label: &'static str,
    pub(super) registrations: u32,
    pub(super) remaining: u32,
    pub(super) scans: u64,
    pub(super) abandoned: u64,
}

impl Counts {
    pub(super) fn of(event: &Event, service: &Service) -> Self {
        let status = event.status(service.clock.now());
        Self {
            status: status.as_str(),
            label: status_label(status),
            registrations: event.counts.registrations,
            remaining: event.remaining(),
            scans: event.counts.scans,
            abandoned: event.counts.abandoned,
        }
    }
}

/// Answers with the counts now, whenever they have changed, and every few seconds.
///
/// # Errors
/// 404 unless the app has such an event.
pub(crate) async fn events(
    user: StreamUser,
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, PortalError> {
    let StreamUser(user) = user;
    let event = own_event(&service, &user.caller.app.app_id, &path).await?;
    let mut watch = service.events.watch(event.id).await?.ok_or(ServiceError::NotFound("event"))?;
    let mut shown = Counts::of(&watch.borrow_and_update(), &service);
    let first = Next::State(shown.clone());
    // The watch of an ended event closes after a while.
    let mut followed = true;
    let drain = service.drain.clone();
    Ok(event_stream(&request, &drain, &first, async move || {
        let repeat = Instant::now() + STATE_INTERVAL;
        loop {
            tokio::select! {
                changed = watch.changed(), if followed => followed = changed.is_ok(),
                () = sleep(CHECK) => {}
            }
            // While the store is unavailable the key counts as valid.
            if matches!(user.session.check().await, Err(ApiError::Service(ServiceError::Unauthorized))) {
                return Next::End;
            }
            let counts = Counts::of(&watch.borrow_and_update(), &service);
            if counts != shown || Instant::now() >= repeat {
                shown = counts.clone();
                return Next::State(counts);
            }
        }
    }))
}
