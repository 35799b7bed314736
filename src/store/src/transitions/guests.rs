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

/// Maximum number of traits of a person.
pub(crate) const TRAITS_MAX: u8 = 3;
/// Bits of a score; with its sign it has 53.
const SCORE_BITS: u32 = 52;

/// The people of an event, as known to a completion.
#[derive(Clone, Debug, Default)]
pub(crate) struct People {
    /// The event's handling of duplicates.
    pub(crate) on_duplicate: OnDuplicate,
    /// The scores of the guest's traits; none if duplicates are not looked for.
    pub(crate) scores: Vec<i64>,
    /// The guests who are known to have one of them.
    pub(crate) known: Vec<(i64, TxnId)>,
}

/// Returns the scores of traits at the event with this secret: another event has others.
pub(crate) fn scores(secret: &EventSecret, traits: &[Trait]) -> Vec<i64> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let score = |of: &Trait| {
        let digest = hmac::sign(&key, &of.0);
        let first = digest.as_ref().first_chunk().map_or(0, |first| u64::from_be_bytes(*first));
        (first >> (u64::BITS - SCORE_BITS)).cast_signed()
    };
    traits.iter().take(TRAITS_MAX.into()).map(score).collect()
}

/// Returns the member of the index of people for a guest's trait.
fn member(txn: TxnId, place: u8) -> Vec<u8> {
    [&txn.as_bytes()[..], &[place]].concat()
}

/// Returns the guest of a member of the index of people.
pub(crate) fn guest_of(member: &[u8]) -> Option<TxnId> {
    member.first_chunk().map(|txn| TxnId::from_bytes(*txn))
}

impl People {
    /// Returns the earlier guest who may be the same person.
    pub(crate) fn earlier(&self, txn: TxnId) -> Option<TxnId> {
        self.known.iter().map(|(_, known)| *known).find(|known| *known != txn)
    }

    /// Returns the guards and operations that remember the traits of a guest which no other guest has.
    fn remember(&self, at: &Key, txn: TxnId) -> (Vec<Guard>, Vec<Op>) {
        let people = at.of(&event::PEOPLE);
        let fresh = (0..).zip(&self.scores).filter(|(_, score)| self.known.iter().all(|(known, _)| known != *score));
        fresh
            .map(|(place, score)| {
                (Guard::Free(people.clone(), *score), Op::Index(people.clone(), member(txn, place), (*score).into()))
            })
            .unzip()
    }
}

/// Adds the guards and operations that register a guest, who takes a place. Returns the operation that results in the
/// guest's number.
pub(crate) fn register(
    at: &Key,
    txn: TxnId,
    (name, outcome): (&Sealed, &Sealed),
    people: &People,
    guards: &mut Vec<Guard>,
    ops: &mut Vec<Op>,
) -> usize {
    let earlier = people.earlier(txn);
    let (free, remembered) = people.remember(at, txn);
    guards.extend(free);
    ops.push(Op::Add(at.clone(), "registrations", 1.into()));
    ops.extend(earlier.map(|_| Op::Add(at.clone(), "duplicates", 1.into())));
    let number = ops.len();
    let earlier = earlier.map_or_else(Vec::new, |earlier| earlier.as_bytes().to_vec());
    let guest = vec![
        txn.as_bytes()[..].into(),
        Operand::Now(0),
        0.into(),
        0.into(),
        "".into(),
        earlier.into(),
        name.as_bytes().into(),
    ];
    ops.push(Op::Append(at.of(&event::GUESTS), guest));
    ops.push(Op::Append(at.of(&event::SHARED), vec![txn.as_bytes()[..].into(), outcome.as_bytes().into()]));
    ops.extend(remembered);
    number
}

/// Returns the guest of an entry.
pub(crate) fn guest(number: u64, entry: &[Value]) -> Option<Guest> {
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

/// Returns the entry of a guest.
fn entry(guest: &Guest) -> Vec<Value> {
    let (request, at, gate) =
        guest.check_in.as_ref().map_or((0, 0, ""), |known| (known.id.get(), known.at.millis(), &known.gate));
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

fn rewrite(list: Key, guest: &Guest, after: &Guest) -> (Guard, Op) {
    let entry_after = entry(after).into_iter().map(Operand::Value).collect();
    (Guard::Entry(list.clone(), guest.number, entry(guest)), Op::Rewrite(list, guest.number, entry_after))
}

/// Returns the batch that checks in a guest who was not.
pub(crate) fn check_in(id: EventId, guest: &Guest, after: &Guest) -> Batch {
    let (guard, op) = rewrite(event::guests(id.partition(), id), guest, after);
    let count = Op::Add(event::event(id.partition(), id), "checked_in", 1.into());
    Batch::on_full(vec![guard], vec![count, op])
}

/// Returns the operation that counts one marked guest less, if this one is marked.
fn uncount(list: &Key, guest: &Guest) -> Option<Op> {
    guest.duplicate_of.map(|_| Op::Add(list.of(&event::EVENT), "duplicates", (-1).into()))
}

/// Returns the batch that removes the mark of an earlier guest from this one.
pub(crate) fn unmark(list: &Key, guest: &Guest) -> Batch {
    let (guard, op) = rewrite(list.clone(), guest, &Guest { duplicate_of: None, ..guest.clone() });
    Batch::on_full(vec![guard], [op].into_iter().chain(uncount(list, guest)).collect())
}

/// Returns the batch that erases the personal data of a guest; `None` when there is none left.
///
/// # Errors
/// The claims of the guest cannot be read.
pub(crate) fn erase(
    list: &Key,
    guest: &Guest,
    shared: &[Value],
    vault: &Vault,
    nothing: &Sealed,
) -> Result<Option<Batch>, StoreError> {
    let [txn, Value::Bytes(outcome)] = shared else { return Err(StoreError::unreadable("a registration")) };
    // An erased outcome always has this length, and every other is longer.
    if outcome.len() == nothing.size() {
        return Ok(None);
    }
    let (guard, op) =
        rewrite(list.clone(), guest, &Guest { duplicate_of: None, name: no_name(vault, guest.txn), ..guest.clone() });
    let blank = vec![Operand::Value(txn.clone()), nothing.as_bytes().into()];
    let forgotten = (0..TRAITS_MAX).map(|place| Op::Unindex(list.of(&event::PEOPLE), member(guest.txn, place)));
    let ops = [op, Op::Rewrite(list.of(&event::SHARED), guest.number, blank)]
        .into_iter()
        .chain(uncount(list, guest))
        .chain(forgotten);
    Ok(Some(Batch::on_full(vec![guard], ops.collect())))
}

/// Returns the sealed name of a guest who shared none.
pub(crate) fn no_name(vault: &Vault, txn: TxnId) -> Sealed {
    vault.seal(txn.as_bytes(), b"")
}
