//! Transitions on every engine answer as the two stores do: random grants, adjustments, openings with and without idempotency keys
//! and events, completions and windows that are ended early.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use sakshi_domain::clock::Clock as _;
use sakshi_domain::credits::{CreditMove, EntryKind};
use sakshi_domain::event::{Event, EventCounts};
use sakshi_domain::ids::{ClientId, TxnId};
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::Pending;
use sakshi_kit::random::Random;

use super::{RedisTestStore, test_store_keeping};
use crate::conformance::fixture::{RETENTION, client, completing, declining, event, kept, opening, passing, scan};
use crate::conformance::run;
use crate::credits::CreditOutcome;
use crate::embedded::EmbeddedStore;
use crate::engine::embedded::EmbeddedEngine;
use crate::engine::memory::MemoryEngine;
use crate::engine::redis::RedisEngine;
use crate::engine::{Batch, Engine, Op, Operand, Value};
use crate::installation::test_ownership;
use crate::paging::Rows;
use crate::records;
use crate::redis::RedisStore;
use crate::sealing::seal_terms;
use crate::transitions::{complete, credits, open};
use crate::vault::test_vault;
use crate::{
    CompleteOutcome, CompleteTransaction, CreateEvent, Events as _, ExpireOutcome, OpenOutcome, OpenTransaction, Retention, Store,
};

const COMMANDS: usize = 1_200;
const GRACE_MS: i64 = 24 * 3_600_000;

#[derive(Clone, Debug)]
enum Command {
    Move(ClientId, CreditMove),
    Open(OpenTransaction),
    Complete(CompleteTransaction),
    Expire(TxnId),
}

#[derive(Debug, PartialEq)]
enum Outcome {
    Moved(CreditOutcome),
    Opened(OpenOutcome),
    Completed(CompleteOutcome),
    Expired(ExpireOutcome),
}

async fn carried_out(engine: &dyn Engine, command: &Command) -> Outcome {
    match command {
        Command::Move(client, movement) => {
            let applied = engine.commit(vec![credits::move_credits(client, movement)]).await.unwrap().remove(0);
            Outcome::Moved(credits::moved(movement, applied))
        }
        Command::Open(command) => {
            let sealed = seal_terms(&test_vault(&[7]), command.pending.id, &command.pending.terms).unwrap();
            let opening = open::open(command, &sealed, GRACE_MS);
            let applied = engine.commit(vec![opening.batch.clone()]).await.unwrap().remove(0);
            let account = records::client::client(&command.pending.client);
            Outcome::Opened(match open::opened(&opening, account, applied) {
                open::Conclusion::Outcome(outcome) => outcome,
                open::Conclusion::OpenedBefore(account) => {
                    let account = engine.read(vec![account]).await.unwrap().remove(0).unwrap_or_default();
                    OpenOutcome::Opened { balance: account.integer("balance").unsigned_abs() }
                }
            })
        }
        Command::Complete(command) => Outcome::Completed(completed(engine, command).await),
        Command::Expire(id) => Outcome::Expired(match pending(engine, *id).await {
            None => ExpireOutcome::NotFound,
            Some(opened) => {
                let applied = engine.commit(vec![complete::expire(&opened)]).await.unwrap().remove(0);
                complete::expired(&test_vault(&[7]), &opened, applied).unwrap()
            }
        }),
    }
}

/// The transaction as it was opened.
async fn pending(engine: &dyn Engine, id: TxnId) -> Option<Pending> {
    let found = engine.read(vec![records::transaction::transaction(id)]).await.unwrap().remove(0)?;
    let read = records::transaction::transaction_of(&test_vault(&[7]), id, &found, Timestamp::from_millis(0)).unwrap();
    Some(read.opened().clone())
}

async fn completed(engine: &dyn Engine, command: &CompleteTransaction) -> CompleteOutcome {
    let Some(opened) = pending(engine, command.id).await else { return CompleteOutcome::NotFound };
    let mut refused = None;
    loop {
        let completion = complete::complete(command, &opened, refused);
        let applied = engine.commit(vec![completion.batch.clone()]).await.unwrap().remove(0);
        match completion.concluded(&test_vault(&[7]), applied).unwrap() {
            complete::Conclusion::Outcome(outcome) => return *outcome,
            complete::Conclusion::NoPlace(refusal) => refused = Some(refusal),
        }
    }
}

/// Deliveries are not records yet.
fn without_delivery(mut outcome: CompleteOutcome) -> CompleteOutcome {
    if let CompleteOutcome::Completed { queued, .. } = &mut outcome {
        *queued = None;
    }
    outcome
}

/// Makes commands about one client, three events and what the commands before left.
struct Maker<'a> {
    random: Random,
    redis: &'a RedisTestStore,
    owner: ClientId,
    /// An open one, one that is full soon and one that ends soon.
    events: [Event; 3],
    past: Vec<Command>,
    opened: Vec<TxnId>,
}

impl Maker<'_> {
    fn command(&mut self) -> Command {
        let command = match self.random.below(20) {
            0 if !self.past.is_empty() => self.past[self.random.below(self.past.len() as u64) as usize].clone(),
            0..=3 => self.movement(),
            13..=18 => self.answer(),
            choice => self.opening(choice),
        };
        self.past.push(command.clone());
        command
    }

    fn movement(&mut self) -> Command {
        let kind = [EntryKind::Grant, EntryKind::Adjust, EntryKind::Debit][self.random.below(3) as usize];
        let amount = [1, 2, 5, 1_000, -1, -3, 0, i64::MAX, i64::MAX - 3, i64::MIN][self.random.below(10) as usize];
        let of = if self.random.below(8) == 0 { ClientId::generate() } else { self.owner.clone() };
        let reference = format!("reference {}", self.random.below(60));
        Command::Move(of, CreditMove { kind, amount, reference })
    }

    fn opening(&mut self, choice: u64) -> Command {
        let [open_event, small_event, short_event] = &self.events;
        let mut open = match choice {
            4 => scan(self.redis, open_event),
            5 | 9..=12 => scan(self.redis, small_event),
            6 => scan(self.redis, &event(self.redis, &self.owner, 5)),
            7 | 19 => scan(self.redis, short_event),
            _ => opening(self.redis, &self.owner),
        };
        if choice == 5 && self.random.below(4) == 0 {
            Arc::make_mut(&mut open.pending).app = open_event.app.clone();
        }
        open.cost = [1, 1, 1, 0, 3, u64::MAX][self.random.below(6) as usize];
        if self.random.below(3) == 0 {
            let (key, request) = (self.random.below(12) as u8, self.random.below(2) as u8);
            open.idempotency = Some(kept(self.redis, &self.owner, key, request));
        }
        Command::Open(open)
    }

    /// About one of the transactions that were opened last, or seldom any.
    fn answer(&mut self) -> Command {
        let among = if self.random.below(6) == 0 { self.opened.len() } else { self.opened.len().min(30) };
        let id = match among {
            0 => TxnId::generate(self.owner.partition(), 7),
            _ => self.opened[self.opened.len() - 1 - self.random.below(among as u64) as usize],
        };
        let answer = self.random.below(2) as u8;
        match self.random.below(6) {
            0 => Command::Expire(id),
            1 => Command::Complete(declining(id, answer)),
            2 => Command::Complete(completing(id, answer)),
            _ => Command::Complete(passing(id, answer)),
        }
    }
}

/// The outcome in the stores, which agree.
async fn in_stores(redis: &RedisStore, embedded: &EmbeddedStore, command: Command) -> Outcome {
    let [outcome, other] = [redis as &dyn Store, embedded].map(|store| {
        let command = command.clone();
        async move {
            match command {
                Command::Move(client, movement) => Outcome::Moved(store.move_credits(client, movement).await.unwrap()),
                Command::Open(open) => Outcome::Opened(store.open_transaction(open).await.unwrap()),
                Command::Complete(command) => Outcome::Completed(without_delivery(store.complete_transaction(command).await.unwrap())),
                Command::Expire(id) => Outcome::Expired(store.expire_transaction(id).await.unwrap()),
            }
        }
    });
    let outcome = outcome.await;
    assert_eq!(outcome, other.await);
    outcome
}

/// The client without credits, and the events.
fn beginning(owner: &ClientId, events: &[Event]) -> Batch {
    let mut ops = vec![Op::Put(records::client::client(owner), vec![("balance", 0.into())])];
    for event in events {
        let key = records::event::event(owner.partition(), event.id);
        let fields = vec![
            ("client", owner.as_str().into()),
            ("app", event.app.as_str().into()),
            ("is_active", 1.into()),
            ("expires_at", event.terms.expires_at.into()),
            ("max_guests", i64::from(event.terms.max_guests.get()).into()),
            ("registrations", 0.into()),
        ];
        ops.extend([Op::Put(key.clone(), fields), Op::ExpireAt(key, (event.terms.expires_at + RETENTION.events).into())]);
    }
    Batch { guards: vec![], ops }
}

/// The counts of an event, as a reader gets them, and the guests on its list.
async fn counted(engine: &dyn Engine, event: &Event) -> (EventCounts, Vec<TxnId>) {
    let partition = event.client.partition();
    let (at, waiting) = (records::event::event(partition, event.id), records::event::waiting(partition, event.id));
    let ops = vec![Op::Sweep(waiting, Operand::Now(0)), Op::Add(at.clone(), "abandoned", Operand::Result(0))];
    engine.commit(vec![Batch { guards: vec![], ops }]).await.unwrap();
    let record = engine.read(vec![at]).await.unwrap().remove(0).unwrap();
    let counts = EventCounts {
        registrations: record.integer("registrations").try_into().unwrap(),
        scans: record.integer("scans").unsigned_abs(),
        abandoned: record.integer("abandoned").unsigned_abs(),
    };
    let list = engine.entries(records::event::registrations(partition, event.id), 1, 1_000).await.unwrap();
    let guest = |entry: Vec<Value>| match &entry[0] {
        Value::Bytes(id) => TxnId::from_bytes(id[..].try_into().unwrap()),
        other => panic!("{other:?}"),
    };
    (counts, list.into_iter().map(guest).collect())
}

#[test]
fn transitions_answer_as_the_stores_do_on_every_engine() {
    // Kept longer than the test lasts: SQLite removes what is kept no longer with a sweep, which is not part of it.
    let redis = test_store_keeping(Retention { expired: Duration::from_millis(GRACE_MS.unsigned_abs()), ..RETENTION });
    let clock = Arc::clone(&redis.clock);
    let sqlite = || EmbeddedStore::in_memory(clock.clone(), Arc::new(test_vault(&[7])), &test_ownership(), None).unwrap();
    let embedded = sqlite();
    run(async {
        let engines: [Arc<dyn Engine>; 3] = [
            Arc::new(MemoryEngine::new(clock.clone())),
            Arc::new(EmbeddedEngine::open(sqlite(), records::ALL).await.unwrap()),
            Arc::new(RedisEngine::new(redis.store.clone())),
        ];
        let client = client(&redis);
        let owner = client.client_id.clone();
        let mut events = [100, 10, 100].map(|places| event(&redis, &owner, places));
        events[2].terms.expires_at = clock.now() + Duration::from_secs(1_000);
        for store in [&redis.store as &dyn Store, &embedded] {
            store.create_client(client.clone()).await.unwrap();
            for event in &events {
                store.create_event(CreateEvent { event: event.clone(), most: None, idempotency: None }).await.unwrap();
            }
        }
        for engine in &engines {
            engine.commit(vec![beginning(&owner, &events)]).await.unwrap();
        }
        let random = Random::from_seed(3);
        let mut maker = Maker { random, redis: &redis, owner: owner.clone(), events, past: vec![], opened: vec![] };
        let mut kinds = BTreeSet::new();
        for number in 0..COMMANDS {
            let grant = CreditMove { kind: EntryKind::Grant, amount: 50, reference: "opening".into() };
            let command = if number == 0 { Command::Move(owner.clone(), grant) } else { maker.command() };
            let expected = in_stores(&redis.store, &embedded, command.clone()).await;
            for engine in &engines {
                assert_eq!(carried_out(&**engine, &command).await, expected, "{number}: {engine:?} {command:?}");
            }
            if let (Command::Open(open), Outcome::Opened(OpenOutcome::Opened { .. })) = (&command, &expected) {
                maker.opened.push(open.pending.id);
            }
            kinds.insert(kind(&expected));
            if maker.random.below(30) == 0 {
                clock.advance(Duration::from_secs(maker.random.below(200)));
            }
        }
        assert!(kinds.len() >= 22, "{kinds:?}");
        for event in &maker.events {
            let expected = redis.store.load_event(event.id).await.unwrap().unwrap().counts;
            assert_eq!(embedded.load_event(event.id).await.unwrap().unwrap().counts, expected);
            let rows = Rows { offset: 0, limit: 1_000, max_bytes: usize::MAX };
            let guests = redis.store.list_registrations(event.id, rows).await.unwrap().items;
            let guests: Vec<TxnId> = guests.iter().map(|registration| registration.txn).collect();
            for engine in &engines {
                assert_eq!(counted(&**engine, event).await, (expected, guests.clone()), "{engine:?}");
            }
        }
    });
}

/// The kind of outcome, for a list of all that were met.
fn kind(outcome: &Outcome) -> String {
    if let Outcome::Completed(CompleteOutcome::Completed { record, repeated, .. }) = outcome {
        return format!("completed, {repeated} {} {:?}", record.passed, record.refused);
    }
    format!("{outcome:?}").split([' ', '{']).next().unwrap_or_default().to_owned()
}
