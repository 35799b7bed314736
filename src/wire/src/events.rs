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
use crate::fields::{Fields, Place};
use crate::json::Json;
use crate::language_name::LanguageName;
use crate::text::Change;

body! { request
    /// The event to create.
    #[derive(Clone, PartialEq)]
    pub struct CreateEventRequest {
        /// The name shown to guests, 1 to 200 characters.
        name: EventText,
        /// The claims to ask for.
        claims: ClaimSet,
        /// The language of the pages and of the identity app. Default: `english`.
        language: Language,
        /// The most guests that can be verified. Scans do not count.
        max_guests: MaxGuests,
        /// The most scans that may wait for an answer at one time; each costs a credit when it begins. Default: three
        /// for each place that is left, and 20 at least.
        max_pending: Option<MaxGuests>,
        /// The most credits that guests of this event may spend. Default: all that you have.
        credit_budget: Option<CreditBudget>,
        /// `open`: everybody with the printed code can start. `kiosk`: only who scans the code on the kiosk's screen,
        /// which changes every 30 seconds. Default: `open`.
        entry: Option<EventEntry>,
        /// A person who registers again, with the same credential, device, or name and date of birth: `allow` does not
        /// look for it, `flag` registers the guest and marks it, `refuse` registers nobody twice. Default: `flag`.
        on_duplicate: Option<OnDuplicate>,
        /// The beginning, shown to guests; they can register before. It is before `expires_at`, by 366 days at most.
        starts_at: Option<Timestamp>,
        /// The place shown to guests, 1 to 200 characters.
        place: Option<EventText>,
        /// In the future, at most 366 days from now.
        expires_at: Timestamp,
        /// Receives one webhook for each registered guest.
        webhook_url: Option<WebhookUrl>,
        /// The time zone of the pages, an IANA name. Default: set by the operator. Times in this API are UTC.
        time_zone: Option<TimeZone>,
        /// The organiser shown to guests, 1 to 200 characters. Default: the name of the client.
        organiser: Option<EventText>,
        /// The purpose shown to guests, 1 to 200 characters.
        purpose: Option<EventText>,
        /// Checked, and not kept.
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
    /// Builds the terms of the event; `time_zone` is that of the installation.
    #[must_use]
    pub fn terms(self, time_zone: TimeZone) -> EventTerms {
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
            time_zone: own,
            organiser,
            purpose,
            consent: _,
        } = self;
        let time_zone = own.unwrap_or(time_zone);
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
    /// The fields to change.
    #[derive(Clone, Default, PartialEq)]
    pub struct PatchEventRequest {
        /// `false` disables the event at once, `true` enables it again.
        is_active: Change<bool>,
        /// At least the registration count.
        max_guests: Change<MaxGuests>,
        /// The most scans that may wait at one time, or null for the default.
        max_pending: Change<Option<MaxGuests>>,
        /// The most credits that guests may spend in all, or null for all that you have.
        credit_budget: Change<Option<CreditBudget>>,
        /// `open` or `kiosk`.
        entry: Change<EventEntry>,
        /// `allow`, `flag` or `refuse`, for guests from now on.
        on_duplicate: Change<OnDuplicate>,
        /// Before `expires_at`, or null for none.
        starts_at: Change<Option<Timestamp>>,
        /// 1 to 200 characters, or null for none.
        place: Change<Option<EventText>>,
        /// In the future, at most 366 days from now.
        expires_at: Change<Timestamp>,
        /// 1 to 200 characters.
        name: Change<EventText>,
        /// The new URL, or null for none.
        webhook_url: Change<Option<WebhookUrl>>,
        /// An IANA name.
        time_zone: Change<TimeZone>,
        /// 1 to 200 characters, or null for the name of the client.
        organiser: Change<Option<EventText>>,
        /// 1 to 200 characters, or null for none.
        purpose: Change<Option<EventText>>,
        /// Fields that cannot be changed.
        #[serde(skip)]
        read_only: ReadOnlyFields,
        /// Checked, and not kept.
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

/// Fields of an event that a change may repeat as they were read, so a client can send back what `GET` returned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadOnlyFields(Vec<(&'static str, Json)>);

/// Fields that the service changes by itself, and how each may differ from the current event.
const READ_ONLY: [(&str, Moves); 17] = [
    ("event_id", Moves::Never),
    ("status", Moves::Never),
    ("status_reason", Moves::Freely),
    ("claims", Moves::Never),
    ("language", Moves::Never),
    ("registration_count", Moves::Up),
    ("duplicate_count", Moves::Up),
    ("checked_in_count", Moves::Up),
    ("remaining", Moves::Down),
    ("scan_count", Moves::Up),
    ("abandoned_count", Moves::Up),
    ("pending_count", Moves::UpAndDown),
    ("warning", Moves::Freely),
    ("qr_url", Moves::Never),
    ("kiosk_url", Moves::Freely),
    ("poster_url", Moves::Freely),
    ("created_at", Moves::Never),
];

/// Change of a field between its reading and the request.
#[derive(Clone, Copy, Debug)]
enum Moves {
    Never,
    /// Guests raise it.
    Up,
    /// Guests lower it.
    Down,
    /// Guests raise and lower it, so any number that was read is ignored.
    UpAndDown,
    /// Any value that was read is ignored: credits come and go, and the kiosk's address depends on `entry`.
    Freely,
}

impl ReadOnlyFields {
    /// Returns true if none was sent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Compares them with the current event.
    ///
    /// # Errors
    /// Every field that would be changed.
    pub fn check(&self, event: &EventResponse) -> Result<(), Invalid> {
        let event = serde_json::to_value(event).unwrap_or_default();
        let mut invalid = Invalid::none();
        for ((name, sent), (_, moves)) in
            self.0.iter().filter_map(|sent| Some((sent, READ_ONLY.iter().find(|known| known.0 == sent.0)?)))
        {
            let (now, figure) = (&event[name], sent.as_whole());
            let is_unchanged = match (moves, figure, now.as_u64()) {
                (Moves::Freely | Moves::UpAndDown, ..) => true,
                (Moves::Up, Some(sent), Some(now)) => sent <= now,
                (Moves::Down, Some(sent), Some(now)) => sent >= now,
                _ => *sent == Json::from(now.clone()),
            };
            if !is_unchanged {
                invalid.add(*name, format!("is read-only and must be {now}, if it is given"));
            }
        }
        invalid.or_ok()
    }
}

impl Field for ReadOnlyFields {
    fn read(_: Json, place: &mut Place<'_>) -> Option<Self> {
        place.refuse("cannot be changed")
    }

    fn take(fields: &mut Fields<'_>, _: &'static str) -> Option<Self> {
        let read = READ_ONLY.map(|(name, moves)| {
            let value = fields.read(name, |place, value| match (moves, value) {
                (_, None) => Some(None),
                (Moves::Never, Some(value @ (Json::Text(_) | Json::List(_)))) => Some(Some(value)),
                (Moves::Freely, Some(value @ (Json::Text(_) | Json::Null))) => Some(Some(value)),
                (Moves::Up | Moves::Down | Moves::UpAndDown, Some(value)) if value.as_whole().is_some() => {
                    Some(Some(value))
                }
                _ => place.refuse("is read-only and must be as it was read, if it is given"),
            });
            value.map(|value| value.map(|value| (name, value)))
        });
        let sent: Option<Vec<_>> = read.into_iter().collect();
        sent.map(|sent| Self(sent.into_iter().flatten().collect()))
    }
}

impl Describe for ReadOnlyFields {
    const REQUIRED: bool = false;

    fn schema() -> Value {
        Value::Null
    }

    fn describe(object: &mut Properties, _: &str, _: &str, _: bool) {
        let known = schemas::<EventResponse>();
        for (name, moves) in READ_ONLY {
            let mut schema = match moves {
                // A later version may have more words.
                Moves::Freely => json!({ "type": ["string", "null"] }),
                _ => known["EventResponse"]["properties"][name].clone(),
            };
            schema["readOnly"] = true.into();
            object.add(name, schema, "Read-only. May be sent as it was read.", false);
        }
    }

    fn is_absent(&self) -> bool {
        self.is_empty()
    }
}

body! { answer
    /// The created event.
    pub struct CreateEventResponse {
        /// Identifies the event.
        event_id: EventId,
        /// The URL to print as a QR code. The event itself has `kiosk_url`, a page for a screen at the entrance.
        qr_url: String,
    }
}

body! { answer
    /// An event as its organiser sees it.
    #[derive(Clone)]
    pub struct EventResponse {
        /// Identifies the event.
        event_id: EventId,
        /// The name shown to guests.
        name: EventText,
        /// `active`, `disabled`, `expired` or `at_capacity`. If several apply: disabled before expired before
        /// at_capacity.
        status: EventStatus,
        /// Reason why an active event takes no guests now: `budget_spent` before `credits_exhausted`, or null.
        status_reason: Option<StatusReason>,
        /// False if the event is disabled.
        is_active: bool,
        /// The claims that guests are asked for.
        claims: ClaimSet,
        /// The language of its pages: its name, or its code as text if it has no accepted name.
        language: LanguageName,
        /// The most guests that can be verified. Scans do not count.
        max_guests: MaxGuests,
        /// The most scans that may wait at one time, or null for three for each place left and 20 at least.
        max_pending: Option<MaxGuests>,
        /// The most credits that guests may spend, or null.
        credit_budget: Option<CreditBudget>,
        /// `open`: the code is printed. `kiosk`: it is on the kiosk's screen alone, and changes.
        entry: EventEntry,
        /// The handling of a person who registers again.
        #[serde(default)]
        on_duplicate: OnDuplicate,
        /// Guests verified and registered.
        registration_count: u32,
        /// Guests who may have been registered before; `possible_duplicate_of` names the earlier one.
        #[serde(default)]
        duplicate_count: u32,
        /// Guests checked in at a door.
        #[serde(default)]
        checked_in_count: u32,
        /// Places left.
        remaining: u32,
        /// Scans. Each cost one credit.
        scan_count: u64,
        /// Scans that expired without an outcome.
        abandoned_count: u64,
        /// Scans that wait for an answer.
        pending_count: u64,
        /// `abandoned_scans` if more scans expired than guests registered, or null. Somebody may be spending the
        /// credits of the event: let guests start at the kiosk only, or set a budget.
        warning: Option<EventWarning>,
        /// Receives one webhook for each registered guest.
        webhook_url: Option<WebhookUrl>,
        /// The URL to print as a QR code.
        qr_url: String,
        /// A page for a screen at the entrance; `places=1` in its query shows the places left. Keep it to yourself if
        /// `entry` is `kiosk`.
        kiosk_url: String,
        /// A poster for print (HTML), which the backend fetches with its key.
        poster_url: String,
        /// The time of creation.
        created_at: Timestamp,
        /// The beginning of the event, or null.
        starts_at: Option<Timestamp>,
        /// The place shown to guests, or null.
        place: Option<EventText>,
        /// The end of the event.
        expires_at: Timestamp,
        /// The time zone of the pages, an IANA name.
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
    /// Its page for guests, to be printed.
    pub qr_url: String,
    /// Its page for a screen at the entrance.
    pub kiosk_url: String,
    /// Its poster, to be printed.
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

body! { answer
    /// A page of events.
    pub struct EventsPage {
        /// The page, from 1.
        page: u32,
        /// Rows of a page.
        page_size: u32,
        /// Events on all pages.
        total: u64,
        /// Oldest first.
        events: Vec<EventResponse>,
        /// The path of the next page; absent on the last page.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        next: Option<String>,
    }
}
