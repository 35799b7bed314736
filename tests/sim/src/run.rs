//! One run: a thread with a simulated clock.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use sakshi_domain::credits::{CreditMove, EntryKind};
use sakshi_domain::ids::{AppId, ClientId, KeyId};
use sakshi_domain::network::Networks;
use sakshi_domain::tenancy::{ApiKeyRecord, Client};
use sakshi_kit::records;
use sakshi_sandbox::residents::Resident;
use sakshi_service::api_key::ApiKey;
use sakshi_store::engine::memory::MemoryEngine;
use sakshi_trace::invariant::broken_by;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use crate::clock::SimulatedClock;
use crate::evidence::Evidence;
use crate::node::{WINDOW, authority};
use crate::pairs::{meet, scheduled};
use crate::process::run;
use crate::rotation::{rotates, vault};
use crate::shape::Shape;
use crate::sim::{Sim, Tenant};
use crate::world::{World, lock};
use crate::{chaos, entropy, promises};

/// Duration of the faults, and of the quiet period after them: the longest window and some more.
const ROUGH: Duration = Duration::from_secs(100);
const CALM: Duration = Duration::from_secs(WINDOW.as_secs() + 45);

/// The record of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    /// Its seed.
    pub seed: u64,
    /// All that happened, one line each.
    pub log: Vec<String>,
    /// Digest of all lines: equal for equal seeds.
    pub digest: String,
    /// Promises that were broken.
    pub broken: Vec<String>,
    /// Number of injected faults, by kind.
    pub faults: BTreeMap<String, u64>,
    /// Number of other happenings, by kind.
    pub reached: BTreeMap<String, u64>,
    /// Pairs of faults that came close to each other.
    pub pairs: BTreeSet<String>,
}

impl Run {
    /// Builds the record of a run whose process ended too early.
    pub(crate) fn without_end(seed: u64) -> Self {
        let broken = vec![format!("seed {seed} takes for ever, or ends its process")];
        Self {
            seed,
            log: Vec::new(),
            digest: String::new(),
            broken,
            faults: BTreeMap::new(),
            reached: BTreeMap::new(),
            pairs: BTreeSet::new(),
        }
    }
}

/// Returns a smaller run of a seed that breaks a promise: fewer verifications and kinds of faults.
#[must_use]
pub fn shrunk(seed: u64, mut shape: Shape) -> (Shape, Run) {
    let mut found = run(seed, shape);
    // A run that does not end has nothing to read.
    if found.log.is_empty() {
        return (shape, found);
    }
    let mut smaller: Vec<Box<dyn Fn(Shape) -> Shape>> = Vec::new();
    for bit in 0..Shape::FAULTS.len() {
        smaller.push(Box::new(move |shape| Shape { without: shape.without | 1 << bit, ..shape }));
    }
    for verifications in (0..8).rev() {
        smaller.push(Box::new(move |shape| Shape { verifications: Some(verifications), ..shape }));
    }
    for smaller in smaller {
        let ran = run(seed, smaller(shape));
        if !ran.broken.is_empty() && !ran.log.is_empty() {
            (shape, found) = (smaller(shape), ran);
        }
    }
    (shape, found)
}

/// Makes the keys shared by all runs, which would take longer than a run.
pub(crate) fn prepare() {
    authority();
}

/// Runs a seed in this process.
pub(crate) fn run_here(seed: u64, shape: Shape) -> Run {
    let thread = std::thread::Builder::new().stack_size(16 << 20).spawn(move || {
        entropy::seed(seed);
        let runtime = || {
            let mut builder = tokio::runtime::Builder::new_current_thread();
            // Results of other threads arrive once nothing else can proceed, so that the order does not depend on their
            // speed.
            builder.enable_time().start_paused(true).max_blocking_threads(1).global_queue_interval(u32::MAX);
            builder.on_thread_unpark(entropy::tick).build().expect("a runtime")
        };
        let mut run = Run::without_end(seed);
        // Everything runs on this thread.
        let names = broken_by(|| run = actix_rt::System::with_tokio_rt(runtime).block_on(simulated(seed, shape)));
        run.broken.extend(names.into_iter().map(|name| format!("an invariant is broken: {name}")));
        run
    });
    thread.expect("a thread").join().expect("a run ends")
}

async fn simulated(seed: u64, shape: Shape) -> Run {
    let begun = entropy::begin();
    let (vault, clock) = (vault(&[7]), SimulatedClock::new(begun, 0));
    let world = World::new(seed, shape, MemoryEngine::new(clock.clone()), vault, clock);
    chaos::interfere(&world);

    let mut tenants = Vec::new();
    let mut key_ids = Vec::new();
    for number in 0..1 + usize::from(world.chance(500)) {
        let (tenant, key_id) = provide(&world, number).await;
        tenants.push(Rc::new(tenant));
        key_ids.push(key_id);
    }
    let sim = Sim::new(Arc::clone(&world), tenants);
    for number in 0..world.nodes() {
        actix_rt::spawn(chaos::start(Rc::clone(&sim), number));
    }
    actix_rt::spawn(chaos::breaks(Rc::clone(&sim)));
    for pair in scheduled(seed) {
        actix_rt::spawn(meet(Rc::clone(&sim), pair));
    }
    actix_rt::spawn(rotates(Rc::clone(&sim)));
    actix_rt::spawn(chaos::nodes_take_over(Rc::clone(&sim)));
    for (tenant, key_id) in sim.tenants.iter().zip(key_ids) {
        people(&sim, tenant, key_id, shape);
    }
    actix_rt::spawn(Rc::clone(&sim).tries_revoked_keys());
    if world.chance(200) {
        actix_rt::spawn(Rc::clone(&sim).moves_a_client());
    }

    sleep(ROUGH).await;
    world.calms_down();
    sleep(CALM).await;
    // A request about a transaction past its window ends its actor.
    let live =
        (0..world.nodes()).filter_map(|number| sim.node(number)).map(|node| node.tree.live_transactions()).collect();
    looks_at_everything(&sim).await;
    let evidence = Evidence::gather(&sim, live).await;
    let broken = promises::broken(&evidence);
    let log = world.log();
    let digest = digest(&SHA256, log.join("\n").as_bytes());
    let digest = digest.as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    let faults = lock(&world.faults).iter().map(|(kind, count)| ((*kind).to_owned(), *count)).collect();
    let reached = lock(&world.reached).iter().map(|(kind, count)| (kind.clone().into_owned(), *count)).collect();
    let pairs = std::mem::take(&mut *lock(&world.pairs));
    Run { seed, log, digest, broken, faults, reached, pairs }
}

/// Starts everybody who deals with a client.
fn people(sim: &Rc<Sim>, tenant: &Rc<Tenant>, key_id: String, shape: Shape) {
    let world = &sim.world;
    let both = || (Rc::clone(sim), Rc::clone(tenant));
    let (setting_up, of) = both();
    actix_rt::spawn(async move {
        setting_up.creates_event(&of).await;
        setting_up.registers_urls(&of).await;
    });
    let (sim_of, of) = both();
    actix_rt::spawn(sim_of.organises(of));
    let (sim_of, of) = both();
    actix_rt::spawn(sim_of.uses_the_portal(of));
    let (sim_of, of) = both();
    actix_rt::spawn(sim_of.grants(of));
    let (sim_of, of) = both();
    actix_rt::spawn(sim_of.reads(of));
    let (sim_of, of) = both();
    actix_rt::spawn(sim_of.checks_numbers(of));
    if world.chance(250) {
        let (sim_of, of) = both();
        actix_rt::spawn(sim_of.grants_with_confirmation(of));
    }
    if world.has("key-changes") {
        let (sim_of, of) = both();
        actix_rt::spawn(sim_of.replaces_keys(of, key_id));
    }
    if world.has("suspensions") {
        let (sim_of, of) = both();
        actix_rt::spawn(sim_of.suspends(of));
    }
    let (verifications, guests, flows) = (4 + world.below(10), 2 + world.below(8), world.below(4));
    for _ in 0..shape.verifications.unwrap_or(verifications) {
        let (sim_of, of) = both();
        actix_rt::spawn(sim_of.verification(of));
    }
    for _ in 0..shape.verifications.unwrap_or(guests) {
        let (sim_of, of) = both();
        actix_rt::spawn(sim_of.guest(of));
    }
    for _ in 0..flows {
        let (sim_of, of) = both();
        actix_rt::spawn(sim_of.flow(of));
    }
}

/// Creates a client with an app, a key and credits.
async fn provide(world: &World, number: usize) -> (Tenant, String) {
    let store = world.store();
    let client = Client::new(ClientId::generate(), "Simulated".into(), world.store_time());
    let (client_id, app_id, key_id) = (client.client_id.clone(), AppId::generate(), KeyId::generate());
    let (key, digest) = ApiKey::issue().expect("a key");
    let record = ApiKeyRecord {
        key_id: key_id.clone(),
        client_id: client_id.clone(),
        label: "first".into(),
        environments: Vec::new(),
        networks: Networks::default(),
        created_at: world.store_time(),
        expires_at: None,
        revoked_at: None,
    };
    let credits = 5 + world.below(30);
    let grant =
        CreditMove { kind: EntryKind::Grant, amount: i64::try_from(credits).unwrap_or(0), reference: "start".into() };
    store.create_client(client).await.expect("a client");
    store.create_app(records::app(app_id.clone(), client_id.clone())).await.expect("an app");
    store.create_key(record, digest).await.expect("a key");
    store.move_credits(client_id.clone(), grant).await.expect("a grant");
    let tenant = Tenant {
        number,
        client: client_id,
        app: app_id,
        key: RefCell::new(key.reveal().to_owned()),
        resident: Resident::find(["asha", "vikram"][number]).expect("a resident"),
        credits: Cell::new(credits),
        grants: RefCell::default(),
        event: RefCell::default(),
        has_urls: Cell::new(false),
        may_be_suspended: Cell::new(false),
    };
    (tenant, key_id.to_string())
}

/// Asks every node about everything, once nothing goes wrong any more.
async fn looks_at_everything(sim: &Rc<Sim>) {
    for tenant in &sim.tenants {
        let facts = sim.diary.facts.borrow().clone();
        let mut known: Vec<_> = facts.iter().map(|fact| fact.txn).collect();
        known.sort_unstable();
        known.dedup();
        for number in 0..sim.world.nodes() {
            let Some(node) = sim.node(number) else {
                sim.diary.record_fault(format!("node {number} does not run at the end"));
                continue;
            };
            for txn in &known {
                let request =
                    crate::sim::Request::get(format!("/api/v1/nationalid-ovse/result/{txn}")).with_key_of(tenant);
                let asked = sim.ask_node(Some(node.clone()), &request).await;
                match asked.outcome().map(|answer| answer.status) {
                    // It may be another client's.
                    Some(404) if sim.tenants.len() > 1 => {}
                    Some(_) => sim.saw(tenant, *txn, &asked),
                    None => sim.diary.record_fault(format!("{txn}: node {number} does not tell at the end")),
                }
            }
        }
        let event = tenant.event.borrow().clone();
        if let Some(event) = event {
            // With guests registered, that is too few places.
            if !sim.changes(tenant, &event, None, Some(1)).await {
                sim.diary.record_fault("a change of an event is not answered at the end".to_owned());
            }
            sim.looks_at(tenant, &event).await;
        }
        sim.inspects(tenant).await;
    }
    sim.tries_all_revoked_keys().await;
    sim.inspects_tree().await;
    sim.inspects_the_log().await;
}
