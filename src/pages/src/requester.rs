//! The requester: the client with its app, or the organiser that an event names; and the brand that pages show of them.

use sakshi_domain::brand::{Brand, LogoId};
use sakshi_domain::event::{Event, EventTerms, EventText};
use sakshi_domain::ids::{AppId, ClientId};
use sakshi_service::Service;
use sakshi_service::names::{Named, Names};
use sakshi_wire::operator::brand::logo_path;

/// The requester as pages name and show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Requester {
    pub(crate) name: String,
    /// The app, or the client of an organiser, on a line of its own.
    pub(crate) further: Option<String>,
    pub(crate) brand: Brand,
}

impl Requester {
    /// The client, with its app unless that has the same name. A page without the name is better than none, so an unavailable
    /// store is ignored.
    pub(crate) async fn of(service: &Service, client: &ClientId, app: &AppId) -> Option<Self> {
        let Named { client, app, brand } = Names::of(service, client, app).await?;
        Some(Self { further: app.filter(|app| *app != client), name: client, brand })
    }

    /// The organiser of an event with its client, because anybody may call themselves anything; the client where the event names none.
    pub(crate) async fn of_event(service: &Service, event: &Event) -> Option<Self> {
        let client = Self::of(service, &event.client, &event.app).await?;
        let brand = event.terms.brand.clone().or(&client.brand);
        let Some(organiser) = organiser(&event.terms) else { return Some(Self { brand, ..client }) };
        // A logo stands beside the name that an operator has seen with it.
        let is_vetted = event.terms.brand.name.is_some() || brand.is_unset();
        let (name, further) = if is_vetted { (organiser, &*client.name) } else { (&*client.name, organiser) };
        Some(Self { name: name.to_owned(), further: Some(further.to_owned()).filter(|further| further != name), brand })
    }

    /// The path of its logo.
    pub(crate) fn logo(&self) -> Option<String> {
        self.brand.logo.map(logo_path)
    }

    /// The path of the picture of its events.
    pub(crate) fn picture(&self) -> Option<String> {
        self.brand.picture.map(logo_path)
    }

    /// The letter in place of a logo: the first of the name, if the brand has a colour.
    pub(crate) fn initial(&self) -> Option<char> {
        let first = self.name.chars().next().filter(|first| first.is_ascii_alphanumeric());
        first.filter(|_| self.brand.colour.is_some()).map(|first| first.to_ascii_uppercase())
    }

    /// The address of the style with its colour.
    pub(crate) fn style(&self) -> Option<String> {
        self.brand.colour.map(|colour| format!("/assets/brand/{}.css", &colour.to_string()[1..]))
    }

    /// Returns true if the brand says where people get help, or what the client does with what it learns.
    pub(crate) fn has_notes(&self) -> bool {
        self.brand.support.is_some() || self.brand.privacy_url.is_some()
    }
}

/// The organiser with the client, or the client alone.
pub(crate) fn named(terms: &EventTerms, client: &str) -> String {
    match organiser(terms).filter(|organiser| *organiser != client) {
        Some(organiser) => format!("{organiser} · {client}"),
        None => client.to_owned(),
    }
}

/// The name that an operator has given the event, or its organiser.
fn organiser(terms: &EventTerms) -> Option<&str> {
    terms.brand.name.as_deref().or(terms.organiser.as_ref().map(EventText::as_str))
}

/// The names and the logo that stand where an event shows its organiser: on kiosk, poster and ticket.
#[derive(Clone, Debug)]
pub(crate) struct Organiser {
    pub(crate) line: String,
    pub(crate) logo: Option<LogoId>,
}

impl Organiser {
    pub(crate) async fn of(service: &Service, event: &Event) -> Option<Self> {
        let Named { client, brand, .. } = Names::of(service, &event.client, &event.app).await?;
        Some(Self { line: named(&event.terms, &client), logo: event.terms.brand.logo.or(brand.logo) })
    }
}

/// The name of an event's client.
pub(crate) async fn client_name(service: &Service, event: &Event) -> Option<String> {
    Some(Names::of(service, &event.client, &event.app).await?.client)
}
