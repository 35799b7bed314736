//! Every command of the portal, run in a plain shell with the key given as the page says.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use sakshi_kit::backend::Backend;
use sakshi_kit::node::TestNode;
use sakshi_kit::portal::{Browser, commands};

/// Runs the line that asks for the key and then a command in `sh`, types the key, and returns the command's output.
fn run_in_shell(key_prompt: &str, command: &str, backend: &Backend) -> String {
    let mut shell = Command::new("sh")
        .args(["-c", &format!("{key_prompt}\n{command}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a shell");
    writeln!(shell.stdin.take().expect("a pipe"), "{}", backend.key).expect("it reads the key");
    let output = shell.wait_with_output().expect("it ends");
    let output_text = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{command}: {output_text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(!output_text.contains(&backend.key), "{command}");
    output_text.strip_prefix("API key: \n").unwrap_or_else(|| panic!("{key_prompt}: {output_text}")).to_owned()
}

/// Runs the commands of a page one after another. Returns the title and the output of each.
async fn run_commands(browser: &Browser, path: &str, backend: &Backend) -> Vec<(String, String)> {
    let page = browser.get(path).await;
    assert_eq!(page.status, 200, "{path}: {}", page.text);
    let (key_prompt, commands) = commands(&page.text);
    assert!(!key_prompt.contains(&backend.key) && !commands.is_empty(), "{path}");
    let backend = backend.clone();
    let run_all = move || {
        commands.into_iter().map(|(title, command)| (title, run_in_shell(&key_prompt, &command, &backend))).collect()
    };
    tokio::task::spawn_blocking(run_all).await.expect("a thread")
}

/// Returns the output of the command with this title, as JSON.
fn output_of(outputs: &[(String, String)], title: &str) -> Value {
    let (_, text) =
        outputs.iter().find(|(known, _)| known == title).unwrap_or_else(|| panic!("{title} is not in {outputs:?}"));
    serde_json::from_str(text).unwrap_or_else(|_| panic!("{title}: {text}"))
}

#[tokio::test]
async fn the_commands_of_a_trial_open_encode_and_poll_a_transaction() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(2).await;
    let browser = Browser::signed_in(&node, &backend).await;
    let trial = browser.trial().await;
    let (key_prompt, commands) = commands(&trial.page);
    let run_command = |title: &str| {
        run_in_shell(&key_prompt, &commands.iter().find(|(known, _)| known == title).expect(title).1, &backend)
    };
    let opened: Value = serde_json::from_str(&run_command("Open a transaction")).expect("an answer");
    node.secrets.watch_for(opened["intentJwt"].as_str().expect("an intent"));
    assert!(backend.is_pending(opened["txnId"].as_str().expect("a txnId")).await);
    assert_eq!(node.operator().balance(&backend.client).await, 0);
    assert!(run_command("Get a code for the app’s scanner").contains("\"qrPayload\""));
    node.identity_app().approve(&trial.opened, "asha").await;
    assert_eq!(run_command("Poll the result"), backend.result(&trial.opened.txn).await.text);
}

#[tokio::test]
async fn the_commands_of_events_webhooks_and_credits_do_what_their_titles_say() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(2).await;
    let browser = Browser::signed_in(&node, &backend).await;
    let name = "O'Brien's \"ball\" $(id) `id` \\n";
    let created = backend
        .post(
            "/api/v1/nationalid-ovse/events",
            &json!({"name": name, "claims": ["name"], "max_guests": 3, "expires_at": in_days(7)}),
        )
        .await
        .ok();
    let path = format!("/portal/events/{}/settings", created["event_id"].as_str().expect("an event"));
    let outputs = run_commands(&browser, &path, &backend).await;
    let before = output_of(&outputs, "Read its status");
    assert_eq!(before["name"], name);
    let copy = output_of(&outputs, "Create one like this")["event_id"].as_str().expect("an event").to_owned();
    assert_ne!(created["event_id"], copy.as_str());
    assert_eq!(
        output_of(
            &run_commands(&browser, &format!("/portal/events/{copy}/settings"), &backend).await,
            "Read its status"
        )["name"],
        name
    );
    assert_eq!(output_of(&outputs, "List its registrations")["total"], 0);
    assert_eq!(output_of(&outputs, "Raise the cap")["max_guests"], 13);
    assert!(output_of(&outputs, "Extend it")["expires_at"].as_str() > before["expires_at"].as_str());
    assert_eq!(output_of(&outputs, "Disable it")["is_active"], false);
    assert!(outputs.last().expect("a poster").1.starts_with("<svg"));
    assert_eq!(output_of(&run_commands(&browser, &path, &backend).await, "Enable it")["is_active"], true);

    assert_eq!(
        output_of(&run_commands(&browser, "/portal/events", &backend).await, "List events")["total"],
        4,
        "one event was created, and three were copied"
    );
    let outputs = run_commands(&browser, "/portal/webhooks", &backend).await;
    assert_eq!(output_of(&outputs, "Set a URL")["data"]["webhookUrl"], "https://client.example/hook");
    assert_eq!(output_of(&outputs, "Remove it")["data"]["webhookUrl"], Value::Null);
    let outputs = run_commands(&browser, "/portal/credits", &backend).await;
    assert_eq!(
        (&output_of(&outputs, "Read the balance")["balance"], &output_of(&outputs, "Read the statement")["total"]),
        (&json!(2), &json!(1))
    );
}

/// Returns the timestamp in `days` days.
fn in_days(days: u64) -> String {
    use sakshi_domain::clock::{Clock as _, SystemClock};
    (SystemClock.now() + std::time::Duration::from_secs(days * 86_400)).to_string()
}
