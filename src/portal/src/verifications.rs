//! `GET /portal/verifications`: the app's verifications, newest first, filtered and searched.

use std::collections::HashMap;

use actix_web::http::StatusCode;
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use sakshi_domain::claims::Claim;
use sakshi_domain::day_figures::Day;
use sakshi_domain::event::Event;
use sakshi_domain::ids::{AppId, EventId};
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::TransactionStatus;
use sakshi_pages::time_left::TimeLeft;
use sakshi_service::verifications::{LISTED_MAX, Listing, list, reference};
use sakshi_service::{Service, ServiceError};
use sakshi_store::{PageRequest, TransactionSummary};

use super::delivery::DeliveryTag;
use super::error::PortalError;
use super::layout::{Layout, Section, page, redirect};
use super::list_filters::{CHANNELS, EventChoice, ListFilters, STATUSES, WEBHOOKS};
use super::portal_user::PortalUser;
use super::today::Today;
use super::trial::Choice;
use super::when::{When, format_clock, format_in_words};
use super::why::{FAILURES, failure_words};

/// Most events that are searched by name and offered as a filter, newest first.
const EVENTS_MAX: u32 = 100;

/// One line of the list.
pub(super) struct Row {
    pub(super) summary: TransactionSummary,
    pub(super) opened: When,
    pub(super) status: &'static str,
    pub(super) label: &'static str,
    pub(super) reason: String,
    pub(super) webhook: Option<DeliveryTag>,
    pub(super) duration: String,
    /// Event of the verification, and its name.
    pub(super) event: Option<(EventId, String)>,
}

impl Row {
    pub(super) fn new(summary: TransactionSummary, names: &HashMap<EventId, String>, now: Timestamp) -> Self {
        let (status, label, _) =
            STATUSES.into_iter().find(|(.., status)| *status == summary.status).unwrap_or(STATUSES[0]);
        let reason = match summary.status {
            TransactionStatus::Passed => String::new(),
            TransactionStatus::Failed => failure_words(summary.code.as_deref()).to_owned(),
            TransactionStatus::Pending => format!("{} left", TimeLeft::until_expiry(&summary.opened, now)),
            TransactionStatus::Expired if summary.page_seen_at.is_some() => "Page opened, no answer".to_owned(),
            TransactionStatus::Expired => "Nobody opened the page".to_owned(),
        };
        Self {
            opened: When::recent(summary.opened.opened_at, now),
            status,
            label,
            reason,
            webhook: summary.delivery.as_ref().map(DeliveryTag::summarize),
            duration: summary
                .verified_at
                .map(|at| format_clock(at.since(summary.opened.opened_at)))
                .unwrap_or_default(),
            event: summary.opened.event.and_then(|event| Some((event, names.get(&event)?.clone()))),
            summary,
        }
    }

    /// Returns the client's own reference, or else the last group of the id, which is random enough to identify the
    /// transaction.
    fn title(&self) -> String {
        let short_id = || self.summary.opened.id.to_string().rsplit('-').next().unwrap_or_default().to_owned();
        reference(&self.summary.opened).map_or_else(short_id, str::to_owned)
    }

    /// Returns the first two claims, and the number of the others.
    fn claims(&self) -> String {
        let names: Vec<&str> = self.summary.opened.terms.claims.iter().map(Claim::name).collect();
        match &names[..] {
            [first, second, rest @ ..] if !rest.is_empty() => format!("{first}, {second} +{}", rest.len()),
            all => all.join(", "),
        }
    }
}

/// The page of the list.
#[derive(Template)]
#[template(path = "verifications.html")]
struct Page {
    layout: Layout,
    today: Today,
    statuses: Vec<Choice>,
    channels: Vec<Choice>,
    webhooks: Vec<Choice>,
    /// Reasons for failures.
    whys: Vec<Choice>,
    events: Vec<EventChoice>,
    filters: ListFilters,
    rows: Vec<Row>,
    /// Number of verifications searched.
    searched: usize,
    /// Query of the page with older verifications.
    older: Option<String>,
    /// Time back to which the list was searched, if there are older verifications.
    back_to: Option<When>,
    /// Time for which a result is kept.
    result_ttl: String,
}

/// Shows a part of the list. A search for a transaction's id redirects to the transaction.
///
/// # Errors
/// 303 to the sign-in page without a session; 503 while the store is unavailable.
pub(crate) async fn show(
    user: PortalUser,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, PortalError> {
    let filters = ListFilters::from_query(request.query_string());
    let app = &user.caller.app.app_id;
    if let Ok(id) = filters.get("find").parse() {
        let summary = service.store.summarise_transactions(vec![id]).await?.pop().flatten();
        if summary.is_some_and(|summary| summary.opened.app == *app) {
            return Ok(redirect(&format!("/portal/transactions/{id}")));
        }
    }
    let events = newest_events(&service, app).await?;
    let (filter, before) = filters.filter(&service, &user.caller, &events).await?;
    let Listing { verifications, older, read_back_to, read_count } =
        list(&service, &user.caller, &filter, before, LISTED_MAX).await?;
    let (now, names) = (service.clock.now(), event_names(&service, &events, &verifications).await?);
    let today = service
        .store
        .day_figures(app.clone(), Day::containing(now))
        .await?
        .pop()
        .map(|(_, today)| today)
        .unwrap_or_default();
    let choice = |event: &Event| {
        let (id, name) = (event.id.to_string(), event.terms.name.as_str().to_owned());
        EventChoice { is_chosen: filters.get("event") == id, id, name }
    };
    let template = Page {
        layout: user.layout(Section::Verifications, &service),
        today: Today(today),
        statuses: filters.choices("status", STATUSES.map(|(value, label, _)| (value, label))),
        channels: filters.choices("channel", CHANNELS),
        webhooks: filters.choices("webhook", WEBHOOKS.map(|(value, label)| (value.as_str(), label))),
        whys: filters.choices("why", FAILURES),
        events: events.iter().map(choice).collect(),
        rows: verifications.into_iter().map(|summary| Row::new(summary, &names, now)).collect(),
        searched: read_count,
        back_to: read_back_to.filter(|_| older.is_some()).map(When::minute),
        older: older.map(|before| filters.query_with(&[("before", &before.to_string())])),
        result_ttl: format_in_words(user.caller.limits.retention.result(service.rules.result_ttl)),
        filters,
    };
    Ok(page(StatusCode::OK, &template))
}

/// Returns the newest events of an app, newest first.
///
/// # Errors
/// Any error of the store.
pub(super) async fn newest_events(service: &Service, app: &AppId) -> Result<Vec<Event>, ServiceError> {
    let list = |page, page_size| service.store.list_events(app.clone(), PageRequest { page, page_size });
    let total = list(1, 1).await?.total;
    let last = u32::try_from(total.div_ceil(u64::from(EVENTS_MAX))).unwrap_or(u32::MAX).max(1);
    let mut newest = list(last, EVENTS_MAX).await?.items;
    if last > 1 && newest.len() < EVENTS_MAX as usize {
        newest.splice(..0, list(last - 1, EVENTS_MAX).await?.items);
    }
    newest.reverse();
    newest.truncate(EVENTS_MAX as usize);
    Ok(newest)
}

/// Returns the names of the known events, and of the events of some verifications.
///
/// # Errors
/// Any error of the store.
pub(super) async fn event_names(
    service: &Service,
    known: &[Event],
    verifications: &[TransactionSummary],
) -> Result<HashMap<EventId, String>, ServiceError> {
    let mut names: HashMap<_, _> = known.iter().map(|event| (event.id, event.terms.name.as_str().to_owned())).collect();
    for id in verifications.iter().filter_map(|summary| summary.opened.event) {
        if !names.contains_key(&id)
            && let Some(event) = service.store.load_event(id).await?
        {
            names.insert(id, event.terms.name.as_str().to_owned());
        }
    }
    Ok(names)
}
