//! The operator's view of all nodes at one node: the state of each node, and no snapshots while nobody watches.

use serde_json::Value;

use crate::nodes::Nodes;
use sakshi_kit::waiting::{TIMEOUT, eventually};

/// Returns the state of each node in an answer, beginning with the node that answered.
fn states(answer: &Value) -> Vec<&str> {
    let mut nodes: Vec<&Value> = answer["nodes"].as_array().unwrap().iter().collect();
    nodes.sort_by_key(|node| node["is_this"] != true);
    nodes.iter().map(|node| node["state"].as_str().unwrap()).collect()
}

/// Returns the number of snapshots in the store.
fn count_snapshots(nodes: &Nodes) -> usize {
    let keys = nodes.redis.answer(&["KEYS", "*snapshot:*"]);
    keys.members().len()
}

#[tokio::test]
async fn one_node_shows_all_nodes_and_a_dead_node_becomes_silent_and_disappears() {
    let mut nodes = Nodes::start().await;
    assert_eq!(count_snapshots(&nodes), 0, "nobody watches yet");
    let operator = nodes.all[0].operator();
    let read_nodes = async || operator.get("/admin/v1/nodes").await.ok();
    let complete = eventually("all nodes report their tree", TIMEOUT, || async {
        let answer = read_nodes().await;
        let reported = answer["nodes"].as_array().unwrap().iter().filter(|node| node["tree"]["name"] == "root").count();
        (reported == 3).then_some(answer)
    });
    let complete = complete.await;
    assert_eq!(states(&complete), ["live"; 3], "{complete:#}");
    assert!(
        complete["nodes"].as_array().unwrap().iter().all(|node| node["figures"]["interval_s"] == 2),
        "{complete:#}"
    );
    let ids = |answer: &Value| {
        answer["nodes"].as_array().unwrap().iter().map(|node| node["node"].clone()).collect::<Vec<_>>()
    };
    let from_other = nodes.all[1].operator().get("/admin/v1/nodes").await.ok();
    assert_eq!(ids(&from_other), ids(&complete), "every node lists the same nodes");
    nodes.all[2].kill().await;
    eventually("the dead node is silent", TIMEOUT, || async {
        (states(&read_nodes().await) == ["live", "live", "silent"]
            || states(&read_nodes().await) == ["live", "silent", "live"])
        .then_some(())
    })
    .await;
    eventually("the dead node is gone", TIMEOUT, || async {
        (states(&read_nodes().await) == ["live"; 2]).then_some(())
    })
    .await;
}
