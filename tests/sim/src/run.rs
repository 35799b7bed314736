//! One run of a seed, on a thread with a simulated clock.

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
use crate::pairs::{run_pair, scheduled_pairs};
use crate::process::run;
use crate::rotation::{OLD_KEY, run_key_rotation, vault_with_keys};
use crate::shape::Shape;
use crate::sim::{Sim, Tenant};
use crate::world::{World, lock};
use crate::{chaos, entropy, promises};

/// Duration of the faults.
const FAULTS_DURATION: Duration = Duration::from_secs(100);
/// Duration of the quiet period after the faults: the window of a transaction and some more.
const QUIET_DURATION: Duration = Duration::from_secs(WINDOW.as_secs() + 45);

/// The record of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    /// Its seed.
    pub seed: u64,
    /// The log: a line for everything that happened.
    pub log: Vec<String>,
    /// Digest of all lines: equal for equal seeds.
    pub digest: String,
    /// Sentences about broken promises.
    pub broken: Vec<String>,
    /// Number of injected faults, by kind.
    pub faults: BTreeMap<String, u64>,
    /// Number of other occurrences, such as answers with each status, by kind.
    pub occurrences: BTreeMap<String, u64>,
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
            occurrences: BTreeMap::new(),
            pairs: BTreeSet::new(),
        }
    }
}

/// Runs a seed that breaks a promise with fewer verifications and kinds of faults. Returns the smallest shape that
/// still breaks a promise, and its run.
#[must_use]
pub fn shrink(seed: u64, mut shape: Shape) -> (Shape, Run) {
    let mut smallest = run(seed, shape);
    // A run that does not end has nothing to read.
    if smallest.log.is_empty() {
        return (shape, smallest);
    }
    let mut reductions: Vec<Box<dyn Fn(Shape) -> Shape>> = Vec::new();
    for bit in 0..Shape::FAULTS.len() {
        reductions.push(Box::new(move |shape| Shape { without: shape.without | 1 << bit, ..shape }));
    }
    for verifications in (0..8).rev() {
        reductions.push(Box::new(move |shape| Shape { verifications: Some(verifications), ..shape }));
    }
    for reduce in reductions {
        let reduced = run(seed, reduce(shape));
        if !reduced.broken.is_empty() && !reduced.log.is_empty() {
            (shape, smallest) = (reduce(shape), reduced);
        }
    }
    (shape, smallest)
}

/// Makes the keys that all runs share, because making keys takes longer than a run.
pub(crate) fn make_shared_keys() {
    authority();
}

/// Runs a seed in this process.
pub(crate) fn run_here(seed: u64, shape: Shape) -> Run {
    let thread = std::thread::Builder::new().stack_size(16 << 20).spawn(move || {
        entropy::seed_thread(seed);
        let runtime = || {
            let mut builder = tokio::runtime::Builder::new_current_thread();
            // Results of other threads arrive once nothing else can proceed, so that the order does not depend on their
            // speed.
            builder.enable_time().start_paused(true).max_blocking_threads(1).global_queue_interval(u32::MAX);
            builder.on_thread_unpark(entropy::update_clock).build().expect("a runtime")
        };
        let mut run = Run::without_end(seed);
        // Everything runs on this thread.
        let names = broken_by(|| run = actix_rt::System::with_tokio_rt(runtime).block_on(simulate(seed, shape)));
        run.broken.extend(names.into_iter().map(|name| format!("an invariant is broken: {name}")));
        run
    });
    thread.expect("a thread").join().expect("a run ends")
}

/// Simulates a run: the faults, the quiet period, the final reads, and the check of the promises.
async fn simulate(seed: u64, shape: Shape) -> Run {
    let started_at = entropy::start_clock();
    let (vault, clock) = (vault_with_keys(&[OLD_KEY]), SimulatedClock::new(started_at, 0));
    let world = World::new(seed, shape, MemoryEngine::new(clock.clone()), vault, clock);
    chaos::install_actor_faults(&world);

    let mut tenants = Vec::new();
    let mut key_ids = Vec::new();
    for number in 0..1 + usize::from(world.chance_in_1_000(500)) {
        let (tenant, key_id) = create_tenant(&world, number).await;
        tenants.push(Rc::new(tenant));
        key_ids.push(key_id);
    }
    let sim = Sim::new(Arc::clone(&world), tenants);
    for number in 0..world.node_count() {
        actix_rt::spawn(chaos::start_node(Rc::clone(&sim), number));
    }
    actix_rt::spawn(chaos::run_faults(Rc::clone(&sim)));
    for pair in scheduled_pairs(seed) {
        actix_rt::spawn(run_pair(Rc::clone(&sim), pair));
    }
    actix_rt::spawn(run_key_rotation(Rc::clone(&sim)));
    actix_rt::spawn(chaos::run_takeovers(Rc::clone(&sim)));
    for (tenant, key_id) in sim.tenants.iter().zip(key_ids) {
        spawn_people(&sim, tenant, key_id, shape);
    }
    actix_rt::spawn(Rc::clone(&sim).try_revoked_keys());
    if world.chance_in_1_000(200) {
        actix_rt::spawn(Rc::clone(&sim).run_client_move());
    }

    sleep(FAULTS_DURATION).await;
    world.stop_faults();
    sleep(QUIET_DURATION).await;
    // Counted first, because a request about a transaction past its window ends its actor.
    let live_transactions = (0..world.node_count())
        .filter_map(|number| sim.node(number))
        .map(|node| node.tree.live_transactions())
        .collect();
    read_everything(&sim).await;
    let evidence = Evidence::gather(&sim, live_transactions).await;
    let broken = promises::broken(&evidence);
    let log = world.log();
    let digest = digest(&SHA256, log.join("\n").as_bytes());
    let digest = digest.as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    let faults = lock(&world.faults).iter().map(|(kind, count)| ((*kind).to_owned(), *count)).collect();
    let occurrences =
        lock(&world.occurrences).iter().map(|(kind, count)| (kind.clone().into_owned(), *count)).collect();
    let pairs = std::mem::take(&mut *lock(&world.met_pairs));
    Run { seed, log, digest, broken, faults, occurrences, pairs }
}

/// Starts the tasks of all people who deal with a client.
fn spawn_people(sim: &Rc<Sim>, tenant: &Rc<Tenant>, key_id: String, shape: Shape) {
    let world = &sim.world;
    let handles = || (Rc::clone(sim), Rc::clone(tenant));
    let (sim, tenant) = handles();
    actix_rt::spawn(async move {
        sim.create_event(&tenant).await;
        sim.register_flow_urls(&tenant).await;
    });
    let (sim, tenant) = handles();
    actix_rt::spawn(sim.run_organiser(tenant));
    let (sim, tenant) = handles();
    actix_rt::spawn(sim.run_portal_session(tenant));
    let (sim, tenant) = handles();
    actix_rt::spawn(sim.run_grants(tenant));
    let (sim, tenant) = handles();
    actix_rt::spawn(sim.run_reader(tenant));
    let (sim, tenant) = handles();
    actix_rt::spawn(sim.run_checks(tenant));
    if world.chance_in_1_000(250) {
        let (sim, tenant) = handles();
        actix_rt::spawn(sim.run_confirmed_grants(tenant));
    }
    if world.includes("key-changes") {
        let (sim, tenant) = handles();
        actix_rt::spawn(sim.run_key_replacement(tenant, key_id));
    }
    if world.includes("suspensions") {
        let (sim, tenant) = handles();
        actix_rt::spawn(sim.run_suspension(tenant));
    }
    let (verifications, guests, flows) = (4 + world.random_below(10), 2 + world.random_below(8), world.random_below(4));
    for _ in 0..shape.verifications.unwrap_or(verifications) {
        let (sim, tenant) = handles();
        actix_rt::spawn(sim.run_verification(tenant));
    }
    for _ in 0..shape.verifications.unwrap_or(guests) {
        let (sim, tenant) = handles();
        actix_rt::spawn(sim.run_guest(tenant));
    }
    for _ in 0..flows {
        let (sim, tenant) = handles();
        actix_rt::spawn(sim.run_flow(tenant));
    }
}

/// Creates a client with an app, a key and credits. Returns the client and the key's id.
async fn create_tenant(world: &World, number: usize) -> (Tenant, String) {
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
    let credits = 5 + world.random_below(30);
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
        has_flow_urls: Cell::new(false),
        may_be_suspended: Cell::new(false),
    };
    (tenant, key_id.to_string())
}

/// Reads all records from every node after the last fault.
async fn read_everything(sim: &Rc<Sim>) {
    for tenant in &sim.tenants {
        let facts = sim.journal.facts.borrow().clone();
        let mut txns: Vec<_> = facts.iter().map(|fact| fact.txn).collect();
        txns.sort_unstable();
        txns.dedup();
        for number in 0..sim.world.node_count() {
            let Some(node) = sim.node(number) else {
                sim.journal.record_violation(format!("node {number} does not run at the end"));
                continue;
            };
            for txn in &txns {
                let request =
                    crate::sim::Request::get(format!("/api/v1/nationalid-ovse/result/{txn}")).with_key_of(tenant);
                let exchange = sim.send_to_node(Some(node.clone()), &request).await;
                match exchange.outcome().map(|answer| answer.status) {
                    // The transaction may be another client's.
                    Some(404) if sim.tenants.len() > 1 => {}
                    Some(_) => sim.record_poll(tenant, &tenant.key.borrow(), *txn, &exchange),
                    None => sim.journal.record_violation(format!("{txn}: node {number} does not tell at the end")),
                }
            }
        }
        let event = tenant.event.borrow().clone();
        if let Some(event) = event {
            // Fewer places than guests are refused, if there are guests.
            let (unchanged_activity, max_guests) = (None, Some(1));
            if !sim.change_event(tenant, &event, unchanged_activity, max_guests).await {
                sim.journal.record_violation("a change of an event is not answered at the end".to_owned());
            }
            sim.read_event(tenant, &event).await;
        }
        sim.inspect_client(tenant).await;
    }
    sim.try_all_revoked_keys().await;
    sim.inspect_tree().await;
    sim.inspect_audit_log().await;
}
