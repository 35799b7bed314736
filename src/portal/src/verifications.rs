//! `GET /portal/verifications`: the app's verifications, the newest first, filtered and searched.

use std::collections::HashMap;

use actix_web::http::StatusCode;
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use sakshi_domain::ids::EventId;
use sakshi_domain::transaction::TransactionStatus;
use sakshi_service::Service;
use sakshi_service::verifications::{Filter, LISTED, Listing, Verification, list};
use sakshi_web::query::Query;
use url::form_urlencoded;

use super::error::PortalError;
use super::layout::{Layout, Section, page, redirect};
use super::portal_user::PortalUser;
use super::trial::Choice;
use super::when::{When, in_words};

/// The statuses as the address has them, as people read them, and as they are.
const STATUSES: [(&str, &str, TransactionStatus); 4] = [
    ("waiting", "Waiting", TransactionStatus::Pending),
    ("verified", "Verified", TransactionStatus::Passed),
    ("not_verified", "Not verified", TransactionStatus::Failed),
    ("expired", "Expired", TransactionStatus::Expired),
];
const CHANNELS: [(&str, &str); 3] = [("web", "Web"), ("qr", "QR code"), ("app", "Native app")];

/// What was asked for, as the form shows it again.
struct Asked {
    status: String,
    channel: String,
    find: String,
    before: Option<u64>,
}

impl Asked {
    fn of(query: &str) -> Self {
        let mut query = Query::of(query);
        let before = query.number(&["before"], 0..=u64::MAX, 0);
        let mut text = |name| query.text(name).unwrap_or_default();
        Self { status: text("status"), channel: text("channel"), find: text("find"), before: (before > 0).then_some(before) }
    }

    /// An id is that of an event here; one of a transaction leads to its page.
    fn filter(&self) -> Filter {
        let find = Some(&self.find).filter(|text| !text.is_empty());
        let event: Option<EventId> = find.and_then(|text| text.parse().ok());
        Filter {
            status: STATUSES.iter().find(|(name, ..)| *name == self.status).map(|(.., status)| *status),
            channel: CHANNELS.iter().find(|(name, _)| *name == self.channel).map(|(name, _)| (*name).to_owned()),
            event,
            reference: find.filter(|_| event.is_none()).cloned(),
            ..Filter::default()
        }
    }

    /// Whether anything but the place in the list was asked for.
    fn is_filtered(&self) -> bool {
        [&self.status, &self.channel, &self.find].iter().any(|text| !text.is_empty())
    }

    /// The address of the same question, further back.
    fn at(&self, before: u64) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        for (name, text) in [("status", &self.status), ("channel", &self.channel), ("find", &self.find)] {
            if !text.is_empty() {
                query.append_pair(name, text);
            }
        }
        format!("?{}", query.append_pair("before", &before.to_string()).finish())
    }
}

/// One line of the list.
struct Row {
    found: Verification,
    at: When,
    status: &'static str,
    label: &'static str,
    /// Its event, and the event's name.
    event: Option<(EventId, String)>,
}

impl Row {
    /// The last group of the id, which is random enough to tell it from others.
    fn short_id(&self) -> String {
        self.found.txn.to_string().rsplit('-').next().unwrap_or_default().to_owned()
    }
}

#[derive(Template)]
#[template(path = "verifications.html")]
struct Page {
    layout: Layout,
    statuses: Vec<Choice>,
    channels: Vec<Choice>,
    asked: Asked,
    rows: Vec<Row>,
    older: Option<String>,
    /// How far back there is nothing, if there may be something before.
    nothing_since: Option<When>,
    /// How long a result is kept.
    kept: String,
}

/// Shows a part of the list, or leads to the transaction whose id was searched for.
///
/// # Errors
/// Nobody has signed in, or a store that is away.
pub(crate) async fn show(user: PortalUser, request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, PortalError> {
    let asked = Asked::of(request.query_string());
    if let Ok(id) = asked.find.parse() {
        let found = service.store.load_transaction(id).await?;
        if found.is_some_and(|record| record.opened().app == user.caller.app.app_id) {
            return Ok(redirect(&format!("/portal/transactions/{id}")));
        }
    }
    let Listing { verifications, older, read_back_to } = list(&service, &user.caller, &asked.filter(), asked.before, LISTED).await?;
    let names = event_names(&service, &verifications).await?;
    let row = |found: Verification| {
        let (status, label, _) = STATUSES.into_iter().find(|(.., status)| *status == found.status).unwrap_or(STATUSES[0]);
        let event = found.event.and_then(|event| Some((event, names.get(&event)?.clone())));
        Row { at: When::second(found.opened_at), status, label, event, found }
    };
    let choice = |value, label: &str, asked: &str| Choice { value, label: label.to_owned(), chosen: value == asked };
    let template = Page {
        layout: user.layout(Section::Verifications, &service),
        statuses: STATUSES.iter().map(|(value, label, _)| choice(value, label, &asked.status)).collect(),
        channels: CHANNELS.iter().map(|(value, label)| choice(value, label, &asked.channel)).collect(),
        rows: verifications.into_iter().map(row).collect(),
        nothing_since: read_back_to.filter(|_| older.is_some()).map(When::minute),
        older: older.map(|before| asked.at(before)),
        kept: in_words(service.rules.result_ttl),
        asked,
    };
    Ok(page(StatusCode::OK, &template))
}

async fn event_names(service: &Service, verifications: &[Verification]) -> Result<HashMap<EventId, String>, PortalError> {
    let mut names = HashMap::new();
    for id in verifications.iter().filter_map(|verification| verification.event) {
        if !names.contains_key(&id)
            && let Some(event) = service.store.load_event(id).await?
        {
            names.insert(id, event.terms.name.as_str().to_owned());
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_older_ones_asks_the_same() {
        let asked = Asked::of("status=verified&find=order+7%265&channel=&before=x");
        assert_eq!(asked.at(41), "?status=verified&find=order+7%265&before=41");
        assert_eq!(Asked::of(&asked.at(41)[1..]).before, Some(41));
        assert!(asked.is_filtered() && !Asked::of("before=41").is_filtered());
    }
}
