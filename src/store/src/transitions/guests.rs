//! Guests of an event: recognising a person who registers again, registering, and checking in.

use aws_lc_rs::hmac;
use sakshi_domain::event::{CheckIn, CheckInId, EventSecret, OnDuplicate, Trait};
use sakshi_domain::ids::{EventId, TxnId};
use sakshi_domain::time::Timestamp;

use crate::engine::{Batch, Guard, Key, Op, Operand, Value};
use crate::error::StoreError;
use crate::events::Guest;
use crate::records::event;
use crate::vault::{Sealed, Vault};

/// Maximum number of traits by which a person is recognised.
pub(crate) const TRAITS_MAX: u8 = 3;
/// Bits of the score of a trait, without the sign. An index stores scores of at most 53 bits.
const SCORE_BITS: u32 = 52;

/// The data that shows whether a guest is a duplicate: an earlier guest of the event who shares a trait.
#[derive(Clone, Debug, Default)]
pub(crate) struct DuplicateCheck {
    /// The event's handling of duplicates.
    pub(crate) on_duplicate: OnDuplicate,
    /// The scores of the guest's traits; empty if the event allows duplicates.
    pub(crate) scores: Vec<i64>,
    /// Registered guests with one of these scores, for each score the first guest before later ones. The list may be
    /// incomplete; the guards then refuse the registration.
    pub(crate) guests_by_score: Vec<(i64, TxnId)>,
}

/// Returns the scores of traits at the event with this secret: HMACs, by which equal traits are found in an index.
pub(crate) fn trait_scores(secret: &EventSecret, traits: &[Trait]) -> Vec<i64> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let score = |guest_trait: &Trait| {
        let digest = hmac::sign(&key, &guest_trait.0);
        let first = digest.as_ref().first_chunk().map_or(0, |first| u64::from_be_bytes(*first));
        (first >> (u64::BITS - SCORE_BITS)).cast_signed()
    };
    traits.iter().take(TRAITS_MAX.into()).map(score).collect()
}

/// Returns the score under which later guests with a trait are indexed, so that the trait stays known if the first
/// guest is erased. It is the complement, which is negative and therefore no trait's own score.
pub(crate) const fn score_of_later_guests(score: i64) -> i64 {
    !score
}

/// Encodes a guest's trait as a member of the index [`event::PEOPLE`].
fn encode_member(txn: TxnId, position: u8) -> Vec<u8> {
    [&txn.as_bytes()[..], &[position]].concat()
}

/// Decodes the guest from a member of the index [`event::PEOPLE`].
pub(crate) fn decode_member(member: &[u8]) -> Option<TxnId> {
    member.first_chunk().map(|txn| TxnId::from_bytes(*txn))
}

impl DuplicateCheck {
    /// Returns an earlier guest who may be the same person.
    pub(crate) fn earlier_guest(&self, txn: TxnId) -> Option<TxnId> {
        self.guests_by_score.iter().map(|(_, known)| *known).find(|known| *known != txn)
    }

    /// Builds the guards and operations that store the traits of a guest. The guards require that no guest has a trait
    /// for which none was read.
    fn store_traits(&self, event_key: &Key, txn: TxnId) -> (Vec<Guard>, Vec<Op>) {
        let people = event_key.in_table(&event::PEOPLE);
        let (mut guards, mut ops) = (Vec::new(), Vec::new());
        for (position, score) in (0..).zip(self.scores.iter().copied()) {
            let later = score_of_later_guests(score);
            let is_known = self.guests_by_score.iter().any(|(known, _)| *known == score);
            if !is_known {
                guards.extend([score, later].map(|score| Guard::Free(people.clone(), score)));
            }
            let score = if is_known { later } else { score };
            ops.push(Op::Index(people.clone(), encode_member(txn, position), score.into()));
        }
        (guards, ops)
    }
}

/// Adds the guards and operations that register a guest. Returns the index of the operation that numbers the guest.
pub(crate) fn register(
    event_key: &Key,
    txn: TxnId,
    (name, outcome): (&Sealed, &Sealed),
    duplicates: &DuplicateCheck,
    guards: &mut Vec<Guard>,
    ops: &mut Vec<Op>,
) -> usize {
    let earlier = duplicates.earlier_guest(txn);
    let (free, store_traits) = duplicates.store_traits(event_key, txn);
    guards.extend(free);
    ops.push(Op::Add(event_key.clone(), "registrations", 1.into()));
    ops.extend(earlier.map(|_| Op::Add(event_key.clone(), "duplicates", 1.into())));
    let numbering_op = ops.len();
    let earlier = earlier.map_or_else(Vec::new, |earlier| earlier.as_bytes().to_vec());
    // The fields of `event::GUESTS`, without a check-in.
    let guest = vec![
        txn.as_bytes()[..].into(),
        Operand::NOW,
        0.into(),
        0.into(),
        "".into(),
        earlier.into(),
        name.as_bytes().into(),
    ];
    ops.push(Op::Append(event_key.in_table(&event::GUESTS), guest));
    ops.push(Op::Append(
        event_key.in_table(&event::SHARED),
        vec![txn.as_bytes()[..].into(), outcome.as_bytes().into()],
    ));
    ops.extend(store_traits);
    numbering_op
}

/// Decodes the guest in the entry with this number; `None` for unexpected values.
pub(crate) fn decode_guest(number: u64, entry: &[Value]) -> Option<Guest> {
    let [Value::Bytes(txn), Value::Integer(verified_at), check_in @ .., Value::Bytes(earlier), Value::Bytes(name)] =
        entry
    else {
        return None;
    };
    let [Value::Integer(request), Value::Integer(at), Value::Text(gate)] = check_in else { return None };
    let id = |bytes: &[u8]| bytes.try_into().map(TxnId::from_bytes).ok();
    Some(Guest {
        number,
        txn: id(txn)?,
        verified_at: Timestamp::from_millis(*verified_at),
        check_in: (*at != 0).then(|| CheckIn {
            id: CheckInId::new(*request),
            at: Timestamp::from_millis(*at),
            gate: gate.clone(),
        }),
        duplicate_of: if earlier.is_empty() { None } else { Some(id(earlier)?) },
        name: Sealed::from_bytes(name.clone())?,
    })
}

/// Encodes a guest as an entry.
fn encode_guest(guest: &Guest) -> Vec<Value> {
    let (request, at, gate) = guest
        .check_in
        .as_ref()
        .map_or((0, 0, ""), |check_in| (check_in.id.get(), check_in.at.millis(), &check_in.gate));
    let earlier = guest.duplicate_of.map_or_else(Vec::new, |earlier| earlier.as_bytes().to_vec());
    let txn = Value::from(&guest.txn.as_bytes()[..]);
    vec![
        txn,
        guest.verified_at.into(),
        request.into(),
        at.into(),
        gate.into(),
        earlier.into(),
        guest.name.as_bytes().into(),
    ]
}

/// Builds the guard and operation that replace the entry of a guest, if it is unchanged since it was read.
fn replace_entry(list: Key, before: &Guest, after: &Guest) -> (Guard, Op) {
    let entry_after = encode_guest(after).into_iter().map(Operand::Value).collect();
    (Guard::Entry(list.clone(), before.number, encode_guest(before)), Op::Rewrite(list, before.number, entry_after))
}

/// Builds the batch that checks in a guest who is not checked in yet.
pub(crate) fn check_in(id: EventId, before: &Guest, after: &Guest) -> Batch {
    let (guard, op) = replace_entry(event::key_of_guests(id.partition(), id), before, after);
    let count = Op::Add(event::key_of_event(id.partition(), id), "checked_in", 1.into());
    Batch::even_when_full(vec![guard], vec![count, op])
}

/// Builds the operation that lowers the count of duplicates, if this guest is marked as one.
fn uncount_duplicate(list: &Key, guest: &Guest) -> Option<Op> {
    guest.duplicate_of.map(|_| Op::Add(list.in_table(&event::EVENT), "duplicates", (-1).into()))
}

/// Builds the batch that removes the duplicate mark from a guest.
pub(crate) fn unmark_duplicate(list: &Key, guest: &Guest) -> Batch {
    let (guard, op) = replace_entry(list.clone(), guest, &Guest { duplicate_of: None, ..guest.clone() });
    Batch::even_when_full(vec![guard], [op].into_iter().chain(uncount_duplicate(list, guest)).collect())
}

/// Builds the batch that erases the personal data of a guest; `None` if it was erased before. `registration` is the
/// guest's entry in [`event::SHARED`]: the transaction and the sealed outcome. `empty_outcome` replaces that outcome.
///
/// # Errors
/// [`StoreError::Corrupt`] for unreadable claims.
pub(crate) fn erase(
    list: &Key,
    guest: &Guest,
    registration: &[Value],
    vault: &Vault,
    empty_outcome: &Sealed,
) -> Result<Option<Batch>, StoreError> {
    let [txn, Value::Bytes(outcome)] = registration else { return Err(StoreError::unreadable("a registration")) };
    // Every outcome with claims is longer than the empty one.
    if outcome.len() == empty_outcome.size() {
        return Ok(None);
    }
    let (guard, op) = replace_entry(
        list.clone(),
        guest,
        &Guest { duplicate_of: None, name: seal_no_name(vault, guest.txn), ..guest.clone() },
    );
    let without_claims = vec![Operand::Value(txn.clone()), empty_outcome.as_bytes().into()];
    let remove_traits =
        (0..TRAITS_MAX).map(|position| Op::Unindex(list.in_table(&event::PEOPLE), encode_member(guest.txn, position)));
    let ops = [op, Op::Rewrite(list.in_table(&event::SHARED), guest.number, without_claims)]
        .into_iter()
        .chain(uncount_duplicate(list, guest))
        .chain(remove_traits);
    Ok(Some(Batch::even_when_full(vec![guard], ops.collect())))
}

/// Seals the name of a guest who shared no name.
pub(crate) fn seal_no_name(vault: &Vault, txn: TxnId) -> Sealed {
    vault.seal(txn.as_bytes(), b"")
}
