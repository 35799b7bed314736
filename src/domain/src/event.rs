//! Events: one printed QR code that many guests scan; each scan opens a verification (specification,
//! "Event").
//!
//! The status of an event is not stored, but computed from its terms, its counts and the time.

mod change;
mod guests;

use serde::{Deserialize, Serialize};

pub use self::change::{EventPatch, check_end, check_start};
pub use self::guests::{
    CheckIn, CheckInId, Door, DoorChange, DoorId, EventSecret, OnDuplicate, Pin, RegistrationCode, Trait,
};

use crate::brand::Brand;
use crate::claims::ClaimSet;
use crate::http_url::WebhookUrl;
use crate::ids::{AppId, ClientId, EventId};
use crate::language::Language;
use crate::limits::{EVENT_BUDGET_MAX, EVENT_NAME_CHARS_MAX, GUESTS_MAX, PENDING_SCANS_MIN};
use crate::retention::ClientRetention;
use crate::string_enum::string_enum;
use crate::time::Timestamp;
use crate::time_zone::TimeZone;
use crate::unseen::is_unseen;

/// The terms of an event, from the organiser's request; a patch can change some of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventTerms {
    /// The label shown to guests.
    pub name: EventText,
    /// The claims requested from each guest.
    pub claims: ClaimSet,
    /// The organiser's name, if it differs from the client's; shown to guests.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub organiser: Option<EventText>,
    /// The purpose shown to guests.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub purpose: Option<EventText>,
    /// The language of the pages.
    pub language: Language,
    /// The time zone of the pages.
    #[serde(default)]
    pub time_zone: TimeZone,
    /// The limit on registrations.
    pub max_guests: MaxGuests,
    /// The limit on pending scans, each of which has cost a credit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max_pending: Option<MaxGuests>,
    /// The limit on credits that guests spend.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub credit_budget: Option<CreditBudget>,
    /// The way in which guests can start.
    #[serde(skip_serializing_if = "EventEntry::is_open", default)]
    pub entry: EventEntry,
    /// The start shown to guests, who can register earlier.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub starts_at: Option<Timestamp>,
    /// The venue shown to guests.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub place: Option<EventText>,
    /// End of the event.
    pub expires_at: Timestamp,
    /// URL that receives one webhook per registered guest.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub webhook_url: Option<WebhookUrl>,
    /// The client's own retention times, if any.
    #[serde(skip_serializing_if = "ClientRetention::is_usual", default)]
    pub retention: ClientRetention,
    /// The handling of a person who registers again.
    #[serde(skip_serializing_if = "OnDuplicate::is_flag", default)]
    pub on_duplicate: OnDuplicate,
    /// The secret key for codes and digests of guests.
    pub secret: EventSecret,
    /// The doors for check-in.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub doors: Vec<Door>,
    /// The brand set by the operator; it overrides the client's.
    #[serde(skip_serializing_if = "Brand::is_unset", default)]
    pub brand: Brand,
    /// False while the organiser has disabled the event.
    pub is_active: bool,
}

/// A text of 1 to 200 visible characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventText(std::sync::Arc<str>);

impl EventText {
    /// Parses a text.
    ///
    /// # Errors
    /// A message that states the accepted form.
    pub fn parse(text: &str) -> Result<Self, String> {
        let count = text.chars().count();
        if text.trim().is_empty() || count > EVENT_NAME_CHARS_MAX || text.chars().any(is_unseen) {
            return Err(format!(
                "must be 1 to {EVENT_NAME_CHARS_MAX} characters, not all blank, without control characters"
            ));
        }
        Ok(Self(text.into()))
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A limit of 1 to `MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Limit<const MAX: u32>(u32);

/// A limit on guests.
pub type MaxGuests = Limit<GUESTS_MAX>;

/// A limit on credits that the guests of an event spend.
pub type CreditBudget = Limit<EVENT_BUDGET_MAX>;

impl<const MAX: u32> Limit<MAX> {
    /// Parses a limit.
    ///
    /// # Errors
    /// A message that names the bounds.
    pub fn new(count: u64) -> Result<Self, String> {
        match u32::try_from(count) {
            Ok(count) if (1..=MAX).contains(&count) => Ok(Self(count)),
            _ => Err(format!("must be a whole number from 1 to {MAX}")),
        }
    }

    /// Returns the number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

string_enum!(
    /// The way in which guests can start at an event.
    #[derive(Default)]
    EventEntry {
        /// Anyone with the printed code can start.
        #[default]
        Open = "open",
        /// Guests must scan the changing code on a kiosk screen.
        Kiosk = "kiosk",
    }
);

impl EventEntry {
    /// Returns true if anyone with the printed code can start.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        matches!(self, Self::Open)
    }
}

/// The counts of an event so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventCounts {
    /// Registered guests.
    pub registrations: u32,
    /// Registered guests who may be registered twice.
    pub duplicates: u32,
    /// Registered guests who are checked in.
    pub checked_in: u32,
    /// Transactions opened by guests; each cost a credit.
    pub scans: u64,
    /// Scans that expired without an outcome.
    pub abandoned: u64,
    /// Pending scans.
    pub pending: u64,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The id, which is part of the printed URL.
    pub id: EventId,
    /// The client that pays for the scans.
    pub client: ClientId,
    /// The app that created the event. No other app may read it.
    pub app: AppId,
    /// Time of creation.
    pub created_at: Timestamp,
    /// The terms.
    pub terms: EventTerms,
    /// The counts.
    pub counts: EventCounts,
    /// True if the client's credits covered one more guest at the time of reading.
    pub is_funded: bool,
}

string_enum!(
    /// The status of an event at a moment.
    EventStatus {
        /// Guests can be verified.
        Active = "active",
        /// The organiser has disabled the event.
        Disabled = "disabled",
        /// The end has passed.
        Expired = "expired",
        /// Every place is taken.
        AtCapacity = "at_capacity",
    }
);

string_enum!(
    /// The reason why an active event admits no guest now.
    StatusReason {
        /// The client's credits do not cover one more guest.
        CreditsExhausted = "credits_exhausted",
        /// The guests have spent the credit budget of the event.
        BudgetSpent = "budget_spent",
    }
);

string_enum!(
    /// A hint for the organiser.
    EventWarning {
        /// More scans expired than guests registered.
        AbandonedScans = "abandoned_scans",
    }
);

impl Event {
    /// Returns the status at `now`: the first that applies of disabled, expired, at capacity, active.
    #[must_use]
    pub fn status(&self, now: Timestamp) -> EventStatus {
        if !self.terms.is_active {
            EventStatus::Disabled
        } else if now >= self.terms.expires_at {
            EventStatus::Expired
        } else if self.remaining() == 0 {
            EventStatus::AtCapacity
        } else {
            EventStatus::Active
        }
    }

    /// Returns the reason why the event admits no guest at `now` although it is active.
    #[must_use]
    pub fn status_reason(&self, now: Timestamp) -> Option<StatusReason> {
        if self.status(now) != EventStatus::Active {
            None
        } else if self.is_budget_spent() {
            Some(StatusReason::BudgetSpent)
        } else {
            (!self.is_funded).then_some(StatusReason::CreditsExhausted)
        }
    }

    /// Returns the hint for the organiser, if any.
    #[must_use]
    pub fn warning(&self) -> Option<EventWarning> {
        (self.counts.abandoned > self.counts.registrations.into()).then_some(EventWarning::AbandonedScans)
    }

    /// Returns true if the guests have spent the credit budget. Each scan costs one credit.
    #[must_use]
    pub fn is_budget_spent(&self) -> bool {
        self.terms.credit_budget.is_some_and(|budget| self.counts.scans >= budget.get().into())
    }

    /// Returns the number of guests who can still register.
    #[must_use]
    pub const fn remaining(&self) -> u32 {
        self.terms.max_guests.get().saturating_sub(self.counts.registrations)
    }

    /// Returns true if `guests` more guests fit within the places, the credit budget and the client's credits.
    #[must_use]
    pub fn has_room_for(&self, guests: u32) -> bool {
        let budget = self
            .terms
            .credit_budget
            .map_or(u64::MAX, |budget| u64::from(budget.get()).saturating_sub(self.counts.scans));
        self.is_funded && self.remaining() >= guests && budget >= guests.into()
    }

    /// Returns the limit on pending scans, which bounds the credits that strangers can waste by scanning a printed
    /// code. Default: three per free place, at least [`PENDING_SCANS_MIN`].
    #[must_use]
    pub fn pending_max(&self) -> u32 {
        self.terms.max_pending.map_or_else(|| self.remaining().saturating_mul(3).max(PENDING_SCANS_MIN), MaxGuests::get)
    }
}

/// The reason why a guest is not registered at an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventRefusal {
    /// The event is disabled.
    Disabled,
    /// The event has ended.
    Expired,
    /// Every place is taken.
    Full,
    /// The person is registered already.
    Duplicate,
}

impl EventRefusal {
    /// Returns the reason why an event with this status admits no guests; `None` if it is active.
    #[must_use]
    pub const fn from_status(status: EventStatus) -> Option<Self> {
        match status {
            EventStatus::Active => None,
            EventStatus::Disabled => Some(Self::Disabled),
            EventStatus::Expired => Some(Self::Expired),
            EventStatus::AtCapacity => Some(Self::Full),
        }
    }

    /// Returns the `error_code` of a verification that failed for this reason.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Disabled | Self::Expired => "event_closed",
            Self::Full => "event_full",
            Self::Duplicate => "already_registered",
        }
    }

    /// Returns the message in results and webhooks.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Self::Disabled => "The event was disabled",
            Self::Expired => "The event has ended",
            Self::Full => "The event is full",
            Self::Duplicate => "This person is already registered",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::limits::EVENT_LIFETIME_MAX;

    const START: Timestamp = Timestamp::from_millis(1_000_000);

    /// Returns an event with ten places, for one minute.
    fn event(registrations: u32) -> Event {
        let client = ClientId::generate();
        Event {
            id: EventId::generate(client.partition(), 0),
            client,
            app: AppId::generate(),
            created_at: START,
            terms: EventTerms {
                name: EventText::parse("Open day").unwrap(),
                claims: ClaimSet::parse(&["name"]).unwrap(),
                language: Language::ENGLISH,
                time_zone: TimeZone::INDIA,
                organiser: None,
                purpose: None,
                max_guests: MaxGuests::new(10).unwrap(),
                max_pending: None,
                credit_budget: None,
                entry: EventEntry::Open,
                starts_at: None,
                place: None,
                expires_at: START + Duration::from_secs(60),
                webhook_url: None,
                retention: ClientRetention::default(),
                on_duplicate: OnDuplicate::Flag,
                secret: EventSecret::fixed(1),
                doors: vec![],
                brand: Brand::default(),
                is_active: true,
            },
            counts: EventCounts { registrations, ..EventCounts::default() },
            is_funded: true,
        }
    }

    #[test]
    fn disabled_precedes_expired_and_expired_precedes_at_capacity() {
        let end = START + Duration::from_secs(60);
        let full = event(10);
        assert_eq!(event(9).status(START), EventStatus::Active);
        assert_eq!(full.status(START), EventStatus::AtCapacity);
        assert_eq!(full.status(end), EventStatus::Expired);
        let mut disabled = full;
        disabled.terms.is_active = false;
        assert_eq!(disabled.status(end), EventStatus::Disabled);
    }

    #[test]
    fn the_default_limit_on_pending_scans_is_three_per_place_and_at_least_twenty() {
        assert_eq!([event(0), event(3), event(4), event(10)].map(|event| event.pending_max()), [30, 21, 20, 20]);
        let mut limited = event(0);
        limited.terms.max_pending = Some(MaxGuests::new(2).unwrap());
        assert_eq!(limited.pending_max(), 2);
    }

    #[test]
    fn only_an_active_event_without_credits_or_budget_has_a_reason() {
        let unfunded = |registrations| Event { is_funded: false, ..event(registrations) };
        assert_eq!(event(9).status_reason(START), None);
        assert_eq!(unfunded(9).status_reason(START), Some(StatusReason::CreditsExhausted));
        assert_eq!(unfunded(10).status_reason(START), None, "a full event is full, whatever the balance");
        let mut spent = event(2);
        (spent.terms.credit_budget, spent.counts.scans) = (CreditBudget::new(5).ok(), 4);
        assert_eq!(spent.status_reason(START), None);
        (spent.counts.scans, spent.is_funded) = (5, false);
        assert_eq!(spent.status_reason(START), Some(StatusReason::BudgetSpent), "more credits would not help");
    }

    #[test]
    fn more_expired_scans_than_guests_are_a_warning() {
        let abandoned = |abandoned| Event { counts: EventCounts { abandoned, ..event(3).counts }, ..event(3) };
        assert_eq!([3, 4].map(|count| abandoned(count).warning()), [None, Some(EventWarning::AbandonedScans)]);
    }

    #[test]
    fn a_patch_changes_only_the_named_terms() {
        let full = event(10);
        let same_limit = EventPatch { max_guests: Some(MaxGuests::new(10).unwrap()), ..EventPatch::default() };
        assert_eq!(full.patched(same_limit, START).unwrap(), full.terms);
        let patch = EventPatch { max_guests: Some(MaxGuests::new(11).unwrap()), ..EventPatch::default() };
        let terms = full.patched(patch, START).unwrap();
        assert_eq!(terms.max_guests.get(), 11);
        assert_eq!(EventTerms { max_guests: full.terms.max_guests, ..terms }, full.terms);
    }

    #[test]
    fn a_limit_below_the_registrations_and_a_past_end_are_refused_together() {
        let patch = EventPatch {
            max_guests: Some(MaxGuests::new(4).unwrap()),
            expires_at: Some(START),
            ..EventPatch::default()
        };
        let refused = event(5).patched(patch, START).unwrap_err();
        let fields: Vec<&str> = refused.fields().iter().map(|problem| problem.field.as_str()).collect();
        assert_eq!(fields, ["max_guests", "expires_at"]);
    }

    #[test]
    fn names_limits_and_ends_have_bounds() {
        assert!(
            EventText::parse("  ").is_err()
                && EventText::parse(&"x".repeat(201)).is_err()
                && EventText::parse("a\nb").is_err()
        );
        assert!(EventText::parse(&"é".repeat(200)).is_ok());
        assert!(MaxGuests::new(0).is_err() && MaxGuests::new(1_000_001).is_err() && MaxGuests::new(1_000_000).is_ok());
        assert!(check_end(START + EVENT_LIFETIME_MAX, START).is_ok());
        assert!(check_end(START + EVENT_LIFETIME_MAX + Duration::from_millis(1), START).is_err());
    }

    #[test]
    fn a_refusal_has_a_code_and_a_message() {
        let refusal = |status| EventRefusal::from_status(status).map(|refusal| (refusal.code(), refusal.message()));
        assert_eq!(refusal(EventStatus::Active), None);
        assert_eq!(refusal(EventStatus::Disabled), Some(("event_closed", "The event was disabled")));
        assert_eq!(refusal(EventStatus::Expired), Some(("event_closed", "The event has ended")));
        assert_eq!(refusal(EventStatus::AtCapacity), Some(("event_full", "The event is full")));
    }
}
