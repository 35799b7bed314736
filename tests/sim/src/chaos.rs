//! Fault injection: killed and restarted nodes, clock jumps, actors that panic or hang, and a store that is
//! unavailable, full, or replaced by a lagging replica.

use std::fmt::Write as _;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sakshi_kit::model::history::Event;
use sakshi_store::redis::NodeId;
use sakshi_supervision::interference::{Interference, interfere_with};
use tokio::time::{sleep, timeout};

use crate::node::{self, Arbiter, Node};
use crate::replication::Shards;
use crate::shape::Deployment;
use crate::sim::Sim;
use crate::world::{Incarnation, World, lock};

/// Largest difference between a node's clock and the store's, in milliseconds.
const DRIFT_MS: u64 = 100;
/// Largest clock jump, in milliseconds: less than the tolerance for a credential's time.
const JUMP_MS: u64 = 50_000;
/// Largest step back of the store's clock, in milliseconds.
const STORE_BEHIND_MS: u64 = 200;
/// Longest time, in milliseconds, until a node learns of a new primary.
const FORMER_PRIMARY_MS_MAX: u64 = 8_000;
/// Milliseconds of silence after which an arbiter counts as hung and its node reports that it is not alive.
const HUNG_MS: u64 = 5_000;

/// Makes actors panic and hang at random, from now on.
pub(crate) fn install_actor_faults(world: &Arc<World>) {
    let world = Arc::clone(world);
    interfere_with(Box::new(move |arbiter, actor| {
        if let Some(time) = world.remaining_hang(arbiter + Arbiter::for_actor(actor)) {
            return Some(Interference::Hang(time));
        }
        // The chance is higher while errors are handled, where most defects are, and for actors that a node has only
        // once.
        let chance = match Arbiter::for_actor(actor) {
            _ if world.has_store_failed_recently() => 80,
            0 => 12,
            _ => 50,
        };
        if world.injects_in_10_000("actor-panics", chance) {
            return Some(Interference::Panic);
        }
        // Some actors hang for longer than any timeout.
        let hang_ms_max = if world.chance_in_1_000(200) { 60_000 } else { 12_000 };
        world
            .injects_in_10_000("hangs", 4)
            .then(|| Interference::Hang(Duration::from_millis(world.random_below(hang_ms_max))))
    }));
}

/// Shortest pause between two takeovers, in milliseconds; the longest is twice this.
const TAKEOVER_PAUSE_MS_MIN: u64 = 3_000;
/// Time limit of a takeover.
const TAKEOVER_TIMEOUT: Duration = Duration::from_secs(20);

/// Starts a node, and retries until it runs.
pub(crate) async fn start_node(sim: Rc<Sim>, number: usize) {
    let world = &sim.world;
    loop {
        let incarnation = Incarnation::new(number, world.deployment);
        let has_drift = world.deployment != Deployment::Alone && world.injects_in_10_000("drift", 7_000);
        let drift_ms = if has_drift { signed_difference(world.random_below(2 * DRIFT_MS), DRIFT_MS) } else { 0 };
        let (started_incarnation, node_world) = (Arc::clone(&incarnation), Arc::clone(world));
        let inbox = Arc::clone(&sim.inbox);
        // A start that panics is a process that ends.
        let start =
            actix_rt::spawn(async move { node::start(&node_world, &inbox, started_incarnation, drift_ms).await });
        if let Ok(Some((node, mut escalations))) = start.await {
            world.log_line(|line| _ = write!(line, "node {number} serves, {drift_ms} ms from the store's time"));
            sim.set_node(number, Some(node));
            let sim = Rc::clone(&sim);
            // A failure that restarts do not fix ends the process.
            actix_rt::spawn(async move {
                let Some(escalation) = escalations.recv().await else { return };
                if !incarnation.is_dead() {
                    sim.world.log_line(|line| {
                        _ = write!(line, "node {number} ends, because {} keeps failing", escalation.actor);
                    });
                    sim.world.count_occurrence("process ended by its root");
                    kill_node(&sim, &incarnation);
                }
            });
            return;
        }
        incarnation.kill();
        sleep(Duration::from_millis(500)).await;
    }
}

/// Returns `value - subtrahend`, which may be negative.
fn signed_difference(value: u64, subtrahend: u64) -> i64 {
    i64::try_from(value).unwrap_or(0) - i64::try_from(subtrahend).unwrap_or(0)
}

/// Kills a node. Its init system starts it again after a random pause.
pub(crate) fn kill_node(sim: &Rc<Sim>, incarnation: &Incarnation) {
    incarnation.kill();
    let number = incarnation.number;
    sim.world.clear_hang(Arbiter::first(number));
    sim.set_node(number, None);
    let sim = Rc::clone(sim);
    actix_rt::spawn(async move {
        sleep(Duration::from_millis(sim.world.random_below(5_000))).await;
        start_node(sim, number).await;
    });
}

/// Lets living nodes take over the webhooks of dead ones again and again, as heartbeats would make them do.
pub(crate) async fn run_takeovers(sim: Rc<Sim>) {
    let world = Arc::clone(&sim.world);
    if world.deployment == Deployment::Alone {
        return;
    }
    loop {
        sleep(Duration::from_millis(TAKEOVER_PAUSE_MS_MIN + world.random_below(TAKEOVER_PAUSE_MS_MIN))).await;
        let living: Vec<Node> = (0..world.node_count()).filter_map(|number| sim.node(number)).collect();
        let Some(node) = living.get(world.random_index(living.len())).cloned() else { continue };
        // A node killed meanwhile gets no answer, and a call may panic.
        let takeover = actix_rt::spawn(take_over_from_dead(Arc::clone(&world), node, living));
        let _ = timeout(TAKEOVER_TIMEOUT, takeover).await;
    }
}

/// Lets a node take over the webhooks of all nodes that it takes for dead.
async fn take_over_from_dead(world: Arc<World>, node: Node, living: Vec<Node>) {
    let Ok(holders) = node.store.holders().await else { return };
    let mut dead: Vec<NodeId> = holders.into_iter().map(|(_, holder)| holder).collect();
    // A living node may be mistaken for dead, as if its heartbeats were late.
    let is_living = |holder: &NodeId| living.iter().any(|node| node.incarnation.id == *holder);
    dead.retain(|holder| {
        !is_living(holder) || *holder != node.incarnation.id && world.injects_in_10_000("mistaken-deaths", 500)
    });
    dead.sort_unstable();
    dead.dedup();
    for holder in dead {
        if node.store.take_over(holder).await.is_ok() {
            world.count_occurrence("a node took over from a dead one");
        }
    }
}

/// The faults that [`run_faults`] injects, with their chances in ten thousand.
pub(crate) const INJECTED: [(&str, u64); 7] = [
    ("outages", 2_500),
    ("full-disks", 1_500),
    ("failovers", 4_000),
    ("clock-jumps", 2_000),
    ("store-clock", 1_500),
    ("hung-arbiters", 2_000),
    ("kills", 10_000),
];

/// Injects one fault after another, until faults are stopped.
pub(crate) async fn run_faults(sim: Rc<Sim>) {
    while sim.world.has_active_faults() {
        sleep(Duration::from_millis(sim.world.random_below(25_000))).await;
        for (fault, chance) in INJECTED {
            if inject(&sim, fault, chance).await {
                break;
            }
        }
    }
}

/// Injects a fault with this chance in ten thousand. Waits for its end if faults of its kind must not overlap. Returns
/// true if the fault happened.
pub(crate) async fn inject(sim: &Rc<Sim>, fault: &'static str, chance: u64) -> bool {
    let world = &sim.world;
    if !world.deployment.allows(fault) {
        return false;
    }
    let _guard = match fault {
        "failovers" => Some(world.failing_over.lock().await),
        "clock-jumps" => Some(world.jumping.lock().await),
        _ => None,
    };
    let node = sim.node(world.random_index(world.node_count()));
    let needs_node = ["clock-jumps", "hung-arbiters", "kills"].contains(&fault);
    if needs_node && node.is_none() || !world.injects_in_10_000(fault, chance) {
        return false;
    }
    match (fault, node) {
        ("outages", _) => {
            let outage_ms = world.random_below(8_000);
            world.log_line(|line| _ = write!(line, "the store is away for {outage_ms} ms"));
            world.unavailable_until.store(world.now_ms() + outage_ms, Ordering::Relaxed);
        }
        ("full-disks", _) => world.fill_store(),
        ("failovers", _) => fail_over_replica(sim).await,
        ("store-clock", _) => {
            let behind_ms = world.random_below(STORE_BEHIND_MS);
            world.log_line(|line| _ = write!(line, "the store's clock is {behind_ms} ms behind"));
            world.set_store_clock_back(Duration::from_millis(behind_ms));
        }
        ("clock-jumps", Some(node)) => jump_clock(sim, &node).await,
        ("hung-arbiters", Some(node)) => hang_random_arbiter(sim, &node).await,
        (_, Some(node)) => {
            world.log_line(|line| _ = write!(line, "node {} is killed", node.incarnation.number));
            kill_node(sim, &node.incarnation);
        }
        _ => {}
    }
    true
}

/// Makes the replica of a random shard lag for a while, and then take over or catch up.
async fn fail_over_replica(sim: &Sim) {
    let world = &sim.world;
    let shard = Shards::with_number(world.deployment, world.random_below(64));
    world.servers.start_lag(shard, world.started_at.elapsed());
    lock(&world.outbox_events).push(Event::Lags(shard));
    world.log_line(|line| line.push_str("the replica lags"));
    sleep(Duration::from_millis(world.random_below(3_000))).await;
    if world.chance_in_1_000(300) && !world.is_forced("former-primaries") {
        world.log_line(|line| line.push_str("the replica has caught up"));
        world.count_occurrence("replica caught up");
        lock(&world.outbox_events).push(Event::CaughtUp(shard));
        world.servers.catch_up();
        return;
    }
    let now = world.started_at.elapsed();
    let misled_node = (world.deployment == Deployment::Replicated
        && world.injects_in_10_000("former-primaries", 5_000))
    .then(|| sim.node(world.random_index(world.node_count())))
    .flatten();
    let misled_until = misled_node.map(|node| {
        let duration_ms = world.random_below(FORMER_PRIMARY_MS_MAX);
        world.log_line(|line| {
            _ = write!(line, "node {} reaches the former primary for {duration_ms} ms", node.incarnation.number);
        });
        world.count_occurrence("a node reached the former primary");
        (node.incarnation.id, now + Duration::from_millis(duration_ms))
    });
    world.log_line(|line| line.push_str("the replica takes over"));
    world.count_occurrence("replica took over");
    lock(&world.outbox_events).push(Event::FailedOver(shard));
    world.servers.fail_over(now, misled_until);
}

/// Hangs a random arbiter (a thread of actors) of a node. The init system may kill the process meanwhile.
async fn hang_random_arbiter(sim: &Rc<Sim>, node: &Node) {
    let world = &sim.world;
    let others = [("effects", Arbiter::Effects as u32), ("dispatch", Arbiter::Dispatch as u32)];
    let (number, workers) = (node.incarnation.number, node.public.len());
    let index = world.random_index(workers + others.len());
    let (name, arbiter) = index.checked_sub(workers).map_or(("worker", index as u32), |other| others[other]);
    let hang_ms = world.random_below(8_000);
    world.log_line(|line| _ = write!(line, "the {name} arbiter {arbiter} of node {number} hangs for {hang_ms} ms"));
    world.hang_arbiter(Arbiter::first(number) + arbiter, hang_ms);
    sleep(Duration::from_millis(hang_ms.min(HUNG_MS))).await;
    if hang_ms > HUNG_MS && world.chance_in_1_000(500) && !node.incarnation.is_dead() {
        world.log_line(|line| _ = write!(line, "node {number} is killed, because it hangs"));
        kill_node(sim, &node.incarnation);
    }
}

/// Makes the clock of a machine jump, until the node reads the store's time again.
async fn jump_clock(sim: &Sim, node: &Node) {
    let world = &sim.world;
    let jump_ms = signed_difference(world.random_below(2 * JUMP_MS), JUMP_MS);
    world.log_line(|line| _ = write!(line, "the clock of node {} jumps by {jump_ms} ms", node.incarnation.number));
    let difference_before = node.clock.set_difference(jump_ms);
    sleep(Duration::from_millis(1_000)).await;
    node.clock.set_difference(difference_before);
}
