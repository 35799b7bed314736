//! Events and their registered guests.

use aws_lc_rs::digest::{SHA256, digest};
use sakshi_domain::brand::Brand;
use sakshi_domain::event::{CheckIn, Event, EventSecret, EventTerms};
use sakshi_domain::ids::TxnId;
use sakshi_domain::invalid::Invalid;
use sakshi_domain::time::Timestamp;

use crate::idempotency::IdempotentAnswer;
use crate::vault::Sealed;

/// Creates an event.
#[derive(Clone, Debug)]
pub struct CreateEvent {
    /// The event, without counts; its id makes the operation repeatable.
    pub event: Event,
    /// Maximum number of events of the app, including expired events that are still stored.
    pub events_max: Option<u32>,
    /// Response to replay when the client retries the request under its `Idempotency-Key`.
    pub idempotency: Option<IdempotentAnswer>,
}

/// The outcome of a change to an event.
#[derive(Clone, Debug, PartialEq)]
pub enum PatchEventOutcome {
    /// The event after the change.
    Patched(Box<Event>),
    /// The change contradicts the event's state; nothing was written.
    Refused(Invalid),
    /// The terms of the event have none of the tags that the change requires; nothing was written.
    PreconditionFailed,
    /// The app has no such event.
    NotFound,
}

/// Bytes of a digest that make an entity tag.
const TAG_BYTES: usize = 12;

/// Returns the entity tag of an event's terms, which changes with them. It does not cover the
/// secret, the brand and the doors (pages for staff at an entrance), which no client sets or sees.
#[must_use]
pub fn event_tag(terms: &EventTerms) -> String {
    // Strings, numbers and maps with string keys always serialise.
    let json = serde_json::to_vec(&EventTerms {
        brand: Brand::default(),
        doors: vec![],
        secret: EventSecret::fixed(0),
        ..terms.clone()
    })
    .unwrap_or_default();
    let digest = digest(&SHA256, &json);
    digest.as_ref()[..TAG_BYTES].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns true if the terms of an event have one of these entity tags, or if none is required.
#[must_use]
pub fn has_tag(terms: &EventTerms, tags: Option<&[String]>) -> bool {
    tags.is_none_or(|tags| tags.contains(&event_tag(terms)))
}

/// A registered guest.
#[derive(Clone, Debug, PartialEq)]
pub struct Guest {
    /// The number among the guests of the event, from 1.
    pub number: u64,
    /// The guest's transaction, whose id owns the sealed values.
    pub txn: TxnId,
    /// The time of registration.
    pub verified_at: Timestamp,
    /// The check-in, if there was one.
    pub check_in: Option<CheckIn>,
    /// The transaction of an earlier guest who may be the same person.
    pub duplicate_of: Option<TxnId>,
    /// The sealed name; empty if none was shared.
    pub name: Sealed,
}

/// A registered guest with the shared claims.
#[derive(Clone, Debug, PartialEq)]
pub struct Registration {
    /// The guest.
    pub guest: Guest,
    /// The sealed JSON of a [`sakshi_domain::transaction::Outcome`].
    pub outcome: Sealed,
}

/// The outcome of a check-in.
#[derive(Clone, Debug, PartialEq)]
pub enum CheckInOutcome {
    /// The guest is checked in now.
    CheckedIn(Guest),
    /// The same request checked in the guest before.
    Repeated(Guest),
    /// The guest was checked in before; nothing was written.
    AlreadyCheckedIn(Guest),
    /// The event has no guest with this number.
    NotFound,
}
