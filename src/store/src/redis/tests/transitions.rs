//! Transitions on every engine answer as the two stores do: random grants, adjustments and openings, with and without idempotency
//! keys and events.

use std::sync::Arc;
use std::time::Duration;

use sakshi_domain::credits::{CreditMove, EntryKind};
use sakshi_domain::ids::ClientId;
use sakshi_kit::random::Random;

use super::test_store;
use crate::conformance::fixture::{client, created, event, kept, opening, scan};
use crate::conformance::run;
use crate::credits::CreditOutcome;
use crate::embedded::EmbeddedStore;
use crate::engine::embedded::EmbeddedEngine;
use crate::engine::memory::MemoryEngine;
use crate::engine::redis::RedisEngine;
use crate::engine::{Batch, Engine, Op};
use crate::installation::test_ownership;
use crate::records;
use crate::transitions::{credits, open};
use crate::vault::test_vault;
use crate::{CreateEvent, Credits as _, Events as _, OpenOutcome, OpenTransaction, Tenancy as _, Transactions as _};

const COMMANDS: usize = 600;
const GRACE_MS: i64 = 24 * 3_600_000;

#[derive(Clone, Debug)]
enum Command {
    Move(ClientId, CreditMove),
    Open(OpenTransaction),
}

#[derive(Debug, PartialEq)]
enum Outcome {
    Moved(CreditOutcome),
    Opened(OpenOutcome),
}

async fn carried_out(engine: &dyn Engine, command: &Command) -> Outcome {
    match command {
        Command::Move(client, movement) => {
            let applied = engine.commit(vec![credits::move_credits(client, movement)]).await.unwrap().remove(0);
            Outcome::Moved(credits::moved(movement, applied))
        }
        Command::Open(command) => {
            let sealed = vec![7; 40];
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
    }
}

fn amounts(random: &mut Random) -> i64 {
    [1, 2, 5, 1_000, -1, -3, 0, i64::MAX, i64::MAX - 3, i64::MIN][random.below(10) as usize]
}

#[test]
fn transitions_answer_as_the_stores_do_on_every_engine() {
    let redis = test_store();
    let clock = Arc::clone(&redis.clock);
    let sqlite = || EmbeddedStore::in_memory(clock.clone(), Arc::new(test_vault(&[7])), &test_ownership(), None).unwrap();
    let embedded = sqlite();
    run(async {
        let engines: [Arc<dyn Engine>; 3] = [
            Arc::new(MemoryEngine::new(clock.clone())),
            Arc::new(EmbeddedEngine::open(sqlite(), records::ALL).await.unwrap()),
            Arc::new(RedisEngine::new(redis.store.clone())),
        ];
        let owner = client(&redis);
        redis.store.create_client(owner.clone()).await.unwrap();
        embedded.create_client(owner.clone()).await.unwrap();
        let owner = owner.client_id;
        let [open_event, small_event] = [event(&redis, &owner, 100), event(&redis, &owner, 1)];
        let grant = CreditMove { kind: EntryKind::Grant, amount: 50, reference: "opening".into() };
        for event in [&open_event, &small_event] {
            created(&redis, event.clone()).await;
            embedded.create_event(CreateEvent { event: event.clone(), most: None, idempotency: None }).await.unwrap();
        }
        for engine in &engines {
            let mut ops = vec![Op::Put(records::client::client(&owner), vec![("balance", 0.into())])];
            for event in [&open_event, &small_event] {
                let key = records::event::event(owner.partition(), event.id);
                let fields = vec![
                    ("client", owner.as_str().into()),
                    ("app", event.app.as_str().into()),
                    ("is_active", 1.into()),
                    ("expires_at", event.terms.expires_at.into()),
                    ("max_guests", i64::from(event.terms.max_guests.get()).into()),
                    ("registrations", 0.into()),
                ];
                ops.extend([Op::Put(key.clone(), fields), Op::ExpireAt(key, (event.terms.expires_at + Duration::from_secs(9_999)).into())]);
            }
            engine.commit(vec![Batch { guards: vec![], ops }]).await.unwrap();
        }
        let mut random = Random::from_seed(3);
        let mut past: Vec<Command> = vec![Command::Move(owner.clone(), grant)];
        let mut counts = std::collections::BTreeMap::<String, usize>::new();
        for number in 0..COMMANDS {
            let command = match random.below(10) {
                _ if number == 0 => past[0].clone(),
                0 => past[random.below(past.len() as u64) as usize].clone(),
                1..=3 => {
                    let kind = [EntryKind::Grant, EntryKind::Adjust, EntryKind::Debit][random.below(3) as usize];
                    let of = if random.below(8) == 0 { ClientId::generate() } else { owner.clone() };
                    let reference = format!("reference {}", random.below(60));
                    Command::Move(of, CreditMove { kind, amount: amounts(&mut random), reference })
                }
                choice => {
                    let mut open = match choice {
                        4 => scan(&redis, &open_event),
                        5 => scan(&redis, &small_event),
                        6 => scan(&redis, &event(&redis, &owner, 5)),
                        _ => opening(&redis, &owner),
                    };
                    if choice == 5 && random.below(4) == 0 {
                        Arc::make_mut(&mut open.pending).app = open_event.app.clone();
                    }
                    open.cost = [1, 1, 1, 0, 3, u64::MAX][random.below(6) as usize];
                    if random.below(3) == 0 {
                        let (key, request) = (random.below(12) as u8, random.below(2) as u8);
                        open.idempotency = Some(kept(&redis, &owner, key, request));
                    }
                    Command::Open(open)
                }
            };
            past.push(command.clone());
            let expected = match command.clone() {
                Command::Move(client, movement) => {
                    let outcome = redis.store.move_credits(client.clone(), movement.clone()).await.unwrap();
                    assert_eq!(embedded.move_credits(client, movement).await.unwrap(), outcome);
                    Outcome::Moved(outcome)
                }
                Command::Open(open) => {
                    let outcome = redis.store.open_transaction(open.clone()).await.unwrap();
                    assert_eq!(embedded.open_transaction(open).await.unwrap(), outcome);
                    Outcome::Opened(outcome)
                }
            };
            let word = format!("{expected:?}");
            *counts.entry(word.split([' ', '{']).next().unwrap_or_default().to_owned()).or_default() += 1;
            for engine in &engines {
                assert_eq!(carried_out(&**engine, &command).await, expected, "{number}: {engine:?} {command:?}");
            }
            if random.below(30) == 0 {
                clock.advance(Duration::from_secs(random.below(200)));
            }
        }
        eprintln!("{counts:?}");
        assert!(counts.len() >= 8, "{counts:?}");
    });
}
