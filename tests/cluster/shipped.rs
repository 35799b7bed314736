//! Redis with the shipped files of `deploy/redis`: every answer is the same after a restart.

use std::collections::BTreeMap;
use std::process::Command;

use futures_util::future::join_all;
use reqwest::Method;
use sakshi_kit::answer::Answer;
use sakshi_kit::backend::{Backend, Opened};
use sakshi_kit::event::TestEvent;
use sakshi_kit::flow::Flow;
use sakshi_kit::identity_app::IdentityApp;
use sakshi_kit::node::TestNode;
use sakshi_kit::outbox::outcomes;
use sakshi_kit::redis::{RedisServer, SHIPPED_PASSWORD};
use sakshi_kit::waiting::{TIMEOUT, eventually};
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};
use serde_json::{Value, json};

use crate::nodes::launch_nodes;

/// The way in which Redis stops before its restart.
#[derive(Clone, Copy, Debug)]
enum RedisStop {
    Terminated,
    Killed,
    TerminatedAfterRewrite,
}

/// The nodes, their Redis, their users, and the records that these have created.
struct World {
    nodes: Vec<TestNode>,
    // Stopped after the nodes, which are dropped first.
    redis: RedisServer,
    backend: Backend,
    event: TestEvent,
    identity_app: IdentityApp,
    receiver: WebhookReceiver,
    opened: Vec<Opened>,
    flows: Vec<String>,
}

impl World {
    async fn start() -> Self {
        let redis = RedisServer::shipped();
        let nodes = launch_nodes(&redis.url_as("sakshi"), &[]).await;
        let backend = nodes[0].backend_with_credits(500).await;
        let receiver = WebhookReceiver::start(Behaviour::Answer(200)).await.expect("a port");
        let event = TestEvent::open_reported(&nodes[0], &backend, 50, &receiver.url("/guests")).await;
        let identity_app = nodes[0].identity_app();
        Self { redis, nodes, backend, event, identity_app, receiver, opened: Vec::new(), flows: Vec::new() }
    }

    /// Creates a transaction of each kind, a guest, a flow, and changes by an operator.
    async fn create_records(&mut self) {
        let hook = self.receiver.url("/hook");
        let approved = self.backend.open_reported(&["name", "dob"], &hook).await;
        self.identity_app.approve(&approved, "asha").await;
        let refused = self.backend.open_reported(&["name"], &hook).await;
        self.identity_app.fail(&refused, "DECLINED", "declined").await;
        let guest = self.event.scan().await;
        self.identity_app.approve(&guest, "asha").await;
        let pending = self.backend.open(&["name"]).await;
        self.flows.push(self.backend.open_flow(Flow::DocLocker).await.id);
        let operator = self.nodes[0].operator();
        operator.issue_key(&self.backend.client, &json!({"label": "another"})).await;
        operator.grant(&self.backend.client, 1, &format!("invoice {}", self.opened.len())).await;
        outcomes(&operator, &[approved.clone(), refused.clone(), guest.clone()]).await;
        self.opened.extend([approved, refused, guest, pending]);
    }

    /// Returns the answers of a node to all reads, by path.
    async fn answers(&self, node: &TestNode) -> BTreeMap<String, Value> {
        let (backend, operator) = (self.backend.through(&node.addresses), node.operator());
        let mut answers = BTreeMap::new();
        let event = format!("/api/v1/nationalid-ovse/events/{}", self.event.id);
        let mut paths =
            vec![event.clone(), format!("{event}/registrations"), "/api/v1/nationalid-ovse/events".to_owned()];
        paths.extend(self.opened.iter().map(|opened| format!("/api/v1/nationalid-ovse/result/{}", opened.txn)));
        paths.extend(self.flows.iter().map(|flow| format!("/api/v1/doclocker/details/{flow}")));
        paths.extend(
            ["/api/v1/credits", "/api/v1/credits/statement?page_size=100", "/api/v1/user/webhook"].map(str::to_owned),
        );
        for path in paths {
            answers.insert(path.clone(), backend.get(&path).await.ok());
        }
        let mut operator_paths =
            vec!["/admin/v1/clients".to_owned(), format!("/admin/v1/clients/{}/keys", self.backend.client)];
        operator_paths.extend(["/admin/v1/audit-log?limit=100", "/admin/v1/credits/audit"].map(str::to_owned));
        operator_paths.extend(self.opened.iter().map(|opened| format!("/admin/v1/transactions/{}", opened.txn)));
        for path in operator_paths {
            answers.insert(path.clone(), operator.ask(Method::GET, &path, None).await.ok());
        }
        answers
    }

    /// Stops Redis in this way, and starts it again.
    async fn restart_redis(&self, stop: RedisStop) {
        match stop {
            RedisStop::Terminated => self.redis.stop(),
            RedisStop::Killed => self.redis.kill9(),
            RedisStop::TerminatedAfterRewrite => {
                run_redis_cli(&self.redis, &["BGREWRITEAOF"]);
                let is_rewritten = || async {
                    run_redis_cli(&self.redis, &["INFO", "persistence"])
                        .contains("aof_rewrite_in_progress:0")
                        .then_some(())
                };
                eventually("the rewrite ends", TIMEOUT, is_rewritten).await;
                // Writes after a rewrite go to a separate file.
                self.backend.open(&["name"]).await;
                self.redis.stop();
            }
        }
        self.redis.restart();
    }
}

/// Runs a command with `redis-cli` as the Redis user `operator`.
fn run_redis_cli(redis: &RedisServer, command: &[&str]) -> String {
    let port = redis.port().to_string();
    let login = ["-p", &port, "--user", "operator", "--pass", SHIPPED_PASSWORD, "--no-auth-warning"];
    let result = Command::new("redis-cli").args(login).args(command).output().expect("redis-cli is installed");
    let output = String::from_utf8_lossy(&result.stdout).into_owned();
    assert!(result.status.success() && !output.contains("NOPERM") && !output.contains("NOAUTH"), "{output}");
    output
}

#[tokio::test]
async fn every_read_returns_the_same_answer_after_redis_restarts() {
    let mut world = World::start().await;
    for stop in [RedisStop::Terminated, RedisStop::Killed, RedisStop::TerminatedAfterRewrite, RedisStop::Terminated] {
        world.create_records().await;
        let before = world.answers(&world.nodes[0]).await;
        let after_rewrite = matches!(stop, RedisStop::TerminatedAfterRewrite);
        world.restart_redis(stop).await;
        join_all(world.nodes.iter().map(|node| {
            let operator = node.operator();
            async move {
                let ready = || async { (operator.probe("/readyz").await.status == 200).then_some(()) };
                eventually("the node is ready", TIMEOUT, ready).await;
            }
        }))
        .await;
        for node in &world.nodes {
            let mut after = world.answers(node).await;
            if after_rewrite {
                // The transaction after the rewrite cost a credit.
                for path in ["/api/v1/credits", "/api/v1/credits/statement?page_size=100", "/admin/v1/credits/audit"] {
                    after.insert(path.to_owned(), before[path].clone());
                }
                assert_eq!(node.operator().balance(&world.backend.client).await + 1, balance_in(&before), "{stop:?}");
            }
            assert_eq!(after, before, "{stop:?}");
        }
    }
    let answer =
        Answer::receive(world.backend.request(Method::GET, "/api/v1/credits").header("X-API-KEY", "wrong")).await;
    assert_eq!(answer.status, 401);
}

/// Returns the client's balance in the answers to all reads.
fn balance_in(answers: &BTreeMap<String, Value>) -> u64 {
    answers["/api/v1/credits"]["balance"].as_u64().expect("a balance")
}
