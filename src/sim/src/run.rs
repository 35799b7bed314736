//! One run: a thread with a simulated clock, on which everything happens.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use sakshi_domain::clock::{Clock, SystemClock};
use sakshi_domain::credits::{CreditMove, EntryKind};
use sakshi_domain::profile::Profile;
use sakshi_domain::tenancy::Client;
use sakshi_kit::records;
use sakshi_store::embedded::EmbeddedStore;
use sakshi_store::{CreateEvent, Credits as _, Events as _, Ownership, Tenancy as _, Vault};
use tokio::time::{Instant, sleep};
use zeroize::Zeroizing;

use crate::network::Inbox;
use crate::people::{Diary, Person, WINDOW};
use crate::world::{Shape, SimulatedClock, World, lock};
use crate::{chaos, entropy, promises};

/// How long things go wrong, and how long everything has to settle afterwards: the longest window and some more.
const ROUGH: Duration = Duration::from_secs(3 * 60);
const CALM: Duration = Duration::from_secs(WINDOW.as_secs() + 60);

/// What happened in a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Its seed.
    pub seed: u64,
    /// Everything that happened, a line each.
    pub log: Vec<String>,
    /// A digest of all lines: the same seed has the same one.
    pub digest: String,
    /// Promises that were broken.
    pub broken: Vec<String>,
    /// Faults that were injected, by kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// What people learned, by kind.
    pub learned: BTreeMap<String, u64>,
}

/// A smaller run of a seed that breaks a promise: fewer verifications and fewer kinds of faults.
#[must_use]
pub fn shrunk(seed: u64, mut shape: Shape) -> (Shape, Run) {
    let mut found = run(seed, shape);
    let mut smaller: Vec<Box<dyn Fn(Shape) -> Shape>> = Vec::new();
    for bit in 0..Shape::FAULTS.len() {
        smaller.push(Box::new(move |shape| Shape { without: shape.without | 1 << bit, ..shape }));
    }
    for verifications in (1..10).rev() {
        smaller.push(Box::new(move |shape| Shape { verifications: Some(verifications), ..shape }));
    }
    for smaller in smaller {
        let ran = run(seed, smaller(shape));
        if !ran.broken.is_empty() {
            (shape, found) = (smaller(shape), ran);
        }
    }
    (shape, found)
}

/// Runs a seed.
#[must_use]
pub fn run(seed: u64, shape: Shape) -> Run {
    let thread = std::thread::spawn(move || {
        entropy::seed(seed);
        let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
        actix_rt::System::with_tokio_rt(runtime).block_on(simulated(seed, shape))
    });
    thread.join().expect("a run ends")
}

async fn simulated(seed: u64, shape: Shape) -> Run {
    let begun = Instant::now();
    let vault = Arc::new(Vault::new(&[Zeroizing::new(vec![7; 32])]).expect("a vault"));
    let in_memory = |clock: Arc<dyn Clock>, like| {
        let ownership = Ownership::of(Profile::Sandbox, "https://issuer.test");
        EmbeddedStore::in_memory(clock, Arc::clone(&vault), &ownership, like).expect("a store")
    };
    // Making the tables takes longer than copying them.
    static EMPTY: OnceLock<EmbeddedStore> = OnceLock::new();
    let empty = EMPTY.get_or_init(|| in_memory(Arc::new(SystemClock), None));
    let store = in_memory(SimulatedClock::new(begun, 0), Some(empty));
    let world = World::new(seed, shape, store, vault, begun);
    let credits = 10 + world.below(60);
    provide(&world, credits).await;
    let (inbox, diary) = (Inbox::default(), Arc::new(Diary::default()));
    for number in 0..world.nodes() {
        actix_rt::spawn(chaos::start(Arc::clone(&world), Arc::clone(&inbox), number));
    }
    actix_rt::spawn(chaos::breaks(Arc::clone(&world), Arc::clone(&inbox)));
    let person = Arc::new(Person { world: Arc::clone(&world), diary: Arc::clone(&diary) });
    actix_rt::spawn(Arc::clone(&person).organises());
    actix_rt::spawn(Arc::clone(&person).operates());
    let verifications = 10 + world.below(20);
    for _ in 0..shape.verifications.unwrap_or(verifications) {
        actix_rt::spawn(Arc::clone(&person).verification(world.chance(400)));
    }
    sleep(ROUGH).await;
    world.is_rough.store(false, Ordering::Relaxed);
    world.say(|line| line.push_str("nothing goes wrong any more"));
    sleep(CALM).await;
    person.looks_at_everything().await;
    let told = lock(&inbox).clone();
    let broken = promises::broken(&world, &diary, &told, credits).await;
    let mut learned = BTreeMap::new();
    for fact in lock(&diary.facts).iter() {
        let kind = format!("{:?}", fact.learned);
        *learned.entry(kind.split(' ').next().unwrap_or_default().to_owned()).or_default() += 1;
    }
    let log = world.log();
    let digest = digest(&SHA256, log.join("\n").as_bytes());
    let digest = digest.as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    let faults = lock(&world.faults).clone();
    Run { seed, log, digest, broken, faults, learned }
}

/// A client with credits, and an event.
async fn provide(world: &World, credits: u64) {
    let client = Client::new(world.client.clone(), "Simulated".into(), world.store_time());
    world.store.create_client(client).await.expect("a client");
    world.store.create_app(records::app(world.app.clone(), world.client.clone())).await.expect("an app");
    let grant = CreditMove { kind: EntryKind::Grant, amount: i64::try_from(credits).unwrap_or(0), reference: "start".into() };
    world.store.move_credits(world.client.clone(), grant).await.expect("a grant");
    let lasting = Duration::from_secs(3_600);
    let mut event = records::event(world.event, world.client.clone(), world.app.clone(), world.store_time(), lasting);
    let url = "https://receiver-4.example/guests";
    event.terms.webhook_url = sakshi_domain::http_url::HttpUrl::parse(url, sakshi_domain::http_url::Schemes::HttpAndHttps).ok();
    world.store.create_event(CreateEvent { event, most: None, idempotency: None }).await.expect("an event");
}
