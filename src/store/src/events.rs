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
    /// How many events its app may have, those included that have ended and are still kept.
    pub most: Option<u32>,
    /// What to replay when the client repeats the request under its `Idempotency-Key`.
    pub idempotency: Option<IdempotentAnswer>,
}

/// The outcome of a change to an event.
#[derive(Clone, Debug, PartialEq)]
pub enum PatchEventOutcome {
    /// The event as it is from now on.
    Patched(Box<Event>),
    /// The change contradicts what has happened; nothing was written.
    Refused(Invalid),
    /// The event is not as the change expects it; nothing was written.
    Changed,
    /// The app has no such event.
    NotFound,
}

/// Tells apart the terms that an event had from those that it has; counts of guests do not change it, and neither does its brand, which
/// no client sets or is shown, nor its doors.
#[must_use]
pub fn event_tag(terms: &EventTerms) -> String {
    // Strings, numbers and maps with string keys are always written.
    let json = serde_json::to_vec(&EventTerms { brand: Brand::default(), doors: vec![], secret: EventSecret::fixed(0), ..terms.clone() })
        .unwrap_or_default();
    let digest = digest(&SHA256, &json);
    digest.as_ref()[..12].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A registered guest.
#[derive(Clone, Debug, PartialEq)]
pub struct Guest {
    /// The number among the guests of the event, from 1.
    pub number: u64,
    /// The guest's transaction, whose id owns what is sealed.
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

/// A registered guest with what was shared.
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
    /// The same request has checked in the guest before.
    Repeated(Guest),
    /// The guest was checked in before, and nothing was written.
    Already(Guest),
    /// The event has no guest with this number.
    NotFound,
}
