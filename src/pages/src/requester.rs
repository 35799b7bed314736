//! The requester, and its brand on pages: the client with its app, or the organiser of an event.

use sakshi_domain::brand::{Brand, LogoId};
use sakshi_domain::event::{Event, EventTerms, EventText};
use sakshi_domain::ids::{AppId, ClientId};
use sakshi_service::Service;
use sakshi_service::names::{DisplayNames, Names};
use sakshi_wire::operator::brand::logo_path;

/// The name and the brand of a requester.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Requester {
    pub(crate) name: String,
    /// Second line: the app of a client, or the client of an organiser.
    pub(crate) second_line: Option<String>,
    pub(crate) brand: Brand,
}

impl Requester {
    /// Loads the client, with its app unless both have the same name. Returns `None` while the store is unavailable:
    /// the page works without the name.
    pub(crate) async fn load(service: &Service, client: &ClientId, app: &AppId) -> Option<Self> {
        let DisplayNames { client, app, brand } = Names::load(service, client, app).await?;
        Some(Self { second_line: app.filter(|app| *app != client), name: client, brand })
    }

    /// Loads the organiser of an event with its client, because organisers' names are unverified. An event without an
    /// organiser has the client alone.
    pub(crate) async fn load_for_event(service: &Service, event: &Event) -> Option<Self> {
        let client = Self::load(service, &event.client, &event.app).await?;
        let brand = event.terms.brand.clone().or(&client.brand);
        let Some(organiser) = organiser(&event.terms) else { return Some(Self { brand, ..client }) };
        // An operator has reviewed a logo together with a name, so the logo stands beside that name.
        let is_vetted = event.terms.brand.name.is_some() || brand.is_unset();
        let (name, other_name) = if is_vetted { (organiser, &*client.name) } else { (&*client.name, organiser) };
        let second_line = Some(other_name.to_owned()).filter(|other_name| other_name != name);
        Some(Self { name: name.to_owned(), second_line, brand })
    }

    /// Returns the path of the requester's logo.
    pub(crate) fn logo(&self) -> Option<String> {
        self.brand.logo.map(logo_path)
    }

    /// Returns the path of the picture for the requester's events.
    pub(crate) fn picture(&self) -> Option<String> {
        self.brand.picture.map(logo_path)
    }

    /// Returns the letter in place of a logo: the first letter of the name, if the brand has a colour.
    pub(crate) fn initial(&self) -> Option<char> {
        let first = self.name.chars().next().filter(|first| first.is_ascii_alphanumeric());
        first.filter(|_| self.brand.colour.is_some()).map(|first| first.to_ascii_uppercase())
    }

    /// Returns the address of the style with the brand's colour.
    pub(crate) fn style(&self) -> Option<String> {
        self.brand.colour.map(|colour| format!("/assets/brand/{}.css", &colour.to_string()[1..]))
    }

    /// Returns true if the brand has a support contact or a privacy URL.
    pub(crate) fn has_notes(&self) -> bool {
        self.brand.support.is_some() || self.brand.privacy_url.is_some()
    }
}

/// Formats the organiser with the client, or the client alone.
pub(crate) fn organiser_line(terms: &EventTerms, client: &str) -> String {
    match organiser(terms).filter(|organiser| *organiser != client) {
        Some(organiser) => format!("{organiser} · {client}"),
        None => client.to_owned(),
    }
}

/// Returns the name that an operator has set in the event's brand, or the organiser in the event's terms.
fn organiser(terms: &EventTerms) -> Option<&str> {
    terms.brand.name.as_deref().or(terms.organiser.as_ref().map(EventText::as_str))
}

/// The names and the logo of an event's organiser, for kiosk, poster and ticket.
#[derive(Clone, Debug)]
pub(crate) struct Organiser {
    /// Organiser and client, as [`organiser_line`] formats them.
    pub(crate) line: String,
    pub(crate) logo: Option<LogoId>,
}

impl Organiser {
    /// Loads the organiser; `None` while the store is unavailable.
    pub(crate) async fn load(service: &Service, event: &Event) -> Option<Self> {
        let DisplayNames { client, brand, .. } = Names::load(service, &event.client, &event.app).await?;
        Some(Self { line: organiser_line(&event.terms, &client), logo: event.terms.brand.logo.or(brand.logo) })
    }
}

/// Returns the name of an event's client; `None` while the store is unavailable.
pub(crate) async fn client_name(service: &Service, event: &Event) -> Option<String> {
    Some(Names::load(service, &event.client, &event.app).await?.client)
}
