//! What breaks: nodes are killed and started again, and the store is away or full at times.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sakshi_actors::{ByteBounds, DispatchBounds, Tree, TreeBounds, TreeConfig};
use sakshi_store::Retention;
use tokio::time::sleep;

use crate::network::{Inbox, Network};
use crate::store::NodeStore;
use crate::world::{Incarnation, Node, SimulatedClock, World};

const DAY: Duration = Duration::from_secs(24 * 3_600);

fn bounds(in_flight_per_origin: usize) -> TreeBounds {
    TreeBounds {
        shards: 1,
        live_transactions: 100,
        in_flight: 50,
        mailbox_depth: 50,
        ask_timeout: Duration::from_secs(5),
        webhooks: DispatchBounds { in_flight: 8, in_flight_per_origin, outcome_bytes: ByteBounds::OUTCOMES, flow_bytes: ByteBounds::FLOWS },
        live_events: 100,
        live_flows: 100,
        flow_result_ttl: DAY,
        retention: Retention { expired: DAY, events: DAY },
    }
}

/// Starts a node, for as long as it takes.
pub(crate) async fn start(world: Arc<World>, inbox: Inbox, number: usize) {
    loop {
        let incarnation = Incarnation::new(number);
        let drift = if world.goes_wrong("drift", 700) { i64::try_from(world.below(200)).unwrap_or(0) - 100 } else { 0 };
        let store = NodeStore { world: Arc::clone(&world), incarnation: Arc::clone(&incarnation) };
        let network = Network { world: Arc::clone(&world), incarnation: Arc::clone(&incarnation), inbox: Arc::clone(&inbox) };
        let config = TreeConfig {
            store: Arc::new(store),
            vault: Arc::clone(&world.vault),
            clock: SimulatedClock::new(world.begun, drift),
            client: Arc::new(network),
            on_one_arbiter: true,
        };
        let bounds = bounds(1 + usize::from(world.seed.is_multiple_of(2)));
        // A start that panics is a node that ends.
        let started = actix_rt::spawn(async move {
            let (tree, mut escalations) = Tree::start(config, bounds).await.ok()?;
            let handles = tree.start_shard()?;
            Some((tree, handles, std::iter::from_fn(move || escalations.try_recv().ok())))
        });
        if let Ok(Some((tree, handles, _escalations))) = started.await {
            world.say(|line| _ = write!(line, "node {number} serves, {drift} ms from the store's time"));
            world.set_node(number, Some(Node { incarnation, handles, tree }));
            return;
        }
        incarnation.kill();
        sleep(Duration::from_millis(500)).await;
    }
}

/// Kills nodes and takes the store away, until the rough time is over.
pub(crate) async fn breaks(world: Arc<World>, inbox: Inbox) {
    while world.is_rough.load(Ordering::Relaxed) {
        sleep(Duration::from_millis(world.below(60_000))).await;
        if world.goes_wrong("outages", 300) {
            let away = world.below(8_000);
            world.say(|line| _ = write!(line, "the store is away for {away} ms"));
            world.away_until.store(world.now_ms() + away, Ordering::Relaxed);
            continue;
        }
        if world.goes_wrong("full-disks", 200) {
            let full = world.below(8_000);
            world.say(|line| _ = write!(line, "the store takes nothing in for {full} ms"));
            world.full_until.store(world.now_ms() + full, Ordering::Relaxed);
            continue;
        }
        let number = usize::try_from(world.below(world.nodes() as u64)).unwrap_or(0);
        let Some(node) = world.node(number).filter(|_| world.goes_wrong("kills", 1_000)) else { continue };
        world.say(|line| _ = write!(line, "node {number} is killed"));
        node.incarnation.kill();
        world.set_node(number, None);
        let (restarted, inbox) = (Arc::clone(&world), Arc::clone(&inbox));
        actix_rt::spawn(async move {
            sleep(Duration::from_millis(restarted.below(5_000))).await;
            start(restarted, inbox, number).await;
        });
    }
}
