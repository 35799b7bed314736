//! Fault injection: killed and restarted nodes, clock jumps, actors that panic or hang, and a store that is away, full,
//! or replaced by a lagging replica.

use std::fmt::Write as _;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sakshi_store::redis::NodeId;
use sakshi_supervision::interference::{Interference, interfere_with};
use tokio::time::{sleep, timeout};

use crate::model::history::Event;
use crate::node::{self, Arbiter, Node};
use crate::replication::Shards;
use crate::shape::Deployment;
use crate::sim::Sim;
use crate::world::{Incarnation, World, lock};

/// Largest difference between a node's clock and the store's.
const DRIFT_MS: u64 = 100;
/// Largest clock jump: less than the tolerance for a credential's time.
const JUMP_MS: u64 = 50_000;
/// Largest step back of the store's clock.
const STORE_BEHIND_MS: u64 = 200;
/// Time within which a node learns of a new primary.
const FORMER_MS: u64 = 8_000;
/// Silence after which an arbiter counts as hung and its node reports that it is not alive.
const HUNG_MS: u64 = 5_000;

/// Makes actors panic and hang at times, from now on.
pub(crate) fn interfere(world: &Arc<World>) {
    let world = Arc::clone(world);
    interfere_with(Box::new(move |arbiter, actor| {
        if let Some(time) = world.hangs_for(arbiter + Arbiter::for_actor(actor)) {
            return Some(Interference::Hang(time));
        }
        // Most defects are in error handling. Actors other than workers exist once per node.
        let chance = match Arbiter::for_actor(actor) {
            _ if world.has_store_failed() => 80,
            0 => 12,
            _ => 50,
        };
        if world.goes_wrong("actor-panics", chance) {
            return Some(Interference::Panic);
        }
        // Some hang for longer than any timeout.
        let longest = if world.chance(200) { 60_000 } else { 12_000 };
        world.goes_wrong("hangs", 4).then(|| Interference::Hang(Duration::from_millis(world.below(longest))))
    }));
}

/// Shortest pause between two checks for dead nodes; the longest is twice this.
const TAKE_OVER_MS: u64 = 3_000;
/// Time limit of a takeover.
const TAKE_OVER_TIMEOUT: Duration = Duration::from_secs(20);

/// Starts a node, and retries until it runs.
pub(crate) async fn start(sim: Rc<Sim>, number: usize) {
    let world = &sim.world;
    loop {
        let incarnation = Incarnation::new(number, world.deployment);
        let differs = world.deployment != Deployment::Alone && world.goes_wrong("drift", 7_000);
        let difference = if differs { signed(world.below(2 * DRIFT_MS), DRIFT_MS) } else { 0 };
        let (starting, world_of_it) = (Arc::clone(&incarnation), Arc::clone(world));
        let inbox = Arc::clone(&sim.inbox);
        // A start that panics is a process that ends.
        let started = actix_rt::spawn(async move { node::start(&world_of_it, &inbox, starting, difference).await });
        if let Ok(Some((node, mut escalations))) = started.await {
            world.say(|line| _ = write!(line, "node {number} serves, {difference} ms from the store's time"));
            sim.set_node(number, Some(node));
            let sim = Rc::clone(&sim);
            // A failure that restarts do not fix ends the process.
            actix_rt::spawn(async move {
                let Some(escalation) = escalations.recv().await else { return };
                if !incarnation.is_dead() {
                    sim.world
                        .say(|line| _ = write!(line, "node {number} ends, because {} keeps failing", escalation.actor));
                    sim.world.reach("process ended by its root");
                    kill(&sim, &incarnation);
                }
            });
            return;
        }
        incarnation.kill();
        sleep(Duration::from_millis(500)).await;
    }
}

fn signed(value: u64, less: u64) -> i64 {
    i64::try_from(value).unwrap_or(0) - i64::try_from(less).unwrap_or(0)
}

/// Kills a node; its init system starts it again.
pub(crate) fn kill(sim: &Rc<Sim>, incarnation: &Incarnation) {
    incarnation.kill();
    let number = incarnation.number;
    sim.world.hangs_no_more(Arbiter::first(number));
    sim.set_node(number, None);
    let sim = Rc::clone(sim);
    actix_rt::spawn(async move {
        sleep(Duration::from_millis(sim.world.below(5_000))).await;
        start(sim, number).await;
    });
}

/// Lets living nodes take over from dead ones that have deliveries, as heartbeats would make them do.
pub(crate) async fn nodes_take_over(sim: Rc<Sim>) {
    let world = Arc::clone(&sim.world);
    if world.deployment == Deployment::Alone {
        return;
    }
    loop {
        sleep(Duration::from_millis(TAKE_OVER_MS + world.below(TAKE_OVER_MS))).await;
        let living: Vec<Node> = (0..world.nodes()).filter_map(|number| sim.node(number)).collect();
        let Some(node) = living.get(world.index(living.len())).cloned() else { continue };
        // A node killed meanwhile gets no answer, and a call may panic.
        let taking = actix_rt::spawn(takes_over(Arc::clone(&world), node, living));
        let _ = timeout(TAKE_OVER_TIMEOUT, taking).await;
    }
}

async fn takes_over(world: Arc<World>, node: Node, living: Vec<Node>) {
    let Ok(holders) = node.store.holders().await else { return };
    let mut dead: Vec<NodeId> = holders.into_iter().map(|(_, holder)| holder).collect();
    // A node without recent heartbeats counts as dead, even if it works.
    let is_living = |holder: &NodeId| living.iter().any(|node| node.incarnation.id == *holder);
    dead.retain(|holder| {
        !is_living(holder) || *holder != node.incarnation.id && world.goes_wrong("mistaken-deaths", 500)
    });
    dead.sort_unstable();
    dead.dedup();
    for holder in dead {
        if node.store.take_over(holder).await.is_ok() {
            world.reach("a node took over from a dead one");
        }
    }
}

/// The faults that come by themselves, with their chances out of ten thousand.
pub(crate) const SUDDEN: [(&str, u64); 7] = [
    ("outages", 2_500),
    ("full-disks", 1_500),
    ("failovers", 4_000),
    ("clock-jumps", 2_000),
    ("store-clock", 1_500),
    ("hung-arbiters", 2_000),
    ("kills", 10_000),
];

/// Injects one fault after another until the rough period ends.
pub(crate) async fn breaks(sim: Rc<Sim>) {
    while sim.world.is_rough() {
        sleep(Duration::from_millis(sim.world.below(25_000))).await;
        for (fault, chance) in SUDDEN {
            if injects(&sim, fault, chance).await {
                break;
            }
        }
    }
}

/// Injects a fault with this chance, and waits for its end if another of its kind must not begin before. Returns true
/// if it happened.
pub(crate) async fn injects(sim: &Rc<Sim>, fault: &'static str, chance: u64) -> bool {
    let world = &sim.world;
    if !world.deployment.allows(fault) {
        return false;
    }
    let _alone = match fault {
        "failovers" => Some(world.failing_over.lock().await),
        "clock-jumps" => Some(world.jumping.lock().await),
        _ => None,
    };
    let node = sim.node(world.index(world.nodes()));
    let needs_node = ["clock-jumps", "hung-arbiters", "kills"].contains(&fault);
    if needs_node && node.is_none() || !world.goes_wrong(fault, chance) {
        return false;
    }
    match (fault, node) {
        ("outages", _) => {
            let away = world.below(8_000);
            world.say(|line| _ = write!(line, "the store is away for {away} ms"));
            world.away_until.store(world.now_ms() + away, Ordering::Relaxed);
        }
        ("full-disks", _) => world.fills_up(),
        ("failovers", _) => fails_over(sim).await,
        ("store-clock", _) => {
            let behind = world.below(STORE_BEHIND_MS);
            world.say(|line| _ = write!(line, "the store's clock is {behind} ms behind"));
            world.store_falls_behind(Duration::from_millis(behind));
        }
        ("clock-jumps", Some(node)) => clock_jumps(sim, &node).await,
        ("hung-arbiters", Some(node)) => an_arbiter_hangs(sim, &node).await,
        (_, Some(node)) => {
            world.say(|line| _ = write!(line, "node {} is killed", node.incarnation.number));
            kill(sim, &node.incarnation);
        }
        _ => {}
    }
    true
}

/// The replica lags for a while, and then takes over or catches up.
async fn fails_over(sim: &Sim) {
    let world = &sim.world;
    let shard = Shards::picked(world.deployment, world.below(64));
    world.servers.lag(shard, world.begun.elapsed());
    lock(&world.outbox).push(Event::Lags(shard));
    world.say(|line| line.push_str("the replica lags"));
    sleep(Duration::from_millis(world.below(3_000))).await;
    if world.chance(300) && !world.is_called_for("former-primaries") {
        world.say(|line| line.push_str("the replica has caught up"));
        world.reach("replica caught up");
        lock(&world.outbox).push(Event::CaughtUp(shard));
        world.servers.catch_up();
        return;
    }
    let now = world.begun.elapsed();
    let former = (world.deployment == Deployment::Replicated && world.goes_wrong("former-primaries", 5_000))
        .then(|| sim.node(world.index(world.nodes())))
        .flatten();
    let reaches = former.map(|node| {
        let time = world.below(FORMER_MS);
        world.say(|line| _ = write!(line, "node {} reaches the former primary for {time} ms", node.incarnation.number));
        world.reach("a node reached the former primary");
        (node.incarnation.id, now + Duration::from_millis(time))
    });
    world.say(|line| line.push_str("the replica takes over"));
    world.reach("replica took over");
    lock(&world.outbox).push(Event::FailedOver(shard));
    world.servers.fail_over(now, reaches);
}

/// Hangs an arbiter of a node with everything on it. The init system may kill the process meanwhile.
async fn an_arbiter_hangs(sim: &Rc<Sim>, node: &Node) {
    let world = &sim.world;
    let (number, pick) = (node.incarnation.number, world.index(node.public.len() + 2));
    let others = [("effects", Arbiter::Effects as u32), ("dispatch", Arbiter::Dispatch as u32)];
    let (name, arbiter) = pick.checked_sub(node.public.len()).map_or(("worker", pick as u32), |pick| others[pick]);
    let time = world.below(8_000);
    world.say(|line| _ = write!(line, "the {name} arbiter {arbiter} of node {number} hangs for {time} ms"));
    world.hangs(Arbiter::first(number) + arbiter, time);
    sleep(Duration::from_millis(time.min(HUNG_MS))).await;
    if time > HUNG_MS && world.chance(500) && !node.incarnation.is_dead() {
        world.say(|line| _ = write!(line, "node {number} is killed, because it hangs"));
        kill(sim, &node.incarnation);
    }
}

/// Makes the clock of a machine jump, until the node reads the store's time again.
async fn clock_jumps(sim: &Sim, node: &Node) {
    let world = &sim.world;
    let jump = signed(world.below(2 * JUMP_MS), JUMP_MS);
    world.say(|line| _ = write!(line, "the clock of node {} jumps by {jump} ms", node.incarnation.number));
    let before = node.clock.differ(jump);
    sleep(Duration::from_millis(1_000)).await;
    node.clock.differ(before);
}
