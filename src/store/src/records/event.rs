//! An event, its registered guests, and its pending guests.

use sakshi_domain::ids::{AppId, EventId, Partition};
use sakshi_domain::limits::GUESTS_MAX;

use super::{key_in_partition, table};
use crate::engine::Key;
use crate::invariants::is_id;

table! {
    /// An event of an app. `origin` is the destination of its webhook, without the path. `abandoned` counts the scans
    /// that expired and left the index of pending scans. An event without a budget has a `budget` above every possible
    /// count. `changes` are the ids of the last calls that changed the terms, newest first.
    EVENT = "event", Record Ends(GUESTS, SHARED, PEOPLE, WAITING) {
        client: Text,
        app: Text,
        created_at: Integer,
        is_active: Integer,
        expires_at: Integer,
        max_guests: Integer,
        registrations: Integer,
        duplicates: Integer,
        checked_in: Integer,
        scans: Integer,
        budget: Integer,
        abandoned: Integer,
        origin: Text,
        webhook: Sealed(Id),
        terms: Sealed(Id),
        changes: Bytes,
    } always {
        Needed(&["client", "app", "created_at", "is_active", "expires_at", "max_guests", "terms"]),
        Needed(&["registrations", "duplicates", "checked_in", "scans", "abandoned", "budget"]),
        Word("client", is_id),
        Word("app", is_id),
        Within("is_active", 0, 1),
        Within("max_guests", 1, GUESTS_MAX as i64),
        Within("registrations", 0, GUESTS_MAX as i64),
        Within("duplicates", 0, GUESTS_MAX as i64),
        Within("checked_in", 0, GUESTS_MAX as i64),
        Within("scans", 0, i64::MAX),
        Within("abandoned", 0, i64::MAX),
        Within("budget", 0, i64::MAX),
        NotAbove("registrations", "max_guests"),
        NotAbove("registrations", "scans"),
        NotAbove("duplicates", "registrations"),
        NotAbove("checked_in", "registrations"),
        NotAbove("abandoned", "scans"),
        SumNotAbove("registrations", "abandoned", "scans"),
        With("webhook", &["origin"]),
        With("origin", &["webhook"]),
        Sized("changes", 16, 8 * 16),
        Fixed(&["client", "app", "created_at"]),
        Rises(&["registrations", "checked_in", "scans"]),
        Guarded("registrations", Need::Below("registrations", "max_guests")),
        Guarded("scans", Need::Below("scans", "budget")),
        Guarded("max_guests", Need::AtMost("registrations")),
        New,
        Key(KeyRule::OfId { id_bytes: 12 }),
    }
}

table! {
    /// Registered guests, numbered from 1. `check_in` is the id of the request that checked in the guest.
    /// `checked_in_at` is 0 before the check-in. `duplicate_of` is the transaction of an earlier guest who may be the
    /// same person, or empty.
    GUESTS = "guests", List With(EVENT) {
        txn: Bytes,
        verified_at: Integer,
        check_in: Integer,
        checked_in_at: Integer,
        gate: Text,
        duplicate_of: Bytes,
        name: Sealed(Field("txn")),
    } always {
        Sized("txn", 16, 16),
        Sized("duplicate_of", 0, 16),
        Within("checked_in_at", 0, i64::MAX),
        Key(KeyRule::OfId { id_bytes: 12 }),
    }
}

table! {
    /// The claims that guests shared, under the numbers of the guests in [`GUESTS`].
    SHARED = "shared", List With(EVENT) {
        txn: Bytes,
        outcome: Sealed(Field("txn")),
    } always {
        Sized("txn", 16, 16),
        Key(KeyRule::OfId { id_bytes: 12 }),
    }
}

table! {
    /// Traits of the guests. A member is the guest's transaction and the position of the trait. Its score is an HMAC of
    /// the trait under the event's secret; if another guest had the trait before, the complement of the HMAC.
    PEOPLE = "people", Index With(EVENT) {} always {
        Key(KeyRule::OfId { id_bytes: 12 }),
    }
}

table! {
    /// Pending scans by the end of their windows.
    WAITING = "waiting", Index With(EVENT) {} always {
        Key(KeyRule::OfId { id_bytes: 12 }),
    }
}

table! {
    /// The events of an app by creation. An expired event is removed when its end in [`EVENT_ENDS`] has passed.
    EVENTS = "events", Index Stays {} always {
        Key(KeyRule::OfPartitionApp),
    }
}

table! {
    /// The events of an app by their earliest expiry.
    EVENT_ENDS = "event_ends", Index Stays {} always {
        Key(KeyRule::OfPartitionApp),
    }
}

/// Returns the key of the record of an event. With the partition of a client it finds no event of a client in another
/// partition.
#[must_use]
pub(crate) fn key_of_event(partition: Partition, id: EventId) -> Key {
    key_in_partition(&EVENT, partition, id.as_bytes().to_vec())
}

/// Returns the key of the list of an event's registered guests.
#[must_use]
pub(crate) fn key_of_guests(partition: Partition, id: EventId) -> Key {
    key_in_partition(&GUESTS, partition, id.as_bytes().to_vec())
}

/// Returns the key of the index of an event's pending scans.
#[must_use]
pub(crate) fn key_of_waiting_scans(partition: Partition, id: EventId) -> Key {
    key_in_partition(&WAITING, partition, id.as_bytes().to_vec())
}

/// Returns the key of the list of an app's events.
#[must_use]
pub(crate) fn key_of_events(partition: Partition, app: &AppId) -> Key {
    key_in_partition(&EVENTS, partition, app.as_str().as_bytes().to_vec())
}

/// Returns the key of the list of an app's events by their ends.
#[must_use]
pub(crate) fn key_of_event_ends(partition: Partition, app: &AppId) -> Key {
    key_in_partition(&EVENT_ENDS, partition, app.as_str().as_bytes().to_vec())
}
