//! Events for organisers (specification, "Event").

use sakshi_domain::brand::{Brand, BrandPatch};
use sakshi_domain::claims::ClaimSet;
use sakshi_domain::event::{
    CreditBudget, Event, EventEntry, EventPatch, EventSecret, EventStatus, EventTerms, EventText, EventWarning,
    MaxGuests, OnDuplicate, StatusReason, check_end, check_start,
};
use sakshi_domain::http_url::WebhookUrl;
use sakshi_domain::ids::EventId;
use sakshi_domain::invalid::Invalid;
use sakshi_domain::language::Language;
use sakshi_domain::retention::ClientRetention;
use sakshi_domain::time::Timestamp;
use sakshi_domain::time_zone::TimeZone;
use serde_json::{Value, json};

use crate::body::{Describe, Field, Properties, body, schemas};
use crate::consent::OptionalConsent;
use crate::fields::{FieldReader, Fields};
use crate::json::Json;
use crate::language_name::LanguageName;
use crate::text::Change;

body! { request
    /// The event to create.
    #[derive(Clone, PartialEq)]
    pub struct CreateEventRequest {
        /// The name shown to guests, 1 to 200 characters.
        name: EventText,
        /// The claims to request from each guest.
        claims: ClaimSet,
        /// The language of the pages and of the identity app. Default: `english`.
        language: Language,
        /// The maximum number of registered guests.
        max_guests: MaxGuests,
        /// The maximum number of pending scans. A scan costs one credit when it starts. Default: three per remaining
        /// place, at least 20.
        max_pending: Option<MaxGuests>,
        /// The maximum number of credits that guests of this event may spend. Default: your whole balance.
        credit_budget: Option<CreditBudget>,
        /// `open`: anyone with the printed code can start. `kiosk`: guests must scan the code on the kiosk screen,
        /// which changes every 30 seconds. Default: `open`.
        entry: Option<EventEntry>,
        /// The handling of a person who registers again, with the same credential, device, or name and date of birth.
        /// `allow`: not detected. `flag`: registered and marked. `refuse`: not registered. Default: `flag`.
        on_duplicate: Option<OnDuplicate>,
        /// The start of the event, shown to guests, who can register earlier. Before `expires_at`, by at most 366 days.
        /// Default: none.
        starts_at: Option<Timestamp>,
        /// The venue shown to guests, 1 to 200 characters. Default: none.
        place: Option<EventText>,
        /// The end of the event: in the future, at most 366 days from now.
        expires_at: Timestamp,
        /// Receives one webhook for each registered guest.
        webhook_url: Option<WebhookUrl>,
        /// The time zone of the pages, an IANA name such as `Asia/Kolkata`. Default: set by the operator.
        time_zone: Option<TimeZone>,
        /// The organiser shown to guests, 1 to 200 characters. Default: the name of the client.
        organiser: Option<EventText>,
        /// The purpose shown to guests, 1 to 200 characters. Default: none.
        purpose: Option<EventText>,
        /// Validated, but not stored.
        consent: OptionalConsent,
    }
    check(fields) {
        if let (Some(end), Some(context)) = (expires_at, fields.context())
            && let Err(sentence) = check_end(end, context.now)
        {
            fields.refuse("expires_at", sentence);
        }
        if let (Some(Some(start)), Some(end)) = (starts_at, expires_at)
            && let Err(sentence) = check_start(Some(start), end)
        {
            fields.refuse("starts_at", sentence);
        }
    }
}

impl CreateEventRequest {
    /// Builds the terms of the event. `default_time_zone` is that of the installation.
    #[must_use]
    pub fn terms(self, default_time_zone: TimeZone) -> EventTerms {
        let Self {
            name,
            claims,
            language,
            max_guests,
            max_pending,
            credit_budget,
            entry,
            on_duplicate,
            starts_at,
            place,
            expires_at,
            webhook_url,
            time_zone,
            organiser,
            purpose,
            consent: _,
        } = self;
        let time_zone = time_zone.unwrap_or(default_time_zone);
        EventTerms {
            name,
            organiser,
            purpose,
            claims,
            language,
            time_zone,
            max_guests,
            max_pending,
            credit_budget,
            entry: entry.unwrap_or_default(),
            starts_at,
            place,
            expires_at,
            webhook_url,
            retention: ClientRetention::default(),
            on_duplicate: on_duplicate.unwrap_or_default(),
            secret: EventSecret::generate(),
            doors: vec![],
            brand: Brand::default(),
            is_active: true,
        }
    }
}

body! { request
    /// A change of an event. Absent fields stay unchanged.
    #[derive(Clone, Default, PartialEq)]
    pub struct PatchEventRequest {
        /// `false` disables the event immediately, `true` enables it again.
        is_active: Change<bool>,
        /// The new maximum number of registered guests, at least `registration_count`.
        max_guests: Change<MaxGuests>,
        /// The new maximum number of pending scans, or null for the default.
        max_pending: Change<Option<MaxGuests>>,
        /// The new maximum number of credits that guests may spend in total, or null for your whole balance.
        credit_budget: Change<Option<CreditBudget>>,
        /// `open` or `kiosk`, as in `createEvent`.
        entry: Change<EventEntry>,
        /// `allow`, `flag` or `refuse`, as in `createEvent`. Applies to later registrations.
        on_duplicate: Change<OnDuplicate>,
        /// The new start, before `expires_at` by at most 366 days, or null for none.
        starts_at: Change<Option<Timestamp>>,
        /// The new venue, 1 to 200 characters, or null for none.
        place: Change<Option<EventText>>,
        /// The new end: in the future, at most 366 days from now.
        expires_at: Change<Timestamp>,
        /// The new name, 1 to 200 characters.
        name: Change<EventText>,
        /// The new webhook URL, or null for none.
        webhook_url: Change<Option<WebhookUrl>>,
        /// The new time zone, an IANA name such as `Asia/Kolkata`.
        time_zone: Change<TimeZone>,
        /// The new organiser, 1 to 200 characters, or null for the name of the client.
        organiser: Change<Option<EventText>>,
        /// The new purpose, 1 to 200 characters, or null for none.
        purpose: Change<Option<EventText>>,
        /// Read-only fields.
        #[serde(skip)]
        read_only: ReadOnlyFields,
        /// Validated, but not stored.
        consent: OptionalConsent,
    }
    check(fields) {
        // A wrong end is reported with the other problems. In a body that is valid otherwise, the end is checked when
        // the change is made.
        if let (true, Some(Change(Some(end))), Some(context)) = (fields.has_problems(), expires_at, fields.context())
            && let Err(sentence) = check_end(end, context.now)
        {
            fields.refuse("expires_at", sentence);
        }
    }
}

impl PatchEventRequest {
    /// Compares the read-only fields with the current event. Fields that guests, time, credits or other fields of this
    /// change decide may differ.
    ///
    /// # Errors
    /// [`Invalid`] with every field that differs.
    pub fn check_read_only(&self, event: &EventResponse) -> Result<(), Invalid> {
        let changed = [("is_active", self.is_active.0.is_some()), ("max_guests", self.max_guests.0.is_some())];
        let changed: Vec<&str> = changed.into_iter().filter(|(_, is_sent)| *is_sent).map(|(name, _)| name).collect();
        self.read_only.check(event, &changed)
    }

    /// Returns the change.
    #[must_use]
    pub fn patch(self) -> EventPatch {
        EventPatch {
            is_active: self.is_active.0,
            max_guests: self.max_guests.0,
            max_pending: self.max_pending.0,
            credit_budget: self.credit_budget.0,
            entry: self.entry.0,
            on_duplicate: self.on_duplicate.0,
            door: None,
            starts_at: self.starts_at.0,
            place: self.place.0,
            expires_at: self.expires_at.0,
            name: self.name.0,
            webhook_url: self.webhook_url.0,
            time_zone: self.time_zone.0,
            organiser: self.organiser.0,
            purpose: self.purpose.0,
            brand: BrandPatch::default(),
            only_if: None,
        }
    }
}

/// Read-only fields in a change, by name. A change may repeat them, so that a client can send back the response to
/// `GET`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadOnlyFields(Vec<(&'static str, Json)>);

/// The read-only fields, and how far each may differ from the current event.
const READ_ONLY: [(&str, Drift); 17] = [
    ("event_id", Drift::Never),
    ("status", Drift::Status),
    ("status_reason", Drift::Freely),
    ("claims", Drift::Never),
    ("language", Drift::Never),
    ("registration_count", Drift::Up),
    ("duplicate_count", Drift::Up),
    ("checked_in_count", Drift::Up),
    ("remaining", Drift::Down),
    ("scan_count", Drift::Up),
    ("abandoned_count", Drift::Up),
    ("pending_count", Drift::UpAndDown),
    ("warning", Drift::Freely),
    ("qr_url", Drift::Never),
    ("kiosk_url", Drift::Freely),
    ("poster_url", Drift::Freely),
    ("created_at", Drift::Never),
];

/// The changes of a read-only field that may occur between a client's `GET` and its change.
#[derive(Clone, Copy, Debug)]
enum Drift {
    /// Nothing changes the field.
    Never,
    /// Guests raise the number.
    Up,
    /// Guests lower the number, and `max_guests` changes it.
    Down,
    /// Guests and time change the text, and `is_active` does.
    Status,
    /// Guests raise and lower the number, so any number is accepted.
    UpAndDown,
    /// Any text is accepted: credits come and go, and the kiosk's address depends on `entry`.
    Freely,
}

/// Returns true if two statuses are equal, or if neither is that of a disabled event.
fn is_same_but_for_guests(status: &Json, current: &Value) -> bool {
    let is_enabled = |status: &Json| {
        let Json::Text(text) = status else { return false };
        text.parse::<EventStatus>().is_ok_and(|status| status != EventStatus::Disabled)
    };
    let current = Json::from(current.clone());
    *status == current || (is_enabled(status) && is_enabled(&current))
}

impl ReadOnlyFields {
    /// Returns true if no read-only field was sent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Compares the fields with the current event, but for those that follow from a field of `changed`.
    fn check(&self, event: &EventResponse, changed: &[&str]) -> Result<(), Invalid> {
        let event = serde_json::to_value(event).unwrap_or_default();
        let mut invalid = Invalid::none();
        for (name, value) in &self.0 {
            let Some((_, drift)) = READ_ONLY.iter().find(|(field, _)| field == name) else { continue };
            let current = &event[name];
            let is_accepted = match (drift, value.as_whole(), current.as_u64()) {
                (Drift::Freely | Drift::UpAndDown, ..) => true,
                (Drift::Down, ..) if changed.contains(&"max_guests") => true,
                (Drift::Status, ..) => changed.contains(&"is_active") || is_same_but_for_guests(value, current),
                (Drift::Up, Some(number), Some(current)) => number <= current,
                (Drift::Down, Some(number), Some(current)) => number >= current,
                _ => *value == Json::from(current.clone()),
            };
            if !is_accepted {
                invalid.add(*name, format!("is read-only and must be {current}, if it is given"));
            }
        }
        invalid.or_ok()
    }
}

impl Field for ReadOnlyFields {
    fn read(_: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
        reader.refuse("cannot be changed")
    }

    fn take(fields: &mut Fields<'_>, _: &'static str) -> Option<Self> {
        let fields_read = READ_ONLY.map(|(name, drift)| {
            // `Some(None)` for an absent field; `None` for a refused value.
            let value = fields.read(name, |reader, value| match (drift, value) {
                (_, None) => Some(None),
                (Drift::Never | Drift::Status, Some(value @ (Json::Text(_) | Json::List(_)))) => Some(Some(value)),
                (Drift::Freely, Some(value @ (Json::Text(_) | Json::Null))) => Some(Some(value)),
                (Drift::Up | Drift::Down | Drift::UpAndDown, Some(value)) if value.as_whole().is_some() => {
                    Some(Some(value))
                }
                _ => reader.refuse("is read-only and must be as it was read, if it is given"),
            });
            value.map(|value| value.map(|value| (name, value)))
        });
        let valid_fields: Option<Vec<_>> = fields_read.into_iter().collect();
        valid_fields.map(|fields| Self(fields.into_iter().flatten().collect()))
    }
}

impl Describe for ReadOnlyFields {
    const REQUIRED: bool = false;

    fn schema() -> Value {
        Value::Null
    }

    fn describe(object: &mut Properties, _: &str, _: &str, _: bool) {
        let schemas = schemas::<EventResponse>();
        for (name, drift) in READ_ONLY {
            let mut schema = match drift {
                // A later version may have more values.
                Drift::Freely => json!({ "type": ["string", "null"] }),
                _ => schemas["EventResponse"]["properties"][name].clone(),
            };
            schema["readOnly"] = true.into();
            object.add_optional(name, schema, "Read-only. May be sent as it was read.");
        }
    }

    fn is_absent(&self) -> bool {
        self.is_empty()
    }
}

body! { response
    /// An event that was created.
    pub struct CreateEventResponse {
        /// Identifies the event.
        event_id: EventId,
        /// The URL to print as a QR code. `getEvent` also returns `kiosk_url`, a page for a screen at the entrance.
        qr_url: String,
    }
}

body! { response
    /// An event with its counts.
    #[derive(Clone)]
    pub struct EventResponse {
        /// Identifies the event.
        event_id: EventId,
        /// The name shown to guests.
        name: EventText,
        /// `active`, `disabled`, `expired` or `at_capacity`. If several apply, `disabled` precedes `expired`, and
        /// `expired` precedes `at_capacity`.
        status: EventStatus,
        /// The reason why an active event accepts no guests now: `budget_spent`, else `credits_exhausted`, else null.
        status_reason: Option<StatusReason>,
        /// `false` if the event is disabled.
        is_active: bool,
        /// The claims requested from each guest.
        claims: ClaimSet,
        /// The language of the pages: its name, or its code as text if requests accept no name for it.
        language: LanguageName,
        /// The maximum number of registered guests.
        max_guests: MaxGuests,
        /// The maximum number of pending scans, or null for three per remaining place, at least 20.
        max_pending: Option<MaxGuests>,
        /// The maximum number of credits that guests may spend, or null for your whole balance.
        credit_budget: Option<CreditBudget>,
        /// `open`: guests scan a printed code. `kiosk`: guests scan the changing code on the kiosk screen.
        entry: EventEntry,
        /// The handling of a person who registers again: `allow`, `flag` or `refuse`.
        #[serde(default)]
        on_duplicate: OnDuplicate,
        /// The number of registered guests.
        registration_count: u32,
        /// The number of guests who may be registered twice. `possible_duplicate_of` names the earlier registration.
        #[serde(default)]
        duplicate_count: u32,
        /// The number of guests checked in at a door.
        #[serde(default)]
        checked_in_count: u32,
        /// The number of free places: `max_guests` minus `registration_count`.
        remaining: u32,
        /// The number of scans. Each cost one credit.
        scan_count: u64,
        /// The number of scans that expired without an outcome.
        abandoned_count: u64,
        /// The number of pending scans.
        pending_count: u64,
        /// `abandoned_scans` if more scans expired than guests registered, or null. A stranger may be wasting credits:
        /// set `entry` to `kiosk`, or set a `credit_budget`.
        warning: Option<EventWarning>,
        /// Receives one webhook for each registered guest.
        webhook_url: Option<WebhookUrl>,
        /// The URL to print as a QR code.
        qr_url: String,
        /// The page for a screen at the entrance. Add `places=1` to its query to show the free places. Keep the URL
        /// secret if `entry` is `kiosk`.
        kiosk_url: String,
        /// A printable poster in HTML. Fetch it with your API key.
        poster_url: String,
        /// The time of creation.
        created_at: Timestamp,
        /// The start of the event, or null.
        starts_at: Option<Timestamp>,
        /// The venue shown to guests, or null.
        place: Option<EventText>,
        /// The end of the event.
        expires_at: Timestamp,
        /// The time zone of the pages, an IANA name such as `Asia/Kolkata`.
        time_zone: TimeZone,
        /// The organiser shown to guests, or null for the name of the client.
        organiser: Option<EventText>,
        /// The purpose shown to guests, or null.
        purpose: Option<EventText>,
    }
}

/// The addresses of an event's pages.
#[derive(Clone, Debug)]
pub struct EventAddresses {
    /// The page for guests, to be printed as a QR code.
    pub qr_url: String,
    /// The page for a screen at the entrance.
    pub kiosk_url: String,
    /// The printable poster.
    pub poster_url: String,
}

impl EventResponse {
    /// Builds the response for an event as of `now`, with the addresses of its pages.
    #[must_use]
    pub fn new(event: &Event, addresses: EventAddresses, now: Timestamp) -> Self {
        let terms = &event.terms;
        Self {
            event_id: event.id,
            name: terms.name.clone(),
            status: event.status(now),
            status_reason: event.status_reason(now),
            is_active: terms.is_active,
            claims: terms.claims,
            language: LanguageName(terms.language),
            max_guests: terms.max_guests,
            max_pending: terms.max_pending,
            credit_budget: terms.credit_budget,
            entry: terms.entry,
            on_duplicate: terms.on_duplicate,
            registration_count: event.counts.registrations,
            duplicate_count: event.counts.duplicates,
            checked_in_count: event.counts.checked_in,
            remaining: event.remaining(),
            scan_count: event.counts.scans,
            abandoned_count: event.counts.abandoned,
            pending_count: event.counts.pending,
            warning: event.warning(),
            webhook_url: terms.webhook_url.clone(),
            qr_url: addresses.qr_url,
            kiosk_url: addresses.kiosk_url,
            poster_url: addresses.poster_url,
            created_at: event.created_at,
            starts_at: terms.starts_at,
            place: terms.place.clone(),
            expires_at: terms.expires_at,
            time_zone: terms.time_zone,
            organiser: terms.organiser.clone(),
            purpose: terms.purpose.clone(),
        }
    }
}

body! { response
    /// A page of events.
    pub struct EventsPage {
        /// The number of this page, from 1.
        page: u32,
        /// Events per page.
        page_size: u32,
        /// The number of events on all pages.
        total: u64,
        /// The events of this page, oldest first.
        events: Vec<EventResponse>,
        /// Path and query of the next page; absent on the last page.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        next: Option<String>,
    }
}
