//! The operator's view of all nodes from one: states side by side, silence after a stop, and no writes without viewers.

use serde_json::Value;

use crate::nodes::Nodes;
use sakshi_kit::waiting::{TIMEOUT, eventually};

/// Returns the state of each node in an answer, this one first.
fn states(answer: &Value) -> Vec<&str> {
    let mut nodes: Vec<&Value> = answer["nodes"].as_array().unwrap().iter().collect();
    nodes.sort_by_key(|node| node["is_this"] != true);
    nodes.iter().map(|node| node["state"].as_str().unwrap()).collect()
}

/// Returns the number of snapshots in the store.
fn snapshots(nodes: &Nodes) -> usize {
    let keys = nodes.redis.answer(&["KEYS", "*snapshot:*"]);
    keys.members().len()
}

#[tokio::test]
async fn every_node_is_seen_from_one_and_a_node_that_dies_is_silent_and_then_gone() {
    let mut nodes = Nodes::start().await;
    assert_eq!(snapshots(&nodes), 0, "nobody looks");
    let operator = nodes.all[0].operator();
    let look = async || operator.get("/admin/v1/nodes").await.ok();
    let told = eventually("the others to tell", TIMEOUT, || async {
        let answer = look().await;
        let told = answer["nodes"].as_array().unwrap().iter().filter(|node| node["tree"]["name"] == "root").count();
        (told == 3).then_some(answer)
    });
    let told = told.await;
    assert_eq!(states(&told), ["live"; 3], "{told:#}");
    assert!(told["nodes"].as_array().unwrap().iter().all(|node| node["figures"]["interval_s"] == 2), "{told:#}");
    let ids = |answer: &Value| {
        answer["nodes"].as_array().unwrap().iter().map(|node| node["node"].clone()).collect::<Vec<_>>()
    };
    let seen_by_other = nodes.all[1].operator().get("/admin/v1/nodes").await.ok();
    assert_eq!(ids(&seen_by_other), ids(&told), "the same from everywhere");
    nodes.all[2].kill().await;
    eventually("the dead node to be silent", TIMEOUT, || async {
        (states(&look().await) == ["live", "live", "silent"] || states(&look().await) == ["live", "silent", "live"])
            .then_some(())
    })
    .await;
    eventually("the dead node to be gone", TIMEOUT, || async { (states(&look().await) == ["live"; 2]).then_some(()) })
        .await;
}
