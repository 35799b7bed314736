//! Notices of what needs attention: lost webhooks, low credits, events that turn guests away, keys about to expire.

use std::time::Duration;

use sakshi_domain::day_figures::{Day, DayFigures};
use sakshi_domain::event::{Event, EventStatus, StatusReason};
use sakshi_service::authentication::Caller;
use sakshi_service::{Service, ServiceError};

use super::pace::Pace;
use super::verifications::newest_events;
use super::when::When;

/// Notice is given when the balance lasts for fewer days.
const CREDIT_DAYS_MIN: u128 = 7;
/// Notice is given for this time before a key expires.
const KEY_NOTICE: Duration = Duration::from_secs(14 * 24 * 3_600);
/// Most events with a notice; further events are counted.
const EVENTS_NAMED_MAX: usize = 5;

/// A notice, with the page that has the details.
#[derive(Debug)]
pub(super) struct Notice {
    pub(super) words: String,
    pub(super) at: Option<When>,
    pub(super) path: String,
    pub(super) link: &'static str,
    pub(super) is_urgent: bool,
}

impl Notice {
    fn new(words: String, path: &str, link: &'static str) -> Self {
        Self { words, at: None, path: path.to_owned(), link, is_urgent: false }
    }

    fn urgent(self) -> Self {
        Self { is_urgent: true, ..self }
    }
}

/// Returns the notices for an app, most urgent first. `days` are the app's figures.
///
/// # Errors
/// Any error of the store.
pub(super) async fn notices(
    service: &Service,
    caller: &Caller,
    days: &[(Day, DayFigures)],
) -> Result<Vec<Notice>, ServiceError> {
    let mut notices = credit_notices(service, caller).await?;
    let lost_today = days.last().map_or(0, |(_, today)| today.lost);
    if lost_today > 0 {
        let words = if lost_today == 1 {
            "1 webhook was not delivered today.".to_owned()
        } else {
            format!("{lost_today} webhooks were not delivered today.")
        };
        notices.push(Notice::new(words, "/portal/deliveries?state=lost", "See why").urgent());
    }
    notices.extend(event_notices(service, caller).await?);
    notices.extend(key_notices(service, caller).await?);
    notices.sort_by_key(|notice| !notice.is_urgent);
    Ok(notices)
}

/// Returns the notice of a low balance. All apps of the client use the balance.
async fn credit_notices(service: &Service, caller: &Caller) -> Result<Vec<Notice>, ServiceError> {
    let (client, now) = (&caller.client, service.clock.now());
    let balance = service.store.balance(client.clone()).await?.unwrap_or(0);
    let notice = |words: String| Notice::new(words, "/portal/credits", "Credits");
    if balance == 0 {
        return Ok(vec![notice("No credits are left. No verification can be opened.".to_owned()).urgent()]);
    }
    let mut credits_by_day: Vec<u64> = Vec::new();
    for app in service.store.list_apps(client.clone()).await? {
        let days = service.store.day_figures(app.app_id, Day::containing(now)).await?;
        credits_by_day.resize(days.len(), 0);
        for (credits, (_, figures)) in credits_by_day.iter_mut().zip(&days) {
            *credits += figures.opened;
        }
    }
    let days_left = Pace::of_days(&credits_by_day, now).and_then(|pace| pace.days_left(balance));
    let is_low = caller.limits.is_low(balance, service.rules.low_credits);
    let words = match days_left.filter(|days| *days < CREDIT_DAYS_MIN) {
        Some(0) => format!("{balance} credits are left, less than for a day."),
        Some(1) => format!("{balance} credits are left, enough for about 1 day."),
        Some(days) => format!("{balance} credits are left, enough for about {days} days."),
        None if is_low => format!("{balance} credits are left."),
        None => return Ok(vec![]),
    };
    Ok(vec![notice(words)])
}

/// Returns the notices of events that turn guests away.
async fn event_notices(service: &Service, caller: &Caller) -> Result<Vec<Notice>, ServiceError> {
    let now = service.clock.now();
    let newest = newest_events(service, &caller.app.app_id).await?;
    let notice = |event: &Event| {
        let (words, is_urgent) = match (event.status_reason(now), event.status(now)) {
            (Some(StatusReason::CreditsExhausted), _) => ("turns guests away: no credits are left.", true),
            (Some(StatusReason::BudgetSpent), _) => ("turns guests away: its budget is spent.", true),
            (None, EventStatus::AtCapacity) => ("is full.", false),
            (None, _) => return None,
        };
        let words = format!("“{}” {words}", event.terms.name.as_str());
        Some(Notice { is_urgent, ..Notice::new(words, &format!("/portal/events/{}", event.id), "Event") })
    };
    let mut notices: Vec<_> = newest.iter().filter_map(notice).collect();
    if notices.len() > EVENTS_NAMED_MAX {
        let remaining = notices.len() - EVENTS_NAMED_MAX;
        notices.truncate(EVENTS_NAMED_MAX);
        notices.push(Notice::new(
            format!("{remaining} more events turn guests away or are full."),
            "/portal/events",
            "Events",
        ));
    }
    Ok(notices)
}

/// Returns the notices of keys of the client that expire soon.
async fn key_notices(service: &Service, caller: &Caller) -> Result<Vec<Notice>, ServiceError> {
    let now = service.clock.now();
    let keys = service.store.list_keys(caller.client.clone()).await?;
    let notices = keys.into_iter().filter(|key| key.revoked_at.is_none()).filter_map(|key| {
        let end = key.expires_at.filter(|end| now < *end && *end < now + KEY_NOTICE)?;
        let name = if key.label.is_empty() { key.key_id.as_str().to_owned() } else { key.label };
        let words = format!("The API key “{name}” ends on");
        Some(Notice { at: Some(When::minute(end)), ..Notice::new(words, "/portal/keys", "Keys") })
    });
    Ok(notices.collect())
}
