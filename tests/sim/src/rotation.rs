//! Rotation of the encryption key, as in the operator's guide. All nodes learn the new key, then all seal with it.
//! Records under the old key are sealed anew until a whole pass finds none. Then all nodes drop the old key.

use std::fmt::Write as _;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use sakshi_store::Vault;
use serde_json::{Value, json};
use tokio::time::sleep;
use zeroize::Zeroizing;

use crate::chaos::kill_node;
use crate::node::ADMIN_TOKEN;
use crate::shape::Deployment;
use crate::sim::{Request, Sim};

/// The byte that fills the encryption key before a rotation.
pub(crate) const OLD_KEY: u8 = 7;
/// The byte that fills the encryption key after a rotation.
const NEW_KEY: u8 = 8;

/// Returns a vault whose keys consist of these bytes. The first key seals; all of them open.
pub(crate) fn vault_with_keys(key_bytes: &[u8]) -> Arc<Vault> {
    let keys: Vec<_> = key_bytes.iter().map(|byte| Zeroizing::new(vec![*byte; 32])).collect();
    Arc::new(Vault::new(&keys).expect("a vault"))
}

/// Rotates the key once, in some runs.
pub(crate) async fn run_key_rotation(sim: Rc<Sim>) {
    let world = &sim.world;
    sleep(Duration::from_millis(world.random_below(50_000))).await;
    // A failover that may lose acknowledged writes may also restore records under the old key.
    if world.deployment == Deployment::LossyReplica || !world.injects_in_10_000("key-rotations", 2_000) {
        return;
    }
    restart_nodes_with(&sim, &[OLD_KEY, NEW_KEY], "also know the new encryption key").await;
    restart_nodes_with(&sim, &[NEW_KEY, OLD_KEY], "seal with the new encryption key").await;
    reseal_all(&sim).await;
    restart_nodes_with(&sim, &[NEW_KEY], "know the new encryption key alone").await;
    world.count_occurrence("operator: the encryption key is changed");
}

/// Restarts every node with these keys, one after another. The log says what nodes do from now on.
async fn restart_nodes_with(sim: &Rc<Sim>, keys: &[u8], log_text: &str) {
    let vault = vault_with_keys(keys);
    sim.world.set_vault(&vault);
    sim.world.log_line(|line| _ = write!(line, "from now on nodes {log_text}"));
    for number in 0..sim.world.node_count() {
        while sim.node(number).is_none_or(|node| !Arc::ptr_eq(&node.vault, &vault)) {
            if let Some(node) = sim.node(number) {
                kill_node(sim, &node.incarnation);
            }
            sleep(Duration::from_millis(100)).await;
        }
    }
}

/// Reseals records with the new key, in passes over the store until one finds no record under the old key.
async fn reseal_all(sim: &Sim) {
    let (mut position, mut is_pass_clean) = (Value::Null, true);
    loop {
        let body = if position.is_null() { json!({}) } else { json!({"from": position}) };
        let request = Request::post("/admin/v1/reseal").internal(ADMIN_TOKEN).json(&body);
        let exchange = sim.send(&request).await;
        let Some(answer) = exchange.outcome() else {
            // The outcome of a step may be unknown, so this pass proves nothing.
            is_pass_clean = false;
            sleep(sim.world.random_pause(500)).await;
            continue;
        };
        let step = answer.json();
        if answer.status != 200 {
            return sim.journal.record_violation(format!("sealing anew is answered with {} {step}", answer.status));
        }
        is_pass_clean &= step["resealed"] == 0 && step["left"].as_array().is_some_and(Vec::is_empty);
        position = step["next"].clone();
        if position.is_null() {
            if is_pass_clean {
                return sim
                    .world
                    .log_line(|line| line.push_str("nothing is sealed with the old encryption key any more"));
            }
            is_pass_clean = true;
        }
    }
}
