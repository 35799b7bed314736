//! The memory that webhook bodies may take: on the whole, and for one origin, so that a receiver
//! that hangs on large files cannot starve the others.
//!
//! Room is taken before a body is loaded, for the largest that can be made of what is stored of it,
//! and given back down to its real size once that is known. Outcomes of verifications and payloads of flows have room of
//! their own: no verification waits because of files.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use actix::Recipient;
use sakshi_domain::delivery::{QueuedDelivery, Subject};
use sakshi_domain::limits::{CALLBACK_BYTES_MAX, REPORT_BYTES_MAX};

use super::BytesFreed;

/// What a body may have beside the outcome that it is made of: its frame, the reference of the client, and a message twice.
pub(super) const BESIDE_BYTES: usize = 4 * 1_024;

/// What a body tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyKind {
    /// The outcome of a verification, photo claim included.
    Outcome,
    /// What an upstream reported, files included.
    Flow,
}

impl BodyKind {
    pub(super) const ALL: [Self; 2] = [Self::Outcome, Self::Flow];

    const fn of(subject: Subject) -> Self {
        match subject {
            Subject::Transaction(_) => Self::Outcome,
            Subject::Flow { .. } => Self::Flow,
        }
    }

    /// Bytes of the largest: none is larger than what arrived for it.
    const fn largest(self) -> usize {
        match self {
            Self::Outcome => CALLBACK_BYTES_MAX,
            Self::Flow => REPORT_BYTES_MAX,
        }
    }
}

/// What a delivery needs before its body is loaded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Need {
    pub(super) kind: BodyKind,
    bytes: usize,
}

impl Need {
    pub(super) const fn of(delivery: &QueuedDelivery) -> Self {
        let kind = BodyKind::of(delivery.subject);
        let most = delivery.stored_bytes.saturating_add(BESIDE_BYTES);
        Self { kind, bytes: if most < kind.largest() { most } else { kind.largest() } }
    }
}

/// Bytes that the bodies of one kind may take. Room for one body of the largest size is always
/// there, whatever is set; an origin needs some beyond it for anything to be sent to it meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct ByteBounds {
    /// To all receivers together.
    pub in_all: usize,
    /// To one origin.
    pub per_host: usize,
}

impl ByteBounds {
    /// For outcomes of verifications: 128 MiB in all, 16 MiB to one origin.
    pub const OUTCOMES: Self = Self { in_all: 128 * 1_024 * 1_024, per_host: 16 * 1_024 * 1_024 };
    /// For payloads of flows: 384 MiB in all, 24 MiB to one origin, which is one file of the largest
    /// size or many small ones. It takes sixteen origins that hang to delay another one.
    pub const FLOWS: Self = Self { in_all: 384 * 1_024 * 1_024, per_host: 24 * 1_024 * 1_024 };
}

/// Whose room is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Short {
    /// That of the origin.
    Origin,
    /// That of all.
    All,
}

#[derive(Debug)]
struct Room {
    bounds: ByteBounds,
    taken: usize,
    by_origin: HashMap<Rc<str>, usize>,
}

impl Room {
    fn new(kind: BodyKind, bounds: ByteBounds) -> Self {
        let per_host = bounds.per_host.max(kind.largest());
        let bounds = ByteBounds { in_all: bounds.in_all.max(per_host), per_host };
        Self { bounds, taken: 0, by_origin: HashMap::new() }
    }

    fn has(&self, origin: &str, bytes: usize) -> Result<(), Short> {
        let of_origin = self.by_origin.get(origin).copied().unwrap_or(0);
        if of_origin.saturating_add(bytes) > self.bounds.per_host {
            Err(Short::Origin)
        } else if self.taken.saturating_add(bytes) > self.bounds.in_all {
            Err(Short::All)
        } else {
            Ok(())
        }
    }

    fn change(&mut self, origin: &Rc<str>, from: usize, to: usize) {
        self.taken = self.taken.saturating_sub(from).saturating_add(to);
        let of_origin = self.by_origin.entry(Rc::clone(origin)).or_default();
        *of_origin = of_origin.saturating_sub(from).saturating_add(to);
        if *of_origin == 0 {
            self.by_origin.remove(origin);
        }
    }
}

/// The memory of all bodies that are loaded or about to be. It outlives a restart of the
/// dispatcher, as the attempts do.
#[derive(Debug)]
pub(super) struct Budget {
    rooms: RefCell<[Room; 2]>,
    /// What all kinds take, for whoever wants to see it.
    taken: Arc<AtomicUsize>,
    /// Some was given back since everybody who waits was last looked at.
    freed: Cell<bool>,
    /// Somebody waits and is to be told.
    wanted: Cell<bool>,
}

impl Budget {
    pub(super) fn new(outcomes: ByteBounds, flows: ByteBounds, taken: Arc<AtomicUsize>) -> Self {
        let rooms = [Room::new(BodyKind::Outcome, outcomes), Room::new(BodyKind::Flow, flows)];
        Self { rooms: RefCell::new(rooms), taken, freed: Cell::new(false), wanted: Cell::new(false) }
    }

    /// Takes room for a body that has not been loaded yet.
    ///
    /// # Errors
    /// Whose room is used up; nothing is taken then.
    pub(super) fn take(self: &Rc<Self>, need: Need, origin: &Rc<str>, tell: &Recipient<BytesFreed>) -> Result<Held, Short> {
        let Need { kind, bytes } = need;
        self.rooms.borrow()[kind as usize].has(origin, bytes)?;
        self.change(kind, origin, 0, bytes);
        Ok(Held { budget: Rc::clone(self), kind, origin: Rc::clone(origin), bytes, tell: tell.clone() })
    }

    /// Whether room was given back since everybody who waits was last looked at.
    pub(super) fn was_freed(&self) -> bool {
        self.freed.get()
    }

    /// Everybody who waits was looked at.
    pub(super) fn seen(&self) {
        self.freed.set(false);
    }

    /// Whether to tell when room is given back.
    pub(super) fn tell(&self, wanted: bool) {
        self.wanted.set(wanted);
    }

    fn change(&self, kind: BodyKind, origin: &Rc<str>, from: usize, to: usize) {
        let mut rooms = self.rooms.borrow_mut();
        rooms[kind as usize].change(origin, from, to);
        self.taken.store(rooms.iter().map(|room| room.taken).sum(), Ordering::Relaxed);
    }
}

/// Room that is taken, until it is dropped.
#[derive(Debug)]
pub(super) struct Held {
    budget: Rc<Budget>,
    kind: BodyKind,
    origin: Rc<str>,
    bytes: usize,
    tell: Recipient<BytesFreed>,
}

impl Held {
    /// The body is there, and takes so many bytes.
    pub(super) fn resize(&mut self, bytes: usize) {
        self.budget.change(self.kind, &self.origin, self.bytes, bytes);
        self.bytes = bytes;
        self.budget.freed.set(true);
        if self.budget.wanted.replace(false) {
            self.tell.do_send(BytesFreed);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.resize(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix::{Actor, Context, Handler};

    const MIB: usize = 1_024 * 1_024;

    struct Told(Rc<Cell<usize>>);

    impl Actor for Told {
        type Context = Context<Self>;
    }

    impl Handler<BytesFreed> for Told {
        type Result = ();
        fn handle(&mut self, _: BytesFreed, _: &mut Self::Context) {
            self.0.set(self.0.get() + 1);
        }
    }

    struct Scene {
        budget: Rc<Budget>,
        taken: Arc<AtomicUsize>,
        tell: Recipient<BytesFreed>,
        told: Rc<Cell<usize>>,
    }

    impl Scene {
        fn new(in_all: usize, per_host: usize) -> Self {
            let (bounds, taken, told) = (ByteBounds { in_all, per_host }, Arc::default(), Rc::default());
            let budget = Rc::new(Budget::new(bounds, bounds, Arc::clone(&taken)));
            Self { budget, taken, tell: Told(Rc::clone(&told)).start().recipient(), told }
        }

        /// Room for the largest body.
        fn take(&self, kind: BodyKind, origin: &str) -> Result<Held, Short> {
            self.budget.take(Need { kind, bytes: kind.largest() }, &origin.into(), &self.tell)
        }

        fn taken(&self) -> usize {
            self.taken.load(Ordering::Relaxed)
        }
    }

    #[actix::test]
    async fn no_origin_and_not_all_together_take_more_than_their_bound() {
        let scene = Scene::new(64 * MIB, 32 * MIB);
        let mut held = Vec::new();
        for origin in ["a", "a", "b", "b"] {
            held.push(scene.take(BodyKind::Flow, origin).unwrap());
        }
        assert_eq!(scene.taken(), 64 * MIB);
        assert_eq!(scene.take(BodyKind::Flow, "a").unwrap_err(), Short::Origin);
        assert_eq!(scene.take(BodyKind::Flow, "c").unwrap_err(), Short::All);
        held[0].resize(15 * MIB);
        assert_eq!(scene.take(BodyKind::Flow, "a").unwrap_err(), Short::Origin, "one byte less is no room for the largest");
        held.pop();
        held.push(scene.take(BodyKind::Flow, "c").unwrap());
        held.clear();
        assert_eq!(scene.taken(), 0);
    }

    #[actix::test]
    async fn a_small_body_gives_back_what_it_does_not_need_at_once() {
        let scene = Scene::new(ByteBounds::FLOWS.in_all, ByteBounds::FLOWS.per_host);
        let mut held = Vec::new();
        for _ in 0..64 {
            let mut room = scene.take(BodyKind::Flow, "a").unwrap();
            room.resize(100_000);
            held.push(room);
        }
        assert_eq!(scene.taken(), 6_400_000);
        scene.take(BodyKind::Flow, "a").unwrap().resize(10_000_000);
    }

    #[actix::test]
    async fn files_take_no_room_from_verifications_and_there_is_always_room_for_one_body() {
        let scene = Scene::new(0, 0);
        let _file = scene.take(BodyKind::Flow, "a").unwrap();
        assert_eq!(scene.take(BodyKind::Flow, "b").unwrap_err(), Short::All);
        let _outcome = scene.take(BodyKind::Outcome, "a").unwrap();
        assert_eq!(scene.taken(), REPORT_BYTES_MAX + CALLBACK_BYTES_MAX);
    }

    #[actix::test]
    async fn whoever_waits_is_told_once_and_nobody_is_who_does_not_wait() {
        let scene = Scene::new(64 * MIB, 64 * MIB);
        let mut rooms: Vec<_> = (0..4).map(|_| scene.take(BodyKind::Flow, "a").unwrap()).collect();
        rooms.pop();
        scene.budget.tell(true);
        rooms.clear();
        while scene.told.get() == 0 {
            tokio::task::yield_now().await;
        }
        assert!(scene.budget.was_freed());
        tokio::task::yield_now().await;
        assert_eq!(scene.told.get(), 1);
    }
}
