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
        if organiser(&event.terms).is_none() {
            return Some(Self { brand, ..client });
        }
        let (name, second_line) = ordered_names(&event.terms, &client.name, &client.brand);
        Some(Self { name: name.to_owned(), second_line: second_line.map(str::to_owned), brand })
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

/// Formats the organiser and the client in the order of [`ordered_names`], or the client alone.
pub(crate) fn organiser_line(terms: &EventTerms, client: &DisplayNames) -> String {
    match ordered_names(terms, &client.client, &client.brand) {
        (first, Some(second)) => format!("{first} · {second}"),
        (only, None) => only.to_owned(),
    }
}

/// Returns the organiser and the client of an event, or the client alone. An operator has reviewed a logo together with
/// a name, so that name is the first, beside the logo.
fn ordered_names<'a>(terms: &'a EventTerms, client: &'a str, client_brand: &Brand) -> (&'a str, Option<&'a str>) {
    let Some(organiser) = organiser(terms).filter(|organiser| *organiser != client) else { return (client, None) };
    let is_vetted = terms.brand.name.is_some() || (terms.brand.is_unset() && client_brand.is_unset());
    if is_vetted { (organiser, Some(client)) } else { (client, Some(organiser)) }
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
        let client = client_names(service, event).await?;
        Some(Self { line: organiser_line(&event.terms, &client), logo: event.terms.brand.logo.or(client.brand.logo) })
    }
}

/// Returns the name and the brand of an event's client; `None` while the store is unavailable.
pub(crate) async fn client_names(service: &Service, event: &Event) -> Option<DisplayNames> {
    Names::load(service, &event.client, &event.app).await
}
