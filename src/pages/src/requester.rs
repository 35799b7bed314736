//! The requester: the client with its app, or the organiser that an event names.

use sakshi_domain::event::{Event, EventTerms, EventText};
use sakshi_domain::ids::{AppId, ClientId};
use sakshi_service::Service;
use sakshi_service::names::{Named, Names};

/// The requester as pages name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Requester {
    pub(crate) name: String,
    /// The app, or the client of an organiser, on a line of its own.
    pub(crate) further: Option<String>,
}

impl Requester {
    /// The client, with its app unless that has the same name. A page without the name is better than none, so an unavailable
    /// store is ignored.
    pub(crate) async fn of(service: &Service, client: &ClientId, app: &AppId) -> Option<Self> {
        let Named { client, app } = Names::of(service, client, app).await?;
        Some(Self { further: app.filter(|app| *app != client), name: client })
    }

    /// The organiser of an event with its client, because anybody may call themselves anything; the client where the event names none.
    pub(crate) async fn of_event(service: &Service, event: &Event) -> Option<Self> {
        let Some(organiser) = event.terms.organiser.as_ref().map(EventText::as_str) else {
            return Self::of(service, &event.client, &event.app).await;
        };
        let client = client_name(service, event).await?;
        Some(Self { name: organiser.to_owned(), further: Some(client).filter(|client| client != organiser) })
    }
}

/// The name that stands where an event shows its organiser: on kiosk, poster and ticket.
pub(crate) async fn organiser(service: &Service, event: &Event) -> Option<String> {
    Some(named(&event.terms, &client_name(service, event).await?))
}

/// The organiser with the client, or the client alone.
pub(crate) fn named(terms: &EventTerms, client: &str) -> String {
    match terms.organiser.as_ref().map(EventText::as_str).filter(|organiser| *organiser != client) {
        Some(organiser) => format!("{organiser} · {client}"),
        None => client.to_owned(),
    }
}

/// The name of an event's client.
pub(crate) async fn client_name(service: &Service, event: &Event) -> Option<String> {
    Some(Names::of(service, &event.client, &event.app).await?.client)
}
