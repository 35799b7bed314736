//! The program against a real sandbox node, which runs on a thread of this process.

use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::thread;

use sakshi::node::Node;
use sakshi::settings::{Sources, load};
use serde_json::Value;
use tokio::sync::oneshot;

/// A node that stops when it is dropped.
struct RunningNode {
    public: String,
    internal: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl RunningNode {
    fn start(directory: &Path) -> Self {
        let setting = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let overrides = vec![
            setting("profile", "sandbox"),
            setting("store.path", &directory.display().to_string()),
            setting("server.public_addr", "127.0.0.1:0"),
            setting("server.internal_addr", "127.0.0.1:0"),
            setting("server.workers", "2"),
            setting("server.drain_timeout_s", "2"),
            // Short: the test waits until the guests who left have expired. Long enough for a busy machine.
            setting("ovse.window_s", "20"),
        ];
        let (addresses_sender, addresses) = mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let thread = thread::spawn(move || {
            actix_rt::System::new().block_on(async move {
                let settings = load(&Sources { overrides, ..Sources::default() }).unwrap().settings;
                let node = Node::start(
                    &settings,
                    sakshi::telemetry::PrometheusRecorder::default(),
                    sakshi::telemetry::LogLevel::default(),
                )
                .await
                .unwrap();
                addresses_sender.send((node.public_addr, node.internal_addr)).unwrap();
                let _ = stopped.await;
                node.stop().await;
            });
        });
        let (public, internal) = addresses.recv().unwrap();
        Self {
            public: format!("http://{public}"),
            internal: format!("http://{internal}"),
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// Runs the tester. Returns the exit code, the summary, the report page and the output.
    fn run_tester(&self, directory: &Path, options: &[&str]) -> (Option<i32>, Value, String, String) {
        let (json, page) = (directory.join("summary.json"), directory.join("report.html"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_sakshi-load"));
        command.args(options).args(["--base", &self.public, "--internal", &self.internal]);
        command.arg("--issuer-key").arg(directory.join("sandbox-keys/issuer.p8"));
        let process = command.arg("--json").arg(&json).arg("--report").arg(&page).output().unwrap();
        let output =
            format!("{}{}", String::from_utf8_lossy(&process.stdout), String::from_utf8_lossy(&process.stderr));
        let summary = std::fs::read(&json).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
        (process.status.code(), summary, std::fs::read_to_string(&page).unwrap_or_default(), output)
    }
}

impl Drop for RunningNode {
    fn drop(&mut self) {
        let _ = self.stop.take().map(|stop| stop.send(()));
        let _ = self.thread.take().map(thread::JoinHandle::join);
    }
}

#[test]
fn a_real_node_keeps_every_invariant_in_each_model() {
    let directory = tempfile::tempdir().unwrap();
    let node = RunningNode::start(directory.path());
    let runs: [&[&str]; 4] = [
        &["kiosk", "--guests", "60", "--rate", "40", "--abandon", "0.2", "--decline", "0.1", "--until-expired"],
        &["kiosk", "--guests", "60", "--users", "6", "--max-guests", "25", "--abandon", "0"],
        &["api", "--guests", "60", "--rate", "60", "--abandon", "0.2", "--decline", "0.2"],
        &["soak", "--guests", "10", "--rate", "20", "--users", "4"],
    ];
    for options in runs {
        let (code, summary, page, output) = node.run_tester(directory.path(), options);
        assert_eq!((code, &summary["verdict"]), (Some(0), &Value::from("held")), "{options:?}: {output}");
        let guests = &summary["guests"];
        let count = |name: &str| guests[name].as_u64().unwrap();
        assert_eq!(count("failed"), 0, "{output}");
        assert_eq!(
            count("started"),
            count("completed") + count("declined") + count("left") + count("turned_away"),
            "{output}"
        );
        assert!(count("completed") > 0 && page.contains("Every invariant held.") && page.contains("<svg"), "{output}");
        assert_eq!(summary["webhooks"]["lost"], 0);
        if options.contains(&"--max-guests") {
            let (places, completed) = (&summary["places"]["registered"], &guests["completed"]);
            assert_eq!((places, completed), (&Value::from(25), &Value::from(25)), "the event is exactly full");
        }
    }
}

/// Returns the time for which a door has no network: a minute in the long form of the tests.
fn offline_seconds() -> &'static str {
    if std::env::var("SAKSHI_TESTS").is_ok_and(|form| form == "long") { "60" } else { "20" }
}

#[test]
fn three_doors_check_in_each_guest_once_although_one_door_has_no_network() {
    let directory = tempfile::tempdir().unwrap();
    let node = RunningNode::start(directory.path());
    let options = [
        "kiosk",
        "--guests",
        "300",
        "--rate",
        "25",
        "--duplicates",
        "0.1",
        "--doors",
        "3",
        "--twice",
        "0.2",
        "--door-offline",
    ];
    let options = [&options[..], &[offline_seconds()]].concat();
    let (code, summary, page, output) = node.run_tester(directory.path(), &options);
    assert_eq!((code, &summary["verdict"]), (Some(0), &Value::from("held")), "{output}");
    let (doors, completed) = (&summary["doors"], summary["guests"]["completed"].as_u64().unwrap());
    let count = |name: &str| doors[name].as_u64().unwrap();
    assert_eq!((count("doors"), count("checked_in")), (3, completed), "{output}");
    // The guests at two doors are drawn from the seed, so the share is not exact.
    assert!((completed / 10..completed * 3 / 10).contains(&count("at_two_doors")), "{output}");
    assert!(count("sent_later") > completed / 6, "a third of the guests came to the door without a network: {output}");
    let step = summary["steps"].as_array().unwrap().iter().find(|step| step["title"] == "POST check-in").unwrap();
    assert_eq!(step["count"], completed + count("at_two_doors"), "{output}");
    assert!(page.contains("POST check-in: latency over time") && page.contains("guests checked in"), "{output}");
    let findings = summary["findings"].as_array().unwrap();
    let marked = findings
        .iter()
        .find(|finding| finding["rule"].as_str().unwrap().contains("every duplicate is marked"))
        .unwrap();
    let marked_count = marked["figures"].as_str().unwrap().split(' ').next().unwrap().parse::<u64>().unwrap();
    assert!((10..50).contains(&marked_count), "{output}");
}

#[test]
fn a_returning_person_is_refused_or_accepted_as_the_event_requires() {
    let directory = tempfile::tempdir().unwrap();
    let node = RunningNode::start(directory.path());
    let arguments = [
        "kiosk",
        "--guests",
        "100",
        "--rate",
        "50",
        "--duplicates",
        "0.5",
        "--abandon",
        "0",
        "--decline",
        "0",
        "--on-duplicate",
    ];
    for handling in ["refuse", "allow"] {
        let (code, summary, _, output) = node.run_tester(directory.path(), &[&arguments[..], &[handling]].concat());
        assert_eq!((code, &summary["verdict"]), (Some(0), &Value::from("held")), "{output}");
        let (completed, refused) = (
            summary["guests"]["completed"].as_u64().unwrap(),
            summary["guests"]["already_registered"].as_u64().unwrap(),
        );
        assert_eq!((completed + refused, refused > 30), (100, handling == "refuse"), "{output}");
    }
}

#[test]
fn credentials_of_an_unknown_issuer_fail_the_rehearsal() {
    let directory = tempfile::tempdir().unwrap();
    let node = RunningNode::start(directory.path());
    let issuer = sakshi_sandbox::issuer::SandboxIssuer::generate("https://issuer.sandbox.invalid").unwrap();
    std::fs::write(directory.path().join("sandbox-keys/issuer.p8"), issuer.to_pkcs8().unwrap()).unwrap();
    let (code, _, _, output) = node.run_tester(directory.path(), &["kiosk", "--guests", "5"]);
    assert!(code == Some(2) && output.contains("rehearsal"), "{code:?} {output}");
}
