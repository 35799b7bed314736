//! Memory budgets of webhook bodies: in total, per client and per origin. Receivers that hang on large files cannot
//! starve others. No client has more memory than is free.
//!
//! Memory is reserved before a body is loaded, for the largest body that the stored bytes can become. When the real
//! size is known, the excess is released. Outcomes of verifications and payloads of flows have separate budgets, so no
//! verification waits because of files.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use actix::{Message, Recipient};
use sakshi_domain::delivery::{QueuedDelivery, Receiver, Subject};
use sakshi_domain::ids::ClientId;
use sakshi_domain::limits::{CALLBACK_BYTES_MAX, REPORT_BYTES_MAX};
use sakshi_trace::invariant::{Part, holds};

/// Bytes that a body may have beyond its stored outcome: the surrounding JSON, the client's reference, and the message,
/// which appears twice.
pub(super) const ENVELOPE_BYTES: usize = 4 * 1_024;

/// Subject of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyKind {
    /// The outcome of a verification, photo claim included.
    Outcome,
    /// The report of an upstream, files included.
    Flow,
}

impl BodyKind {
    pub(super) const ALL: [Self; 2] = [Self::Outcome, Self::Flow];

    const fn for_subject(subject: Subject) -> Self {
        match subject {
            Subject::Transaction(_) => Self::Outcome,
            Subject::Flow { .. } => Self::Flow,
        }
    }

    /// Bytes of the largest body: no body is larger than the largest request whose content it passes on.
    const fn bytes_max(self) -> usize {
        match self {
            Self::Outcome => CALLBACK_BYTES_MAX,
            Self::Flow => REPORT_BYTES_MAX,
        }
    }
}

/// The memory to reserve for a delivery before its body is loaded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Need {
    pub(super) kind: BodyKind,
    bytes: usize,
}

impl Need {
    pub(super) const fn for_delivery(delivery: &QueuedDelivery) -> Self {
        let kind = BodyKind::for_subject(delivery.subject);
        let estimate = delivery.stored_bytes.saturating_add(ENVELOPE_BYTES);
        Self { kind, bytes: if estimate < kind.bytes_max() { estimate } else { kind.bytes_max() } }
    }
}

/// Bytes that the bodies of one kind may use. Lower bounds are raised to the size of one largest body.
#[derive(Clone, Copy, Debug)]
pub struct ByteBounds {
    /// For all receivers together.
    pub total: usize,
    /// For one origin of a client.
    pub per_origin: usize,
}

impl ByteBounds {
    /// For outcomes of verifications: 128 MiB in total, 16 MiB to one origin.
    pub const OUTCOMES: Self = Self { total: 128 * 1_024 * 1_024, per_origin: 16 * 1_024 * 1_024 };
    /// For payloads of flows: 384 MiB in total, 24 MiB to one origin, which is one file of the largest
    /// size or many small ones.
    pub const FLOWS: Self = Self { total: 384 * 1_024 * 1_024, per_origin: 24 * 1_024 * 1_024 };
}

/// The part of a budget that is too small for a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exceeded {
    /// The share of its client or of its origin.
    Share,
    /// The total of all clients.
    Total,
}

/// The budget of one kind.
#[derive(Debug)]
struct KindBudget {
    bounds: ByteBounds,
    reserved: usize,
    by_client: HashMap<ClientId, usize>,
    by_receiver: HashMap<Arc<Receiver>, usize>,
}

impl KindBudget {
    fn new(kind: BodyKind, bounds: ByteBounds) -> Self {
        let per_origin = bounds.per_origin.max(kind.bytes_max());
        let bounds = ByteBounds { total: bounds.total.max(per_origin), per_origin };
        Self { bounds, reserved: 0, by_client: HashMap::new(), by_receiver: HashMap::new() }
    }

    /// Checks that a body of this size fits.
    fn check(&self, receiver: &Receiver, bytes: usize) -> Result<(), Exceeded> {
        let receiver_bytes = self.by_receiver.get(receiver).copied().unwrap_or(0);
        let client_bytes = self.by_client.get(&receiver.client).copied().unwrap_or(0);
        let free = self.bounds.total.saturating_sub(self.reserved);
        // A client without any reservation may take all that is free.
        if receiver_bytes.saturating_add(bytes) > self.bounds.per_origin
            || (client_bytes > 0 && client_bytes.saturating_add(bytes) > free)
        {
            Err(Exceeded::Share)
        } else if self.reserved.saturating_add(bytes) > self.bounds.total {
            Err(Exceeded::Total)
        } else {
            Ok(())
        }
    }

    /// Replaces `from` reserved bytes of a receiver by `to`.
    fn change(&mut self, receiver: &Arc<Receiver>, from: usize, to: usize) {
        holds(Part::Bounds, "webhook memory that is given back was reserved", self.reserved >= from);
        self.reserved = self.reserved.saturating_sub(from).saturating_add(to);
        change_share(&mut self.by_client, receiver.client.clone(), from, to);
        change_share(&mut self.by_receiver, Arc::clone(receiver), from, to);
        self.is_fully_owned();
    }

    /// Checks that all reserved memory has a client and a receiver.
    fn is_fully_owned(&self) -> bool {
        let is_free = self.reserved == 0;
        holds(Part::Bounds, "webhook memory that is reserved is of a client", is_free == self.by_client.is_empty())
            && holds(
                Part::Bounds,
                "webhook memory that is reserved is of a receiver",
                is_free == self.by_receiver.is_empty(),
            )
    }
}

/// Replaces `from` bytes of an owner by `to`. Removes an owner with no bytes left.
fn change_share<K: Hash + Eq>(shares: &mut HashMap<K, usize>, owner: K, from: usize, to: usize) {
    match shares.entry(owner) {
        Entry::Occupied(mut share) => {
            holds(Part::Bounds, "webhook memory of an owner is given back once", *share.get() >= from);
            let left = share.get().saturating_sub(from).saturating_add(to);
            if left == 0 {
                share.remove();
            } else {
                share.insert(left);
            }
        }
        Entry::Vacant(share) if to > 0 => {
            share.insert(to);
        }
        Entry::Vacant(_) => {}
    }
}

/// Memory of all bodies that are loaded or being loaded. Like the attempts, it outlives a restart of the dispatcher.
#[derive(Debug)]
pub(super) struct Budget {
    /// Budgets by [`BodyKind`], which is the index.
    kinds: RefCell<[KindBudget; 2]>,
    /// Bytes reserved for all kinds, for metrics.
    reserved: Arc<AtomicUsize>,
    /// True if memory was released since all blocked receivers were last checked.
    freed: Cell<bool>,
    /// True if the dispatcher wants a notification when memory is released.
    notify: Cell<bool>,
}

impl Budget {
    pub(super) fn new(outcomes: ByteBounds, flows: ByteBounds, reserved: Arc<AtomicUsize>) -> Self {
        let kinds = [KindBudget::new(BodyKind::Outcome, outcomes), KindBudget::new(BodyKind::Flow, flows)];
        Self { kinds: RefCell::new(kinds), reserved, freed: Cell::new(false), notify: Cell::new(false) }
    }

    /// Reserves memory for a body that has not been loaded yet.
    ///
    /// # Errors
    /// [`Exceeded`] names the budget that is used up; nothing is reserved then.
    pub(super) fn reserve(
        self: &Rc<Self>,
        need: Need,
        receiver: &Arc<Receiver>,
        notify: &Recipient<BytesFreed>,
    ) -> Result<Reservation, Exceeded> {
        let Need { kind, bytes } = need;
        self.kinds.borrow()[kind as usize].check(receiver, bytes)?;
        self.change(kind, receiver, 0, bytes);
        Ok(Reservation { budget: Rc::clone(self), kind, receiver: Arc::clone(receiver), bytes, notify: notify.clone() })
    }

    /// Returns true if memory was released since all blocked receivers were last checked.
    pub(super) fn was_freed(&self) -> bool {
        self.freed.get()
    }

    /// Notes that all blocked receivers have been checked.
    pub(super) fn clear_freed(&self) {
        self.freed.set(false);
    }

    /// Sets whether the dispatcher is notified, once, when memory is released.
    pub(super) fn set_notify(&self, notify: bool) {
        self.notify.set(notify);
    }

    /// Replaces `from` reserved bytes of a receiver by `to`.
    fn change(&self, kind: BodyKind, receiver: &Arc<Receiver>, from: usize, to: usize) {
        let mut kinds = self.kinds.borrow_mut();
        kinds[kind as usize].change(receiver, from, to);
        self.reserved.store(kinds.iter().map(|kind| kind.reserved).sum(), Ordering::Relaxed);
    }
}

/// Memory that is reserved until this is dropped.
#[derive(Debug)]
pub(super) struct Reservation {
    budget: Rc<Budget>,
    kind: BodyKind,
    receiver: Arc<Receiver>,
    bytes: usize,
    notify: Recipient<BytesFreed>,
}

impl Reservation {
    /// Sets the reservation to the real size of the body once it is loaded.
    pub(super) fn resize(&mut self, bytes: usize) {
        self.budget.change(self.kind, &self.receiver, self.bytes, bytes);
        self.bytes = bytes;
        self.budget.freed.set(true);
        if self.budget.notify.replace(false) {
            self.notify.do_send(BytesFreed);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.resize(0);
    }
}

/// Memory was released while a receiver waits for it.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub(super) struct BytesFreed;

#[cfg(test)]
mod tests {
    use super::*;
    use actix::{Actor, Context, Handler};
    use sakshi_trace::invariant::broken_by;

    const MIB: usize = 1_024 * 1_024;

    /// Counts the notifications about released memory.
    struct Counter(Rc<Cell<usize>>);

    impl Actor for Counter {
        type Context = Context<Self>;
    }

    impl Handler<BytesFreed> for Counter {
        type Result = ();
        fn handle(&mut self, _: BytesFreed, _: &mut Self::Context) {
            self.0.set(self.0.get() + 1);
        }
    }

    struct Fixture {
        budget: Rc<Budget>,
        reserved: Arc<AtomicUsize>,
        notify: Recipient<BytesFreed>,
        notices: Rc<Cell<usize>>,
    }

    impl Fixture {
        fn new(total: usize, per_origin: usize) -> Self {
            let (bounds, reserved, notices) = (ByteBounds { total, per_origin }, Arc::default(), Rc::default());
            let budget = Rc::new(Budget::new(bounds, bounds, Arc::clone(&reserved)));
            Self { budget, reserved, notify: Counter(Rc::clone(&notices)).start().recipient(), notices }
        }

        /// Reserves memory for the largest body. The first letter of an origin is its client.
        fn reserve(&self, kind: BodyKind, origin: &str) -> Result<Reservation, Exceeded> {
            let client = format!("cl_{:032x}", origin.as_bytes()[0]).parse().unwrap();
            let receiver = Arc::new(Receiver { client, origin: origin.to_owned() });
            self.budget.reserve(Need { kind, bytes: kind.bytes_max() }, &receiver, &self.notify)
        }

        fn reserved(&self) -> usize {
            self.reserved.load(Ordering::Relaxed)
        }
    }

    #[actix::test]
    async fn neither_an_origin_nor_the_total_exceeds_its_bound() {
        let fixture = Fixture::new(64 * MIB, 32 * MIB);
        let mut reservations = Vec::new();
        for origin in ["a", "a", "b", "c"] {
            reservations.push(fixture.reserve(BodyKind::Flow, origin).unwrap());
        }
        assert_eq!(fixture.reserved(), 64 * MIB);
        assert_eq!(fixture.reserve(BodyKind::Flow, "a").unwrap_err(), Exceeded::Share);
        assert_eq!(fixture.reserve(BodyKind::Flow, "d").unwrap_err(), Exceeded::Total);
        reservations[0].resize(15 * MIB);
        assert_eq!(
            fixture.reserve(BodyKind::Flow, "a").unwrap_err(),
            Exceeded::Share,
            "one MiB is too small for the largest body"
        );
        reservations.pop();
        reservations.push(fixture.reserve(BodyKind::Flow, "c").unwrap());
        reservations.clear();
        assert_eq!(fixture.reserved(), 0);
    }

    #[actix::test]
    async fn a_client_with_many_origins_has_no_more_than_is_free() {
        // The largest body has 16 MiB. A client may take as much as it leaves free: four bodies here, then two of the
        // rest.
        let fixture = Fixture::new(128 * MIB, 32 * MIB);
        let reserve = |number: usize, client: &str| fixture.reserve(BodyKind::Flow, &format!("{client}{number}"));
        let first_client: Vec<_> = (0..9).map_while(|number| reserve(number, "a").ok()).collect();
        assert_eq!((first_client.len(), reserve(9, "a").unwrap_err()), (4, Exceeded::Share));
        let second_client: Vec<_> = (0..9).map_while(|number| reserve(number, "b").ok()).collect();
        assert_eq!((second_client.len(), reserve(9, "b").unwrap_err()), (2, Exceeded::Share));
        let _third = reserve(0, "c").unwrap();
        drop(first_client);
        drop(reserve(9, "b").unwrap());
    }

    #[actix::test]
    async fn a_small_body_releases_unneeded_memory_at_once() {
        let fixture = Fixture::new(ByteBounds::FLOWS.total, ByteBounds::FLOWS.per_origin);
        let mut reservations = Vec::new();
        for _ in 0..64 {
            let mut reservation = fixture.reserve(BodyKind::Flow, "a").unwrap();
            reservation.resize(100_000);
            reservations.push(reservation);
        }
        assert_eq!(fixture.reserved(), 6_400_000);
        fixture.reserve(BodyKind::Flow, "a").unwrap().resize(10_000_000);
    }

    #[actix::test]
    async fn files_leave_memory_to_verifications_and_one_body_always_fits() {
        let fixture = Fixture::new(0, 0);
        let _file = fixture.reserve(BodyKind::Flow, "a").unwrap();
        assert_eq!(fixture.reserve(BodyKind::Flow, "b").unwrap_err(), Exceeded::Total);
        let _outcome = fixture.reserve(BodyKind::Outcome, "a").unwrap();
        assert_eq!(fixture.reserved(), REPORT_BYTES_MAX + CALLBACK_BYTES_MAX);
    }

    #[actix::test]
    async fn a_dispatcher_is_notified_once_and_only_while_it_waits() {
        let fixture = Fixture::new(64 * MIB, 64 * MIB);
        let mut reservations: Vec<_> =
            ["a", "b", "c", "d"].map(|origin| fixture.reserve(BodyKind::Flow, origin).unwrap()).into();
        reservations.pop();
        fixture.budget.set_notify(true);
        reservations.clear();
        while fixture.notices.get() == 0 {
            tokio::task::yield_now().await;
        }
        assert!(fixture.budget.was_freed());
        tokio::task::yield_now().await;
        assert_eq!(fixture.notices.get(), 1);
    }

    #[test]
    fn releasing_unreserved_memory_breaks_an_invariant() {
        let receiver = Arc::new(Receiver { client: ClientId::generate(), origin: "https://a.example".into() });
        const OWNER_INVARIANT: &str = "webhook memory of an owner is given back once";
        let broken = |kind: &mut KindBudget, from, to| broken_by(|| kind.change(&receiver, from, to));
        let mut kind = KindBudget::new(BodyKind::Flow, ByteBounds::FLOWS);
        assert_eq!(broken(&mut kind, 0, 5), Vec::<&str>::new());
        assert_eq!(
            broken(&mut kind, 6, 5),
            ["webhook memory that is given back was reserved", OWNER_INVARIANT, OWNER_INVARIANT]
        );
        assert_eq!(broken(&mut kind, 5, 0), Vec::<&str>::new());
        kind.reserved = 1;
        assert_eq!(broken_by(|| _ = kind.is_fully_owned()), ["webhook memory that is reserved is of a client"]);
        kind.by_client.insert(receiver.client.clone(), 1);
        assert_eq!(broken_by(|| _ = kind.is_fully_owned()), ["webhook memory that is reserved is of a receiver"]);
    }
}
