//! The internal listener: keys, the tree, the audit, probes and metrics.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};

use sakshi_kit::answer::Answer;
use sakshi_kit::connector::CONNECTOR_TOKEN;
use sakshi_kit::node::TestNode;
use sakshi_kit::operator::ADMIN_TOKEN;
use sakshi_kit::waiting::{TIMEOUT, assert_within, eventually};

#[tokio::test]
async fn a_rotated_key_and_its_successor_both_work_during_the_overlap() {
    let node = TestNode::start().await;
    let (backend, operator) = (node.backend_with_credits(10).await, node.operator());
    let rotate = |overlap: u64| {
        let (operator, path) = (operator.clone(), format!("/admin/v1/keys/{}/rotate", backend.key_id));
        async move { operator.post(&path, &json!({"overlap_s": overlap})).await }
    };
    let rotated = rotate(3_600).await.ok();
    let successor = rotated["api_key"].as_str().unwrap();
    node.secrets.watch_for(successor);
    let with_successor = backend.with_credentials(successor, &backend.app);
    backend.open(&["name"]).await;
    with_successor.open(&["name"]).await;
    operator.delete(&format!("/admin/v1/keys/{}", backend.key_id)).await.ok();
    let revoked_at = Instant::now();
    loop {
        let elapsed = revoked_at.elapsed();
        if backend.result("x").await.status == 401 {
            break;
        }
        assert_within(elapsed, Duration::from_secs(1), "the refusal of a revoked key");
    }
    with_successor.open(&["name"]).await;
    assert_eq!(rotate(60).await.refusal(409), "key_not_active");
}

#[tokio::test]
async fn a_revoked_key_is_refused_on_every_worker_within_a_second() {
    let node = TestNode::start_with(&[("SERVER__WORKERS", "4")]).await;
    let (backend, operator) = (node.backend_with_credits(10).await, node.operator());
    // A connection belongs to one worker, so each request takes a new one.
    let new_connection =
        || reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).timeout(TIMEOUT).build().unwrap();
    let poll = || {
        let request = new_connection().get(node.addresses.public("/api/v1/nationalid-ovse/result/x"));
        Answer::receive(request.header("X-API-KEY", &backend.key).header("X-API-APP-ID", &backend.app))
    };
    for _ in 0..24 {
        assert_eq!(poll().await.status, 404, "every worker knows the key now");
    }
    operator.delete(&format!("/admin/v1/keys/{}", backend.key_id)).await.ok();
    let revoked_at = Instant::now();
    let mut last_admitted = None;
    while revoked_at.elapsed() < Duration::from_millis(1_500) {
        let sent_at = Instant::now();
        if poll().await.status != 401 {
            last_admitted = Some(sent_at.duration_since(revoked_at));
        }
    }
    assert_within(
        last_admitted.unwrap_or_default(),
        Duration::from_secs(1),
        "the refusal of a revoked key on every worker",
    );
    for _ in 0..24 {
        assert_eq!(poll().await.status, 401, "every worker refuses the key now");
    }
}

#[tokio::test]
async fn keys_are_listed_without_their_secrets() {
    let node = TestNode::start().await;
    let (backend, operator) = (node.backend_with_credits(0).await, node.operator());
    let path = format!("/admin/v1/clients/{}/keys", backend.client);
    let listed = operator.get(&path).await;
    assert!(listed.ok()["keys"][0]["key_id"] == json!(backend.key_id) && !listed.text.contains(&backend.key));
    assert_eq!(operator.post(&path, &json!({"environments": ["moon"]})).await.refused_fields(), ["environments[0]"]);
    for (method, path) in [
        (Method::DELETE, "/admin/v1/keys/key_unknown".to_owned()),
        (Method::GET, "/admin/v1/clients/client_unknown/credits".to_owned()),
        (Method::GET, format!("/admin/v1/transactions/{}/delivery", uuid::Uuid::new_v4())),
    ] {
        assert_eq!(operator.ask(method, &path, None).await.refusal(404), "not_found", "{path}");
    }
}

/// Adds the nodes of a tree that satisfy `predicate` to `matches`.
fn collect_nodes<'a>(node: &'a Value, predicate: &dyn Fn(&Value) -> bool, matches: &mut Vec<&'a Value>) {
    if predicate(node) {
        matches.push(node);
    }
    for child in node["children"].as_array().map(Vec::as_slice).unwrap_or_default() {
        collect_nodes(child, predicate, matches);
    }
}

#[tokio::test]
async fn the_tree_shows_every_supervised_actor_and_counts_live_transactions() {
    let node = TestNode::start().await;
    let (backend, identity_app, operator) = (node.backend_with_credits(6).await, node.identity_app(), node.operator());
    let mut opened = Vec::new();
    for _ in 0..6 {
        opened.push(backend.open(&["name"]).await);
    }
    let tree = operator.get("/admin/v1/tree").await.ok();
    let mut nodes = Vec::new();
    collect_nodes(&tree, &|_| true, &mut nodes);
    for node in &nodes {
        for member in
            ["name", "kind", "state", "live", "restarts", "last_exit", "last_panic", "age_s", "mailbox", "children"]
        {
            assert!(node.get(member).is_some(), "{member} is missing in {node}");
        }
        assert_eq!(node["restarts"], 0, "{node}");
    }
    let count_named = |word: &str| nodes.iter().filter(|node| node["name"].as_str().unwrap().contains(word)).count();
    assert!(
        count_named("ledger") >= 1 && count_named("dispatcher") >= 1 && count_named("transactions-") == 2,
        "{tree:#}"
    );
    assert_eq!(live_transactions(&tree), 6, "{tree:#}");
    for opened in &opened {
        identity_app.approve(opened, "asha").await;
    }
    eventually("the end of completed actors", TIMEOUT, || async {
        (live_transactions(&operator.get("/admin/v1/tree").await.ok()) == 0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_single_node_is_shown_with_its_tree_its_receivers_and_its_figures() {
    let node = TestNode::start().await;
    let (backend, operator) = (node.backend_with_credits(3).await, node.operator());
    for _ in 0..3 {
        backend.open(&["name"]).await;
    }
    let init_count = |nodes: &Value| {
        nodes["nodes"][0]["figures"]["inits"].as_array().unwrap().iter().filter_map(Value::as_u64).sum::<u64>()
    };
    let nodes = eventually("a sample", TIMEOUT, || async {
        let nodes = operator.get("/admin/v1/nodes").await.ok();
        (init_count(&nodes) == 3).then_some(nodes)
    });
    let nodes = nodes.await;
    let [this] = nodes["nodes"].as_array().unwrap().as_slice() else { panic!("one node: {nodes:#}") };
    assert_eq!(
        (&this["is_this"], &this["state"], &this["live_transactions"]),
        (&json!(true), &json!("live"), &json!(3)),
        "{this:#}"
    );
    assert_eq!(
        (&this["tree"]["name"], &this["receivers"], &this["receivers_total"]),
        (&json!("root"), &json!([]), &json!(0))
    );
    assert!(this["version"].as_str().unwrap().starts_with(env!("CARGO_PKG_VERSION")), "{this:#}");
    let lengths = ["inits", "callbacks", "webhooks", "webhooks_failed", "p99_ms", "cpu_percent"]
        .map(|series| this["figures"][series].as_array().unwrap().len());
    assert!(lengths.iter().all(|length| *length == lengths[0]) && this["figures"]["interval_s"] == 2, "{this:#}");
}

/// Returns the number of live transactions over all registry shards.
fn live_transactions(tree: &Value) -> u64 {
    let mut shards = Vec::new();
    collect_nodes(tree, &|node| node["kind"].as_str() == Some("transaction_registry"), &mut shards);
    assert!(!shards.is_empty(), "no registry in {tree:#}");
    shards.iter().map(|shard| shard["live"].as_u64().unwrap()).sum()
}

#[tokio::test]
async fn the_audit_covers_every_client() {
    let node = TestNode::start().await;
    let (first, second) = (node.backend_with_credits(5).await, node.backend_with_credits(7).await);
    first.open(&["name"]).await;
    let audit = node.operator().get("/admin/v1/credits/audit").await.ok();
    assert_eq!(audit["clean"], true);
    let rows = audit["clients"].as_array().unwrap();
    for (client, balance) in [(&first.client, 4), (&second.client, 7)] {
        let row = rows.iter().find(|row| row["client_id"] == **client).expect("a row for each client");
        assert_eq!((&row["balance"], &row["sum"], &row["clean"]), (&json!(balance), &json!(balance), &json!(true)));
    }
}

#[tokio::test]
async fn probes_and_metrics_need_no_token_and_are_not_public() {
    let node = TestNode::start().await;
    let operator = node.operator();
    for path in ["/livez", "/readyz"] {
        assert_eq!(operator.probe(path).await.ok()["status"], "ok");
        assert_eq!(node.get(path).await.status, 404);
    }
    assert!(operator.probe("/metrics").await.header("content-type").unwrap().starts_with("text/plain"));
    assert_eq!(node.get("/metrics").await.status, 404);
}

#[tokio::test]
async fn the_admin_token_is_accepted_only_as_a_bearer_token() {
    let node = TestNode::start().await;
    let request_with = |authorization: String| {
        let request =
            node.http.get(node.addresses.internal("/admin/v1/clients")).header("authorization", authorization);
        Answer::receive(request)
    };
    for accepted in [format!("Bearer {ADMIN_TOKEN}"), format!("bearer {ADMIN_TOKEN}")] {
        request_with(accepted).await.ok();
    }
    let (all_but_one, _) = ADMIN_TOKEN.split_at(ADMIN_TOKEN.len() - 1);
    for refused in [
        format!("Basic {ADMIN_TOKEN}"),
        format!("Bearer{ADMIN_TOKEN}"),
        ADMIN_TOKEN.to_owned(),
        "Bearer ".to_owned(),
        format!("Bearer {all_but_one}"),
        format!("Bearer {ADMIN_TOKEN}x"),
        format!("Bearer {CONNECTOR_TOKEN}"),
    ] {
        assert_eq!(request_with(refused.clone()).await.status, 401, "{}", refused.len());
    }
}

#[tokio::test]
async fn metrics_hold_no_ids_no_urls_and_nothing_personal() {
    let node = TestNode::start().await;
    let (backend, identity_app, operator) = (node.backend_with_credits(9).await, node.identity_app(), node.operator());
    let receiver = sakshi_sandbox::receiver::WebhookReceiver::start(sakshi_sandbox::receiver::Behaviour::Answer(200))
        .await
        .unwrap();
    let opened = backend.open_reported(&["name", "dob"], &receiver.url("/hook")).await;
    identity_app.approve(&opened, "asha").await;
    operator.delivery(&opened.txn).await;
    let failed = backend.open(&["name"]).await;
    identity_app.fail(&failed, "code-of-a-stranger", "User Reject").await;
    let unknown = format!("/nowhere/{}", opened.txn);
    node.get(&unknown).await;
    Answer::receive(node.http.request(Method::from_bytes(b"STRANGE").unwrap(), node.addresses.public("/api/ping")))
        .await;
    let metrics = operator.probe("/metrics").await.text;
    for name in ["sakshi_http_requests_total", "sakshi_transactions_opened_total", "process_resident_memory_bytes"] {
        assert!(metrics.contains(name), "{name} is missing");
    }
    let address = receiver.address().to_string();
    let ids = [&opened.txn, &failed.txn, &backend.client, &backend.app, &backend.key_id, &backend.key, &address];
    for text in ids.into_iter().map(String::as_str).chain([
        "Asha",
        "14-02-1990",
        "1990-02-14",
        "STRANGE",
        "code-of-a-stranger",
        "nowhere",
    ]) {
        assert!(!metrics.contains(text), "{text} is in the metrics");
    }
}

#[tokio::test]
async fn prometheus_accepts_the_metrics() {
    let node = TestNode::start().await;
    let (backend, identity_app) = (node.backend_with_credits(9).await, node.identity_app());
    let opened = backend.open(&["name"]).await;
    identity_app.approve(&opened, "asha").await;
    let page = node.operator().probe("/metrics").await.text;
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    promtool.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.is_empty() && err.is_empty(), "{out}{err}");
    for line in [
        "sakshi_webhook_attempts_total{outcome=\"timed_out\"} 0",
        "sakshi_http_refusals_total{code=\"internal_error\"} 0",
    ] {
        assert!(page.lines().any(|found| found == line), "{line} exists before the first occurrence");
    }
    let value_of = |name: &str| -> f64 {
        let line = page
            .lines()
            .find(|line| line.split(['{', ' ']).next() == Some(name))
            .unwrap_or_else(|| panic!("{name} in {page}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    let commit = node.run(&["--version"]).out;
    let (commit, schema) = commit
        .trim()
        .split(['(', ')'])
        .nth(1)
        .and_then(|build| build.split_once(", schema "))
        .unwrap_or_else(|| panic!("{commit}"));
    assert!(
        page.contains(&format!("commit=\"{commit}\",schema=\"{schema}\"")) && commit == sakshi::COMMIT,
        "{commit} {schema}"
    );
    for name in [
        "process_cpu_seconds_total",
        "process_open_fds",
        "process_max_fds",
        "process_start_time_seconds",
        "sakshi_build_info",
    ] {
        assert!(value_of(name) > 0.0, "{name}");
    }
    for name in ["sakshi_body_bytes", "sakshi_body_owners", "sakshi_untrusted_cpu_waiting"] {
        assert!(value_of(name) < 1.0, "{name} after the end of all work");
    }
}

#[tokio::test]
async fn support_finds_transactions_and_refusals_without_shared_data() {
    let node = TestNode::start().await;
    let (backend, identity_app, operator) = (node.backend_with_credits(2).await, node.identity_app(), node.operator());
    let opened = backend.open(&["name"]).await;
    let path = format!("/admin/v1/transactions/{}", opened.txn);
    let pending_view = operator.get(&path).await.ok();
    assert_eq!(
        (&pending_view["status"], &pending_view["client_id"], &pending_view["channel"]),
        (&json!("pending"), &json!(backend.client), &json!("qr"))
    );
    identity_app.approve(&opened, "asha").await;
    let answer = operator.get(&path).await;
    let completed_view = answer.ok();
    assert_eq!(
        (&completed_view["status"], &completed_view["verification_passed"], &completed_view["delivery"]),
        (&json!("completed"), &json!(true), &Value::Null)
    );
    assert!(completed_view["verified_at"].is_string() && !answer.text.contains("Asha"), "{}", answer.text);
    assert_eq!(
        operator.get(&format!("/admin/v1/transactions/{}", uuid::Uuid::new_v4())).await.refusal(404),
        "transaction_not_found"
    );

    let refused = backend.init(&json!({"claims": ["shoe_size"], "channel": "qr"})).await;
    let error_id = refused.json()["errorId"].as_str().expect("an id").to_owned();
    let refusals = eventually("the refusal", TIMEOUT, || async {
        let answer = operator.get(&format!("/admin/v1/requests/{error_id}")).await;
        (answer.status == 200).then_some(answer)
    })
    .await;
    let request = &refusals.ok()["requests"][0];
    assert_eq!(
        (&request["app_id"], &request["status"], &request["fields"][0]),
        (&json!(backend.app), &json!(400), &json!("claims[0]"))
    );
    assert!(!refusals.text.contains("shoe_size"), "{}", refusals.text);
    assert_eq!(operator.get("/admin/v1/requests/never-sent").await.refusal(404), "not_found");
}
