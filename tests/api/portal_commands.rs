//! Every command of the portal, run in a plain shell with the key given as the page says.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use sakshi_kit::backend::Backend;
use sakshi_kit::node::TestNode;
use sakshi_kit::portal::{Browser, commands};

/// Types the page's first line, the key and a command into `sh`; returns the command's output.
fn run(first: &str, command: &str, backend: &Backend) -> String {
    let mut shell = Command::new("sh")
        .args(["-c", &format!("{first}\n{command}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a shell");
    writeln!(shell.stdin.take().expect("a pipe"), "{}", backend.key).expect("it reads the key");
    let done = shell.wait_with_output().expect("it ends");
    let printed = String::from_utf8(done.stdout).expect("text");
    assert!(done.status.success(), "{command}: {printed}{}", String::from_utf8_lossy(&done.stderr));
    assert!(!printed.contains(&backend.key), "{command}");
    printed.strip_prefix("API key: \n").unwrap_or_else(|| panic!("{first}: {printed}")).to_owned()
}

/// Runs the commands of a page one after another; returns their output by title.
async fn say(browser: &Browser, path: &str, backend: &Backend) -> Vec<(String, String)> {
    let page = browser.get(path).await;
    assert_eq!(page.status, 200, "{path}: {}", page.text);
    let (first, commands) = commands(&page.text);
    assert!(!first.contains(&backend.key) && !commands.is_empty(), "{path}");
    let backend = backend.clone();
    let run = move || commands.into_iter().map(|(title, command)| (title, run(&first, &command, &backend))).collect();
    tokio::task::spawn_blocking(run).await.expect("a thread")
}

fn of(said: &[(String, String)], title: &str) -> Value {
    let (_, text) =
        said.iter().find(|(known, _)| known == title).unwrap_or_else(|| panic!("{title} is none of {said:?}"));
    serde_json::from_str(text).unwrap_or_else(|_| panic!("{title}: {text}"))
}

#[tokio::test]
async fn the_commands_of_a_trial_open_another_one_encode_it_and_poll_it() {
    let node = TestNode::start().await;
    let backend = node.backend(2).await;
    let browser = Browser::signed_in(&node, &backend).await;
    let trial = browser.trial().await;
    let (first, commands) = commands(&trial.page);
    let say = |title: &str| run(&first, &commands.iter().find(|(known, _)| known == title).expect(title).1, &backend);
    let opened: Value = serde_json::from_str(&say("Open a transaction")).expect("an answer");
    node.secrets.watch_for(opened["intentJwt"].as_str().expect("an intent"));
    assert!(backend.is_pending(opened["txnId"].as_str().expect("a txnId")).await);
    assert_eq!(node.operator().balance(&backend.client).await, 0);
    assert!(say("Get a code for the app’s scanner").contains("\"qrPayload\""));
    node.identity_app().approve(&trial.opened, "asha").await;
    assert_eq!(say("Poll the result"), backend.result(&trial.opened.txn).await.text);
}

#[tokio::test]
async fn the_commands_of_events_webhooks_and_credits_do_what_their_titles_say() {
    let node = TestNode::start().await;
    let backend = node.backend(2).await;
    let browser = Browser::signed_in(&node, &backend).await;
    let name = "O'Brien's \"ball\" $(id) `id` \\n";
    let created = backend
        .post(
            "/api/v1/nationalid-ovse/events",
            &json!({"name": name, "claims": ["name"], "max_guests": 3, "expires_at": soon(7)}),
        )
        .await
        .ok();
    let path = format!("/portal/events/{}/settings", created["event_id"].as_str().expect("an event"));
    let said = say(&browser, &path, &backend).await;
    let before = of(&said, "Read its status");
    assert_eq!(before["name"], name);
    let twin = of(&said, "Create one like this")["event_id"].as_str().expect("an event").to_owned();
    assert_ne!(created["event_id"], twin.as_str());
    assert_eq!(
        of(&say(&browser, &format!("/portal/events/{twin}/settings"), &backend).await, "Read its status")["name"],
        name
    );
    assert_eq!(of(&said, "List its registrations")["total"], 0);
    assert_eq!(of(&said, "Raise the cap")["max_guests"], 13);
    assert!(of(&said, "Extend it")["expires_at"].as_str() > before["expires_at"].as_str());
    assert_eq!(of(&said, "Disable it")["is_active"], false);
    assert!(said.last().expect("a poster").1.starts_with("<svg"));
    assert_eq!(of(&say(&browser, &path, &backend).await, "Enable it")["is_active"], true);

    assert_eq!(
        of(&say(&browser, "/portal/events", &backend).await, "List events")["total"],
        4,
        "one was asked for, three were copied"
    );
    let said = say(&browser, "/portal/webhooks", &backend).await;
    assert_eq!(of(&said, "Set a URL")["data"]["webhookUrl"], "https://client.example/hook");
    assert_eq!(of(&said, "Remove it")["data"]["webhookUrl"], Value::Null);
    let said = say(&browser, "/portal/credits", &backend).await;
    assert_eq!(
        (&of(&said, "Read the balance")["balance"], &of(&said, "Read the statement")["total"]),
        (&json!(2), &json!(1))
    );
}

/// Returns the time in `days` days.
fn soon(days: u64) -> String {
    use sakshi_domain::clock::{Clock as _, SystemClock};
    (SystemClock.now() + std::time::Duration::from_secs(days * 86_400)).to_string()
}
