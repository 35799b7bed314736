//! Events: creating and changing them, and counting abandoned scans.

use std::time::Duration;

use sakshi_domain::event::{Event, EventCounts, EventRefusal};
use sakshi_domain::ids::{EventId, Partition};
use sakshi_domain::time::Timestamp;

use super::idempotency::{replayed_answer, store_answer};
use crate::engine::{Applied, Batch, CallId, Guard, Key, Op, Operand, Record, Value};
use crate::error::StoreError;
use crate::events::CreateEvent;
use crate::idempotency::CreateOutcome;
use crate::records::{client, delivery, event, idempotency};
use crate::sealing::{SealedTerms, unseal_event};
use crate::upkeep::Retention;
use crate::vault::Vault;

/// Number of calls that an event remembers as its last changes. A retry after a lost response finds its call among
/// them.
const CHANGES_REMEMBERED: usize = 8;

/// Returns the guards of an event that has a place for a guest now, each with the refusal for its failure.
pub(super) fn place_guards(event: &Key) -> [(EventRefusal, Guard); 3] {
    [
        (EventRefusal::Disabled, Guard::Equal(event.clone(), "is_active", Value::Integer(1))),
        (EventRefusal::Expired, Guard::Before(event.clone(), "expires_at")),
        (EventRefusal::Full, Guard::Below(event.clone(), "registrations", "max_guests")),
    ]
}

/// The meaning of a failed guard of a creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// The event exists: an earlier call created it, and its response was lost.
    Exists,
    /// The idempotency key was used before.
    KeyUsed,
    NoClient,
    /// The app has its maximum number of events.
    LimitReached,
}

/// Builds the batch that creates an event with these sealed terms. Returns it with the meanings of its guards.
pub(crate) fn create(create: &CreateEvent, sealed: SealedTerms, default_retention: Duration) -> (Batch, Creation) {
    let CreateEvent { event: Event { id, client: owner, app, created_at, terms, .. }, events_max, idempotency } =
        create;
    let (partition, event_key) = (id.partition(), event::key_of_event(id.partition(), *id));
    let removed_at = terms.expires_at + terms.retention.registrations(default_retention);
    let mut guards = vec![(Meaning::Exists, Guard::Absent(event_key.clone()))];
    guards.extend(
        idempotency
            .iter()
            .map(|answer| (Meaning::KeyUsed, Guard::Absent(idempotency::key_of_idempotency(&answer.scope)))),
    );
    guards.push((Meaning::NoClient, Guard::Present(client::key_of_client(owner))));
    guards.extend(
        events_max
            .map(|limit| (Meaning::LimitReached, Guard::Fewer(event::key_of_events(partition, app), limit.into()))),
    );
    let mut fields: Vec<(&'static str, Operand)> = vec![
        ("client", owner.as_str().into()),
        ("app", app.as_str().into()),
        ("created_at", (*created_at).into()),
        ("registrations", 0.into()),
        ("duplicates", 0.into()),
        ("checked_in", 0.into()),
        ("scans", 0.into()),
        ("abandoned", 0.into()),
    ];
    fields.extend(terms_fields(sealed).into_iter().filter(|(_, value)| *value != Operand::Nothing));
    let mut ops = vec![
        Op::DrawNumber(delivery::key_of_last_numbers(partition), "event"),
        Op::Put(event_key.clone(), fields),
        Op::ExpireAt(event_key, removed_at.into()),
        // The score is a drawn number: the order of creation, even within a millisecond.
        Op::Index(event::key_of_events(partition, app), id.as_bytes().to_vec(), Operand::Result(0)),
        Op::Index(event::key_of_event_ends(partition, app), id.as_bytes().to_vec(), removed_at.into()),
    ];
    ops.extend(idempotency.iter().flat_map(|answer| store_answer(answer, id.as_bytes())));
    let (meanings, guards) = guards.into_iter().unzip();
    (Batch::new(guards, ops), Creation { meanings, request: idempotency.as_ref().map(|answer| answer.request) })
}

/// Returns the fields of an event that follow from its terms.
fn terms_fields(sealed: SealedTerms) -> Vec<(&'static str, Operand)> {
    let SealedTerms { is_active, expires_at, max_guests, budget, origin, webhook, terms } = sealed;
    vec![
        ("is_active", is_active.into()),
        ("expires_at", expires_at.into()),
        ("max_guests", i64::from(max_guests).into()),
        ("budget", i64::from(budget).into()),
        ("origin", origin.map_or(Operand::Nothing, Operand::from)),
        ("webhook", webhook.map_or(Operand::Nothing, Operand::from)),
        ("terms", terms.into()),
    ]
}

/// The meanings of the guards in the batch of [`create`], which turn a refusal into an outcome.
#[derive(Debug)]
pub(crate) struct Creation {
    /// The meaning of each guard.
    meanings: Vec<Meaning>,
    /// Digest of the request under the idempotency key.
    request: Option<[u8; 32]>,
}

impl Creation {
    /// Returns the outcome of the batch of [`create`].
    #[must_use]
    pub(crate) fn outcome(&self, applied: Applied) -> CreateOutcome {
        let Applied::Refused { guard, record, .. } = applied else { return CreateOutcome::Created };
        match self.meanings[guard] {
            Meaning::Exists => CreateOutcome::Created,
            Meaning::KeyUsed => {
                replayed_answer(self.request, record).map_or(CreateOutcome::KeyReused, CreateOutcome::Replayed)
            }
            Meaning::NoClient => CreateOutcome::ClientNotFound,
            Meaning::LimitReached => CreateOutcome::LimitReached,
        }
    }
}

/// Returns true if this call has changed the event and is among its last [`CHANGES_REMEMBERED`] changes.
#[must_use]
pub(crate) fn is_changed_by(event: &Record, call: &CallId) -> bool {
    event.bytes("changes").chunks(call.len()).any(|known| known == call)
}

/// Builds the batch that changes the terms of an event, if it is unchanged since it was read. The event outlives
/// `last_scan_end`, the end of the last pending scan.
pub(crate) fn patch(
    before: &Record,
    after: &Event,
    sealed: SealedTerms,
    last_scan_end: Option<Timestamp>,
    retention: Retention,
    call: CallId,
) -> Batch {
    let (id, event_key) = (after.id, event::key_of_event(after.id.partition(), after.id));
    let removed_at = after.terms.expires_at + after.terms.retention.registrations(retention.events);
    let removed_at = last_scan_end.map_or(removed_at, |end| removed_at.max(end + retention.expired));
    let mut guards = vec![
        Guard::Version(event_key.clone(), before.version),
        Guard::AtMost(event_key.clone(), "registrations", after.terms.max_guests.get().into()),
    ];
    let expiry = if after.terms.expires_at.millis() < before.integer("expires_at") {
        // The event may end earlier only if no guest has scanned it since it was read: a newer scan may need it longer.
        guards.push(Guard::Equal(event_key.clone(), "scans", before.integer("scans").into()));
        Op::ExpireAt(event_key.clone(), removed_at.into())
    } else {
        Op::ExpireLater(event_key.clone(), removed_at.into())
    };
    let list_end =
        Op::Index(event::key_of_event_ends(id.partition(), &after.app), id.as_bytes().to_vec(), removed_at.into());
    let mut fields = terms_fields(sealed);
    let earlier_calls = before.bytes("changes");
    let remembered = earlier_calls.len().min((CHANGES_REMEMBERED - 1) * call.len());
    let changes = [&call[..], &earlier_calls[..remembered]].concat();
    fields.push(("changes", changes.into()));
    // Adding 0 returns the current counts.
    let counts = ["registrations", "scans"].map(|count| Op::Add(event_key.clone(), count, 0.into()));
    let ops = counts.into_iter().chain([Op::Set(event_key.clone(), fields), expiry, list_end]);
    Batch::new(guards, ops.collect()).with_call_id(call, event_key)
}

/// Returns the event with the counts that the batch of [`patch`] returned: guests may have arrived since it was read.
pub(crate) fn patched_event(mut after: Event, results: &[i64]) -> Event {
    if let [registrations, scans, ..] = *results {
        after.counts.registrations = u32::try_from(registrations).unwrap_or(u32::MAX);
        after.counts.scans = scans.unsigned_abs();
    }
    after
}

/// Builds the batch that counts scans whose window has passed as abandoned.
pub(crate) fn abandon(partition: Partition, id: EventId) -> Batch {
    let event_key = event::key_of_event(partition, id);
    let ops = vec![
        Op::sweep_past(event::key_of_waiting_scans(partition, id)),
        Op::Add(event_key.clone(), "abandoned", Operand::Result(0)),
    ];
    Batch::even_when_full(vec![Guard::Present(event_key)], ops)
}

/// Builds the operations that remove an event that no longer exists from the lists of its app.
pub(crate) fn delist(events: &Key, member: &[u8]) -> [Op; 2] {
    [Op::Unindex(events.clone(), member.to_vec()), Op::Unindex(events.in_table(&event::EVENT_ENDS), member.to_vec())]
}

/// Decodes the event in a record. The index of pending scans has `unanswered` scans; the window of `overdue` of these
/// has passed.
///
/// # Errors
/// [`StoreError::Corrupt`] for an unreadable record.
pub(crate) fn decode_event(
    vault: &Vault,
    id: EventId,
    record: &Record,
    unanswered: u64,
    overdue: u64,
) -> Result<Event, StoreError> {
    let unreadable = || StoreError::unreadable("an event");
    let count = |name: &str| u64::try_from(record.integer(name)).map_err(|_| unreadable());
    let guests = |name: &str| u32::try_from(record.integer(name)).map_err(|_| unreadable());
    Ok(Event {
        id,
        client: record.parsed("client")?,
        app: record.parsed("app")?,
        created_at: record.time("created_at").ok_or_else(unreadable)?,
        terms: unseal_event(vault, id, record.bytes("terms"))?,
        counts: EventCounts {
            registrations: guests("registrations")?,
            duplicates: guests("duplicates")?,
            checked_in: guests("checked_in")?,
            scans: count("scans")?,
            abandoned: count("abandoned")?.checked_add(overdue).ok_or_else(unreadable)?,
            pending: unanswered.saturating_sub(overdue),
        },
        is_funded: false,
    })
}
