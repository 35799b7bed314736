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

use crate::chaos::kill;
use crate::node::ADMIN_TOKEN;
use crate::shape::Deployment;
use crate::sim::{Request, Sim};

/// Returns a vault with the keys of these numbers; the first one seals.
pub(crate) fn vault(keys: &[u8]) -> Arc<Vault> {
    let keys: Vec<_> = keys.iter().map(|key| Zeroizing::new(vec![*key; 32])).collect();
    Arc::new(Vault::new(&keys).expect("a vault"))
}

/// Rotates the key once, in some runs.
pub(crate) async fn rotates(sim: Rc<Sim>) {
    let world = &sim.world;
    sleep(Duration::from_millis(world.below(50_000))).await;
    // A failover that may lose acknowledged writes may also restore records under the old key.
    if world.deployment == Deployment::LossyReplica || !world.goes_wrong("key-rotations", 2_000) {
        return;
    }
    for (keys, what) in
        [(&[7, 8][..], "also know the new encryption key"), (&[8, 7], "seal with the new encryption key")]
    {
        restarts_with(&sim, keys, what).await;
    }
    seals_anew(&sim).await;
    restarts_with(&sim, &[8], "know the new encryption key alone").await;
    world.reach("operator: the encryption key is changed");
}

/// Restarts every node with these keys, one after another.
async fn restarts_with(sim: &Rc<Sim>, keys: &[u8], what: &str) {
    let vault = vault(keys);
    sim.world.opens_with(&vault);
    sim.world.say(|line| _ = write!(line, "from now on nodes {what}"));
    for number in 0..sim.world.nodes() {
        while sim.node(number).is_none_or(|node| !Arc::ptr_eq(&node.vault, &vault)) {
            if let Some(node) = sim.node(number) {
                kill(sim, &node.incarnation);
            }
            sleep(Duration::from_millis(100)).await;
        }
    }
}

/// Makes passes until one finds no record under the old key.
async fn seals_anew(sim: &Sim) {
    let (mut from, mut is_clean) = (Value::Null, true);
    loop {
        let body = if from.is_null() { json!({}) } else { json!({"from": from}) };
        let request = Request::post("/admin/v1/reseal").internal(ADMIN_TOKEN).json(&body);
        let asked = sim.ask(&request).await;
        let Some(answer) = asked.outcome() else {
            // The outcome of a step may be unknown, so this pass proves nothing.
            is_clean = false;
            sleep(sim.world.pause(500)).await;
            continue;
        };
        let step = answer.json();
        if answer.status != 200 {
            return sim.diary.record_fault(format!("sealing anew is answered with {} {step}", answer.status));
        }
        is_clean &= step["resealed"] == 0 && step["left"].as_array().is_some_and(Vec::is_empty);
        from = step["next"].clone();
        if from.is_null() {
            if is_clean {
                return sim.world.say(|line| line.push_str("nothing is sealed with the old encryption key any more"));
            }
            is_clean = true;
        }
    }
}
