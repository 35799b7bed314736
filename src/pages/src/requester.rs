//! The requester, and its brand on pages: the client with its app, or the organiser of an event.

use sakshi_domain::brand::{Brand, LogoId};
use sakshi_domain::event::{Event, EventTerms, EventText};
use sakshi_domain::ids::{AppId, ClientId};
use sakshi_service::Service;
use sakshi_service::names::{DisplayNames, Names};
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
    /// Returns the client, with its app unless that has the same name. An unavailable store is ignored: a page without
    /// the name is better than none.
    pub(crate) async fn of(service: &Service, client: &ClientId, app: &AppId) -> Option<Self> {
        let DisplayNames { client, app, brand } = Names::load(service, client, app).await?;
        Some(Self { further: app.filter(|app| *app != client), name: client, brand })
    }

    /// Returns the organiser of an event with its client, because organisers' names are unverified; the client alone
    /// without an organiser.
    pub(crate) async fn of_event(service: &Service, event: &Event) -> Option<Self> {
        let client = Self::of(service, &event.client, &event.app).await?;
        let brand = event.terms.brand.clone().or(&client.brand);
        let Some(organiser) = organiser(&event.terms) else { return Some(Self { brand, ..client }) };
        // A logo stands beside the name that an operator has reviewed with it.
        let is_vetted = event.terms.brand.name.is_some() || brand.is_unset();
        let (name, further) = if is_vetted { (organiser, &*client.name) } else { (&*client.name, organiser) };
        Some(Self { name: name.to_owned(), further: Some(further.to_owned()).filter(|further| further != name), brand })
    }

    /// Returns the path of its logo.
    pub(crate) fn logo(&self) -> Option<String> {
        self.brand.logo.map(logo_path)
    }

    /// Returns the path of the picture of its events.
    pub(crate) fn picture(&self) -> Option<String> {
        self.brand.picture.map(logo_path)
    }

    /// Returns the letter in place of a logo: the first of the name, if the brand has a colour.
    pub(crate) fn initial(&self) -> Option<char> {
        let first = self.name.chars().next().filter(|first| first.is_ascii_alphanumeric());
        first.filter(|_| self.brand.colour.is_some()).map(|first| first.to_ascii_uppercase())
    }

    /// Returns the address of the style with its colour.
    pub(crate) fn style(&self) -> Option<String> {
        self.brand.colour.map(|colour| format!("/assets/brand/{}.css", &colour.to_string()[1..]))
    }

    /// Returns true if the brand has a support contact or a privacy URL.
    pub(crate) fn has_notes(&self) -> bool {
        self.brand.support.is_some() || self.brand.privacy_url.is_some()
    }
}

/// Returns the organiser with the client, or the client alone.
pub(crate) fn named(terms: &EventTerms, client: &str) -> String {
    match organiser(terms).filter(|organiser| *organiser != client) {
        Some(organiser) => format!("{organiser} · {client}"),
        None => client.to_owned(),
    }
}

/// Returns the organiser: the brand's name for the event, set by an operator, or the event's own.
fn organiser(terms: &EventTerms) -> Option<&str> {
    terms.brand.name.as_deref().or(terms.organiser.as_ref().map(EventText::as_str))
}

/// The names and the logo of an event's organiser: on kiosk, poster and ticket.
#[derive(Clone, Debug)]
pub(crate) struct Organiser {
    pub(crate) line: String,
    pub(crate) logo: Option<LogoId>,
}

impl Organiser {
    pub(crate) async fn of(service: &Service, event: &Event) -> Option<Self> {
        let DisplayNames { client, brand, .. } = Names::load(service, &event.client, &event.app).await?;
        Some(Self { line: named(&event.terms, &client), logo: event.terms.brand.logo.or(brand.logo) })
    }
}

/// Returns the name of an event's client.
pub(crate) async fn client_name(service: &Service, event: &Event) -> Option<String> {
    Some(Names::load(service, &event.client, &event.app).await?.client)
}
