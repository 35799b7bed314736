//! The log: one line per request, with its route and id.

use reqwest::Method;

use sakshi_kit::answer::Answer;
use sakshi_kit::backend::result_path;
use sakshi_kit::collector::Collector;
use sakshi_kit::node::TestNode;
use sakshi_kit::waiting::{TIMEOUT, eventually};

#[tokio::test]
async fn a_request_is_logged_in_one_line_with_its_route_caller_and_transaction() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(1).await;
    let opened = backend.open(&["name"]).await;
    Answer::receive(backend.request(Method::GET, &result_path(&opened.txn)).header("X-Request-ID", "order-7/log"))
        .await
        .ok();
    let lines = eventually("the line", TIMEOUT, || async {
        let lines: Vec<String> = node.log().into_iter().filter(|line| line.contains("order-7/log")).collect();
        (!lines.is_empty()).then_some(lines)
    })
    .await;
    assert_eq!(lines.len(), 1, "{lines:#?}");
    assert!(
        lines[0].contains("/api/v1/nationalid-ovse/result/{txnId}")
            && !lines[0].contains(&format!("result/{}", opened.txn)),
        "{}",
        lines[0]
    );
    for field in
        [format!("client.id={}", backend.client), format!("app.id={}", backend.app), format!("txn.id={}", opened.txn)]
    {
        assert!(lines[0].contains(&field), "{field}: {}", lines[0]);
    }
    assert!(lines[0].contains("200"), "{}", lines[0]);
}

/// Waits for a log line that contains both texts, and returns it.
async fn wait_for_line(node: &TestNode, message: &str, field: &str) -> String {
    eventually("the line", TIMEOUT, || async {
        node.log().into_iter().find(|line| line.contains(message) && line.contains(field))
    })
    .await
}

#[tokio::test]
async fn level_info_logs_every_request_except_probes() {
    let node = TestNode::start().await;
    for path in ["/livez", "/readyz", "/metrics"] {
        node.operator().probe(path).await;
        assert!(wait_for_line(&node, "request answered", path).await.contains("DEBUG"), "{path}");
    }
    node.get("/api/ping").await;
    assert!(wait_for_line(&node, "request answered", "/api/ping").await.contains("DEBUG"));
    node.operator().get("/admin/v1/tree").await.ok();
    assert!(wait_for_line(&node, "request answered", "/admin/v1/tree").await.contains(" INFO "));
}

#[tokio::test]
async fn the_log_has_the_address_of_a_caller_and_the_network_of_a_resident() {
    let node = TestNode::start_with(&[("SERVER__TRUSTED_PROXIES", "127.0.0.1")]).await;
    let backend = node.backend_with_credits(1).await;
    let opened = backend.open(&["name"]).await;
    let through_proxy = |request: reqwest::RequestBuilder| request.header("X-Forwarded-For", "198.51.100.7");
    Answer::receive(through_proxy(backend.request(Method::GET, &result_path(&opened.txn)))).await.ok();
    assert!(wait_for_line(&node, "request answered", "/result/{txnId}").await.contains("client.address=198.51.100.7 "));
    let page = node.http.get(node.addresses.public(&format!("/v/{}", opened.txn)));
    assert_eq!(Answer::receive(through_proxy(page)).await.status, 200);
    assert!(wait_for_line(&node, "request answered", "/v/{txnId}").await.contains("client.address=198.51.100.0/24 "));
    assert!(!node.log().iter().any(|line| line.contains("/v/{txnId}") && line.contains("198.51.100.7")));
}

#[tokio::test]
async fn admin_requests_log_the_operator_and_failed_logins_are_warnings() {
    let node = TestNode::start().await;
    node.operator().get("/admin/v1/clients").await.ok();
    let line = wait_for_line(&node, "request answered", "/admin/v1/clients\"").await;
    assert!(line.contains("operator.id=\"settings\"") && line.contains("client.address=127.0.0.1 "), "{line}");
    let added = node
        .operator()
        .post("/admin/v1/operators", &serde_json::json!({"name": "Asha Rao", "role": "auditor"}))
        .await
        .ok();
    let with_token = |token: &str| node.http.get(node.addresses.internal("/admin/v1/apps/app_1")).bearer_auth(token);
    Answer::receive(with_token(added["token"].as_str().unwrap())).await.refusal(404);
    let line = wait_for_line(&node, "request answered", "/admin/v1/apps/{app_id}").await;
    assert!(line.contains(added["operator_id"].as_str().unwrap()) && !line.contains("Asha Rao"), "{line}");
    Answer::receive(with_token("not-a-token")).await.refusal(401);
    let line = wait_for_line(&node, "a login failed", "client.address=127.0.0.1 ").await;
    assert!(line.contains("WARN") && !line.contains("not-a-token"), "{line}");
}

#[tokio::test]
async fn the_log_begins_with_the_version_and_the_warnings_about_settings() {
    let mut node = TestNode::start_with(&[("TELEMETRY__LOG_FORMAT", "json"), ("OVSE__WINDOW_S", "600")]).await;
    let output = node.stop();
    let parse_line = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|_| panic!("{line}"));
    let mut lines = output.err.lines();
    let first = parse_line(lines.next().unwrap());
    let values = ["message", "profile", "server.public_addr"].map(|name| first[name].as_str().unwrap_or_default());
    assert_eq!(values, ["starting", "sandbox", "127.0.0.1:0"]);
    assert!(first["version"].is_string() && first["store.kind"].is_string(), "{first}");
    let second = parse_line(lines.next().unwrap());
    assert_eq!(
        (&second["level"], &second["setting"]),
        (&"WARN".into(), &"authority.intent_lifetime_s".into()),
        "{second}"
    );
    assert!(!output.err.contains("warning:"), "{}", output.err);
}

#[tokio::test]
async fn every_log_line_is_an_object_in_the_json_format() {
    let mut node = TestNode::start_with(&[("TELEMETRY__LOG_FORMAT", "json")]).await;
    let (backend, identity_app) = (node.backend_with_credits(1).await, node.identity_app());
    let opened = backend.open(&["name"]).await;
    identity_app.approve(&opened, "asha").await;
    let output = node.stop();
    let mut object_count = 0;
    // The sandbox prints the key of its first client as plain text for a person.
    for line in output.err.lines().filter(|line| line.starts_with('{')) {
        let object: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
        assert!(
            object["timestamp"].is_string() && object["level"].is_string() && object["message"].is_string(),
            "{line}"
        );
        object_count += 1;
    }
    assert!(object_count > 5, "{}", output.err);
}

#[tokio::test]
async fn log_lines_of_a_verification_share_its_id_and_refusals_name_their_code() {
    let node = TestNode::start().await;
    let (backend, identity_app) = (node.backend_with_credits(2).await, node.identity_app());
    let opened = backend.open(&["name"]).await;
    identity_app.approve(&opened, "asha").await;
    let lines_of_verification = eventually("the lines", TIMEOUT, || async {
        let lines: Vec<String> =
            node.log().into_iter().filter(|line| line.contains(&format!("txn.id={}", opened.txn))).collect();
        (lines.len() >= 4).then_some(lines)
    })
    .await;
    for text in ["transaction opened", "nationalid-ovse/init", "transaction completed", "/cb/{txnId}/{capability}"] {
        assert!(lines_of_verification.iter().any(|line| line.contains(text)), "{text}: {lines_of_verification:#?}");
    }
    let init = lines_of_verification.iter().find(|line| line.contains("nationalid-ovse/init")).unwrap();
    let (_, request_id) = init.split_once("request.id=").unwrap();
    let request_id = request_id.split(' ').next().unwrap();
    assert!(
        lines_of_verification.iter().any(|line| line.contains("transaction opened") && line.contains(request_id)),
        "{lines_of_verification:#?}"
    );

    let refused = backend.get(&result_path("not an id of anything")).await;
    assert_eq!(refused.refusal(404), "transaction_not_found");
    let id = refused.json()["errorId"].as_str().unwrap().to_owned();
    let line =
        eventually("the refusal", TIMEOUT, || async { node.log().into_iter().find(|line| line.contains(&id)) }).await;
    assert!(
        line.contains("error.type=\"transaction_not_found\"")
            && !line.contains("txn.id")
            && !line.contains("not an id"),
        "{line}"
    );
}

#[tokio::test]
async fn an_operator_changes_the_log_level_temporarily_without_a_restart() {
    let collector = Collector::start().await;
    for settings in [&[][..], &[("TELEMETRY__OTLP_ENDPOINT", &*collector.url)]] {
        let mut node = TestNode::unlaunched(settings);
        node.set_variable("SAKSHI_LOG", "info");
        node.launch().await;
        let debug_lines = || node.log().iter().filter(|line| line.contains("DEBUG")).count();
        let wait_for_words = async |words: &str| {
            eventually(words, TIMEOUT, || async { node.log().iter().any(|line| line.contains(words)).then_some(()) })
                .await;
        };
        let change_level_for = async |time: &str| {
            let changed = node.admin(&["log-level", "debug", "--for", time]).await;
            assert!(changed.status.success(), "{}", changed.err);
        };
        node.operator().probe("/livez").await;
        change_level_for("1h").await;
        let change = "an operator changed the level of the log";
        wait_for_words(change).await;
        let log = node.log();
        let mut lines_before = log.iter().take_while(|line| !line.contains(change));
        assert!(!lines_before.any(|line| line.contains("DEBUG")), "{log:#?}");
        // A probe is logged at this level.
        eventually("a line at level DEBUG", TIMEOUT, || async {
            node.operator().probe("/livez").await;
            (debug_lines() > 0).then_some(())
        })
        .await;
        // The end of the later change counts.
        change_level_for("1s").await;
        wait_for_words("the log has its usual level again").await;
        let before = debug_lines();
        node.operator().probe("/livez").await;
        node.operator().get("/admin/v1/tree").await.ok();
        wait_for_line(&node, "request answered", "/admin/v1/tree").await;
        assert_eq!(debug_lines(), before);
        assert!(!node.log().iter().any(|line| line.contains("sakshi_trace")), "spans are not log lines");
    }
}
