//! `sakshi trigger` and `sakshi listen` with a remote sandbox. They need only its public URL, an API key and an app id.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use reqwest::Method;
use sakshi_kit::answer::Answer;
use sakshi_kit::backend::Backend;
use sakshi_kit::flow::Flow;
use sakshi_kit::node::TestNode;
use sakshi_kit::portal::{Browser, element_text};
use sakshi_kit::ports::free_address;
use sakshi_kit::process::{Process, ProcessOutput};
use sakshi_kit::waiting::{TIMEOUT, assert_within, eventually};
use sakshi_sandbox::inbox::INBOXES_OF_APP_MAX;
use sakshi_sandbox::receiver::{Behaviour, Received, WebhookReceiver, listen};
use serde_json::{Value, json};

/// Returns the environment of a developer: an API key and an app id, unless they are empty, and an internal listener
/// that cannot be reached.
fn developer_environment(key: &str, app: &str) -> BTreeMap<String, String> {
    let variables = [("SAKSHI_API_KEY", key), ("SAKSHI_APP_ID", app), ("SAKSHI__SERVER__INTERNAL_ADDR", "127.0.0.1:9")];
    variables
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// Runs `trigger` for a flow on a sandbox with this public URL.
fn trigger(flow: &[&str], base: &str, environment: &BTreeMap<String, String>) -> ProcessOutput {
    let directory = tempfile::tempdir().unwrap();
    Process::run(&[&["trigger"], flow, &["--base", base]].concat(), environment, directory.path())
}

/// A running `listen --json`, which prints the webhooks that arrive at its URL.
struct Listener {
    process: Process,
    url: String,
}

impl Listener {
    /// Starts it for the app of a backend, with a new inbox in the sandbox of the node.
    async fn start(node: &TestNode, backend: &Backend, options: &[&str]) -> Self {
        let (directory, base) = (tempfile::tempdir().unwrap(), node.addresses.public(""));
        let arguments = [&["listen", "--json", "--base", &base], options].concat();
        let process = Process::start(&arguments, &developer_environment(&backend.key, &backend.app), directory.path());
        let mut listener = Self { process, url: String::new() };
        listener.url = listener.line("listening", 0).await["url"].as_str().unwrap().to_owned();
        listener
    }

    /// Waits for an event to be printed, and returns its line. The first event of a name has index 0.
    async fn line(&self, event: &str, index: usize) -> Value {
        eventually(event, TIMEOUT, || async {
            let lines = self
                .process
                .log()
                .into_iter()
                .map(|line| serde_json::from_str::<Value>(&line).unwrap_or_else(|_| panic!("{line}")));
            lines.filter(|line| line["event"] == event).nth(index)
        })
        .await
    }

    /// Stops it as Ctrl-C does.
    async fn stop(self) -> ProcessOutput {
        self.process.signal("INT");
        self.process.wait_for_exit(TIMEOUT).await
    }
}

#[tokio::test]
async fn the_listen_command_of_the_portal_opens_an_inbox_for_the_app() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(1).await;
    let page = Browser::signed_in(&node, &backend).await.get("/portal/webhooks").await.text;
    let command = element_text(&page, "listen");
    let line = command
        .strip_prefix("SAKSHI_API_KEY=\"$KEY\" sakshi ")
        .unwrap_or_else(|| panic!("{command}"))
        .replace('\'', "");
    let arguments: Vec<_> = line.split(' ').chain(["--json"]).collect();
    let directory = tempfile::tempdir().unwrap();
    let process = Process::start(&arguments, &developer_environment(&backend.key, ""), directory.path());
    let mut listener = Listener { process, url: String::new() };
    listener.url = listener.line("listening", 0).await["url"].as_str().unwrap().to_owned();
    let polled = approve_transaction(&node, &backend, &listener.url).await;
    assert_eq!(listener.line("webhook", 0).await["body"], serde_json::from_str::<Value>(&polled).unwrap());
    listener.stop().await;
}

/// Opens a transaction that is reported to `url`, and approves it; returns the body of its poll.
async fn approve_transaction(node: &TestNode, backend: &Backend, url: &str) -> String {
    let opened = backend.open_reported(&["name"], url).await;
    node.identity_app().approve(&opened, "vikram").await;
    backend.result(&opened.txn).await.text
}

async fn balance(backend: &Backend) -> Value {
    backend.get("/api/v1/credits").await.ok()["balance"].clone()
}

#[tokio::test]
async fn trigger_needs_only_the_public_url_a_key_and_an_app() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(3).await;
    let (base, environment) = (node.addresses.public(""), developer_environment(&backend.key, &backend.app));
    for flow in [
        &["ovse"][..],
        &["ovse", "--outcome", "decline"],
        &["ovse", "--outcome", "expired"],
        &["esign", "--signers", "2"],
        &["doclocker"],
        &["estamp"],
        &["wealth", "--outcome", "all"],
        &["check", "pan"],
    ] {
        let output = trigger(flow, &base, &environment);
        assert!(
            output.status.success() && output.out.contains("everything came out as it should"),
            "{flow:?}: {output:?}"
        );
        assert!(!output.out.contains("NOT ") && !output.out.contains(&backend.key), "{flow:?}: {}", output.out);
        let has_poll = matches!(flow, ["ovse"] | ["ovse", _, "decline"] | ["esign", ..]);
        assert_eq!(output.out.contains("the same body as the webhook's"), has_poll, "{flow:?}: {}", output.out);
    }
    assert_eq!(balance(&backend).await, 0, "three verifications cost three credits");
    let urls = backend.get("/api/v1/user/webhook").await.ok();
    assert_eq!(urls["data"], json!([]), "the registered URLs of the app are unchanged");
}

#[tokio::test]
async fn the_url_of_a_listener_receives_the_webhooks_of_every_flow() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(1).await;
    let listener = Listener::start(&node, &backend, &[]).await;
    let (base, environment) = (node.addresses.public(""), developer_environment(&backend.key, &backend.app));
    let kinds = [
        ("ovse", "ovse"),
        ("esign", "esign"),
        ("doclocker", "doclocker"),
        ("estamp", "estamp"),
        ("wealth", "wealth-consent"),
    ];
    for (index, (flow, kind)) in kinds.into_iter().enumerate() {
        let output = trigger(&[flow, "--webhook-url", &listener.url], &base, &environment);
        assert!(output.status.success() && output.out.contains("delivered, 200"), "{flow}: {output:?}");
        assert_eq!(listener.line("webhook", index).await["kind"], kind);
    }
    let output = listener.stop().await;
    assert!(output.status.success() && output.out.contains(r#""duplicates":0"#), "{output:?}");
}

#[tokio::test]
async fn a_wrong_setting_is_explained_and_costs_no_credit() {
    let node = TestNode::start().await;
    let (backend, other, poor) =
        (node.backend_with_credits(1).await, node.backend_with_credits(1).await, node.backend_with_credits(0).await);
    let (base, internal) = (node.addresses.public(""), node.addresses.internal(""));
    for (key, app, base, message) in [
        ("sk_wrong", &*backend.app, &*base, "does not take this API key with this app id"),
        (&backend.key, &other.app, &base, "the app must belong to the client of the key"),
        (&backend.key, "", &base, "name an app of its client with --app"),
        ("", "", &base, "there is no API key to use: give --key and --app"),
        ("", &backend.app, &base, "there is no API key to use: give --key and --app"),
        (&backend.key, &backend.app, &internal, "is no sandbox"),
        (&backend.key, &backend.app, "http://127.0.0.1:9", "cannot reach the service: http://127.0.0.1:9"),
        (&poor.key, &poor.app, &base, "has no credits left, and a verification costs one"),
    ] {
        let output = trigger(&["ovse"], base, &developer_environment(key, app));
        assert!(
            !output.status.success() && output.err.contains(message) && output.err.lines().count() == 1,
            "{message}: {output:?}"
        );
        assert!(!output.out.contains("order") && !output.err.contains(&backend.key), "{output:?}");
    }
    assert_eq!((balance(&backend).await, balance(&other).await), (json!(1), json!(1)));
}

#[tokio::test]
async fn an_unreachable_webhook_url_is_detected_before_a_credit_is_spent() {
    let node = TestNode::start_with(&[("SERVER__PUBLIC_BASE_URL", "http://127.0.0.1:9")]).await;
    let backend = node.backend_with_credits(1).await;
    let output = trigger(&["ovse"], &node.addresses.public(""), &developer_environment(&backend.key, &backend.app));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        output.err.contains("cannot reach its own address http://127.0.0.1:9/")
            && output.err.contains("public_base_url"),
        "{output:?}"
    );
    assert_eq!(balance(&backend).await, 1);
}

#[tokio::test]
async fn listen_forwards_webhooks_unchanged_and_survives_an_outage_of_the_target() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(3).await;
    let (target, mut forwarded_requests) = listen(free_address()).await.unwrap();
    let listener = Listener::start(&node, &backend, &["--forward", &target.url("/hooks?from=sandbox")]).await;

    let result = approve_transaction(&node, &backend, &listener.url).await;
    let forwarded_request = tokio::time::timeout(TIMEOUT, forwarded_requests.recv()).await.unwrap().unwrap();
    let Received { method, path, headers, body, .. } = forwarded_request.request.clone();
    forwarded_request.respond(Behaviour::Answer(418));
    assert_eq!(
        (method, &*path, headers["content-type"].to_str().unwrap()),
        (Method::POST, "/hooks?from=sandbox", "application/json")
    );
    assert_eq!(headers["host"].to_str().unwrap(), target.address().to_string(), "the target's own name");
    assert_eq!(body, result, "the bytes of the webhook, which are those of the poll");
    assert_eq!(listener.line("webhook", 0).await["body"], serde_json::from_str::<Value>(&result).unwrap());
    assert_eq!(listener.line("forwarded", 0).await["status"], 418);

    let address = target.address();
    drop((target, forwarded_requests));
    approve_transaction(&node, &backend, &listener.url).await;
    let failed = listener.line("forwarded", 1).await;
    assert!(failed["status"].is_null() && failed["error"].as_str().unwrap().contains("unreachable"), "{failed}");

    let (_target, mut forwarded_requests) = listen(address).await.unwrap();
    let result = approve_transaction(&node, &backend, &listener.url).await;
    let forwarded_request = tokio::time::timeout(TIMEOUT, forwarded_requests.recv()).await.unwrap().unwrap();
    assert_eq!(forwarded_request.request.body, result);
    forwarded_request.respond(Behaviour::Answer(200));
    assert_eq!(listener.line("forwarded", 2).await["status"], 200);
    let output = listener.stop().await;
    assert!(output.status.success() && output.out.contains(r#""webhooks":3"#), "{output:?}");
}

#[tokio::test]
async fn a_local_listener_forwards_webhooks_too() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(1).await;
    let target = WebhookReceiver::start(Behaviour::Answer(200)).await.unwrap();
    let (directory, target_url) = (tempfile::tempdir().unwrap(), target.url("/"));
    let arguments = ["listen", "--json", "--port", "0", "--forward", &target_url];
    let listener =
        Listener { process: Process::start(&arguments, &BTreeMap::new(), directory.path()), url: String::new() };
    let url = listener.line("listening", 0).await["url"].as_str().unwrap().to_owned();
    let result = approve_transaction(&node, &backend, &url).await;
    let forwarded = target.wait_for(1, TIMEOUT).await;
    assert_eq!(forwarded[0].body, result);
    assert_eq!(listener.line("forwarded", 0).await["status"], 200);
    assert!(listener.stop().await.status.success());
}

#[tokio::test]
async fn listen_reports_missing_settings_and_a_replaced_inbox() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(0).await;
    let directory = tempfile::tempdir().unwrap();
    let run = |words: &[&str], key: &str| {
        Process::run(&[&["listen"], words].concat(), &developer_environment(key, &backend.app), directory.path())
    };
    let (base, internal) = (node.addresses.public(""), node.addresses.internal(""));
    for (words, key, message) in [
        (&["--base", &*base][..], "", "--key"),
        (&["--base", &base], "sk_wrong", "does not take this API key"),
        (&["--base", &internal], &backend.key, "it is no sandbox"),
        (&["--base", &base, "--hang"], &backend.key, "cannot be used with"),
        (&["--forward", "ftp://a.example/"], &backend.key, "must be an http or https URL"),
    ] {
        let output = run(words, key);
        assert!(!output.status.success() && output.err.contains(message), "{words:?}: {output:?}");
    }

    let listener = Listener::start(&node, &backend, &[]).await;
    // As many new inboxes as an app may have replace that of the listener.
    let replace_inboxes = async {
        loop {
            join_all((0..INBOXES_OF_APP_MAX).map(|_| open_inbox(&backend))).await;
        }
    };
    let output = tokio::select! {
        output = listener.process.wait_for_exit(TIMEOUT) => output,
        () = replace_inboxes => unreachable!("the loop never ends"),
    };
    assert_eq!(output.status.code(), Some(1));
    assert!(
        output.err.contains("There is no such inbox: ") && output.err.contains("the node was restarted"),
        "{output:?}"
    );
}

/// Opens an inbox; returns the path at which its app reads it, and its URL for webhooks.
async fn open_inbox(backend: &Backend) -> (String, String) {
    let inbox = backend.post("/sandbox/inboxes", &json!({})).await.ok();
    let text = |name: &str| inbox[name].as_str().unwrap().to_owned();
    (format!("/sandbox/inboxes/{}", text("id")), text("url"))
}

#[tokio::test]
async fn an_inbox_gives_its_webhooks_only_to_its_own_app() {
    let node = TestNode::start().await;
    let (backend, other) = (node.backend_with_credits(0).await, node.backend_with_credits(0).await);
    let (path, url) = open_inbox(&backend).await;
    assert_eq!(backend.get(&path).await.ok(), json!({ "webhook": null }), "the inbox begins empty");
    let poll = tokio::spawn({
        let (backend, path) = (backend.clone(), format!("{path}?wait=30"));
        async move { backend.get(&path).await.ok() }
    });
    node.wait_for_requests_in_flight(1).await;
    assert!(!poll.is_finished(), "the reader waits");
    let answer = Answer::receive(node.http.post(&url).header("x-of-mine", "1").body(vec![0, 159, 255])).await;
    let sent_at = Instant::now();
    assert_eq!((answer.status, &*answer.text), (200, ""));
    let webhook = poll.await.unwrap()["webhook"].clone();
    assert_within(sent_at.elapsed(), Duration::from_secs(10), "the answer to a reader who waits");
    assert_eq!((&webhook["number"], &webhook["method"], &webhook["body"]), (&json!(1), &json!("POST"), &json!("AJ//")));
    assert!(webhook["headers"].as_array().unwrap().contains(&json!(["x-of-mine", "1"])), "{webhook}");
    assert_eq!(backend.get(&format!("{path}?after=1")).await.ok(), json!({ "webhook": null }));

    assert_eq!(other.get(&path).await.refusal(404), "inbox_not_found");
    assert_eq!(node.get(&path).await.refusal(401), "unauthorized");
    assert_eq!(
        Answer::receive(node.http.post(node.addresses.public("/sandbox/inboxes"))).await.refusal(401),
        "unauthorized"
    );
    let unknown = node.addresses.public("/sandbox/inboxes/0123456789abcdef0123456789abcdef");
    assert_eq!(Answer::receive(node.http.post(unknown).body("{}")).await.refusal(404), "inbox_not_found");
}

#[tokio::test]
async fn attempts_and_settings_are_visible_only_to_their_own_app() {
    let node = TestNode::start().await;
    let (backend, other) = (node.backend_with_credits(1).await, node.backend_with_credits(0).await);
    let (_, url) = open_inbox(&backend).await;
    let opened = backend.open_reported(&["name"], &url).await;
    let delivery_path = format!("/sandbox/transactions/{}/delivery", opened.txn);
    assert_eq!(backend.get(&delivery_path).await.refusal(404), "not_found", "no webhook is sent yet");
    node.identity_app().approve(&opened, "asha").await;
    let outcome = async || backend.get(&delivery_path).await.ok()["attempt"]["outcome"].as_str().map(str::to_owned);
    assert_eq!(eventually("the attempt", TIMEOUT, outcome).await, "delivered");
    assert_eq!(other.get(&delivery_path).await.refusal(404), "transaction_not_found");
    assert_eq!(node.get(&delivery_path).await.refusal(401), "unauthorized");

    let flow = backend.open_flow(Flow::Esign).await;
    let deliveries_path = format!("/sandbox/flows/{}/deliveries", flow.id);
    assert_eq!(backend.get(&deliveries_path).await.ok(), json!({ "deliveries": [] }));
    assert_eq!(other.get(&deliveries_path).await.refusal(404), "not_found");

    let change_settings = async |backend: &Backend, body: &Value| {
        Answer::receive(backend.request(Method::PATCH, "/sandbox/settings").json(body)).await
    };
    let settings =
        change_settings(&backend, &json!({ "data_webhook_url": url, "payload_spelling": "camelCase" })).await.ok();
    assert_eq!((&settings["app_id"], &settings["data_webhook_url"]), (&json!(backend.app), &json!(url)));
    let read_app = async |backend: &Backend| node.operator().get(&format!("/admin/v1/apps/{}", backend.app)).await.ok();
    assert_eq!(
        (read_app(&backend).await["data_webhook_url"].as_str(), read_app(&other).await["data_webhook_url"].as_str()),
        (Some(&*url), None)
    );
    assert_eq!(change_settings(&backend, &json!({ "name": "x" })).await.refused_fields(), ["name"]);
    let invalid = backend.with_credentials("sk_wrong", &backend.app);
    assert_eq!(change_settings(&invalid, &json!({})).await.refusal(401), "unauthorized");
}

#[tokio::test]
async fn an_inbox_is_refused_if_its_url_leads_to_another_node() {
    let node = TestNode::start().await;
    let other_node = TestNode::start_with(&[("SERVER__PUBLIC_BASE_URL", &node.addresses.public(""))]).await;
    let backend = other_node.backend_with_credits(0).await;
    assert_eq!(backend.post("/sandbox/inboxes", &json!({})).await.refusal(502), "inbox_unreachable");
}
