//! `GET /portal/events/{eventId}/live`: an event's counts as server-sent events, as they change. The stream ends when
//! the session is no longer valid.

use std::time::Duration;

use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use sakshi_domain::event::{Event, EventCounts};
use sakshi_service::events::own_event;
use sakshi_service::{Service, ServiceError};
use sakshi_web::event_stream::{Next, STATE_INTERVAL, event_stream};
use serde::Serialize;
use tokio::time::{Instant, sleep};

use super::EventState;
use crate::error::PortalError;
use crate::portal_user::StreamUser;

/// Interval at which the session is checked.
const SESSION_CHECK_INTERVAL: Duration = Duration::from_millis(900);

/// The counts that a page shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Counts {
    pub(super) status: &'static str,
    pub(super) label: &'static str,
    pub(super) registrations: u32,
    pub(super) remaining: u32,
    pub(super) duplicates: u32,
    pub(super) checked_in: u32,
    pub(super) scans: u64,
    /// Scans that timed out.
    pub(super) abandoned: u64,
    pub(super) pending: u64,
    /// Scans that were declined or failed.
    pub(super) others: u64,
    /// True if more scans timed out than guests registered.
    pub(super) is_abused: bool,
    /// Credits of the client.
    pub(super) credits: u64,
}

impl Counts {
    pub(super) fn new(event: &Event, service: &Service, credits: u64) -> Self {
        let EventState { status, label } = EventState::new(event, service);
        let EventCounts { registrations, duplicates, checked_in, scans, abandoned, pending } = event.counts;
        let counted = abandoned + pending + u64::from(registrations);
        Self {
            status,
            label,
            registrations,
            remaining: event.remaining(),
            duplicates,
            checked_in,
            scans,
            abandoned,
            pending,
            others: scans.saturating_sub(counted),
            is_abused: event.warning().is_some(),
            credits,
        }
    }

    /// Returns true while guests are turned away for lack of credits.
    pub(super) fn is_out_of_credits(&self) -> bool {
        self.status == "out_of_credits"
    }

    /// Returns true while guests are turned away because the budget is spent.
    pub(super) fn is_budget_spent(&self) -> bool {
        self.status == "budget_spent"
    }
}

/// Streams the counts now, whenever they change, and every few seconds.
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
    let client = user.caller.client.clone();
    let mut credits = service.store.balance(client.clone()).await?.unwrap_or(0);
    let mut last_sent = Counts::new(&watch.borrow_and_update(), &service, credits);
    let first = Next::State(last_sent.clone());
    // The watch closes some time after the event's end.
    let mut is_watch_open = true;
    let drain = service.drain.clone();
    Ok(event_stream(&request, &drain, Some(event.id), &first, async move || {
        let repeat_at = Instant::now() + STATE_INTERVAL;
        loop {
            tokio::select! {
                changed = watch.changed(), if is_watch_open => is_watch_open = changed.is_ok(),
                () = sleep(SESSION_CHECK_INTERVAL) => {}
            }
            if user.session.has_ended(&service).await {
                return Next::End;
            }
            let is_due = Instant::now() >= repeat_at;
            let event = service.events.latest(&mut watch, is_due).await;
            if is_due || event.counts.scans != last_sent.scans {
                // While the store is unavailable the last balance stays.
                credits = service.store.balance(client.clone()).await.ok().flatten().unwrap_or(credits);
            }
            let counts = Counts::new(&event, &service, credits);
            if is_due || counts != last_sent {
                last_sent = counts.clone();
                return Next::State(counts);
            }
        }
    })?)
}
