//! Tests of `listen` with a real socket: its output, its responses, and the marks of repeats.

use clap::Parser;
use reqwest::Client;
use serde_json::json;

use crate::developer::listen::*;

#[derive(Parser)]
struct CommandLine {
    #[command(flatten)]
    listen: Listen,
}

/// Parses the options of `listen` on any free port.
fn parse(words: &[&str]) -> Result<Listen, clap::Error> {
    CommandLine::try_parse_from([&["listen", "--port", "0"], words].concat()).map(|parse| parse.listen)
}

/// Sends bodies one after the other to a listener with these options. Returns the statuses and the output.
async fn listen_to(words: &[&str], bodies: &[&str]) -> (Vec<Option<u16>>, String) {
    let options = parse(words).unwrap();
    let (receiver, arrivals) = open_receiver(SocketAddr::new(options.addr, options.port)).await.unwrap();
    let (url, mut out) = (receiver.url("/hook"), Vec::new());
    let mut log = Log {
        options: &options,
        forwarder: options.forward.clone().map(Forwarder::new).transpose().unwrap(),
        first_webhooks: HashMap::new(),
        counts: WebhookCounts::default(),
    };
    let http = Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let send = async {
        let mut statuses = Vec::new();
        for body in bodies {
            let sent = http.post(&url).body((*body).to_owned()).send().await;
            statuses.push(sent.ok().map(|answer| answer.status().as_u16()));
        }
        statuses
    };
    let statuses = tokio::select! {
        result = log.handle_arrivals(arrivals, &mut out) => panic!("the listener ended: {result:?}"),
        statuses = send => statuses,
    };
    log.counts.show(options.json, &mut out).unwrap();
    (statuses, String::from_utf8(out).unwrap())
}

/// Builds the webhook of a wealth consent. The session is not part of its deduplication key.
fn consent(status: &str, session: &str) -> String {
    json!({ "consentHandle": "h", "status": status, "consentId": "c-1", "accounts": [], "userSessionId": session })
        .to_string()
}

#[actix_rt::test]
async fn a_second_webhook_with_the_same_key_is_marked_as_a_duplicate() {
    let bodies =
        [consent("Accepted", "s"), consent("Revoked", "s"), consent("Accepted", "s"), consent("Accepted", "t")];
    let (statuses, out) = listen_to(&[], &bodies.each_ref().map(String::as_str)).await;
    assert_eq!(statuses, [Some(200); 4]);
    assert_eq!(out.matches("DUPLICATE of #1").count(), 2, "{out}");
    assert!(out.contains("with the same body") && out.contains("with ANOTHER BODY"), "{out}");
    assert!(out.contains("POST /hook  wealth-consent") && out.contains("key consentId=c-1 status=Revoked"), "{out}");
    assert!(
        out.ends_with("4 webhooks, 2 duplicates.\nKIND            WEBHOOKS  DUPLICATES\nwealth-consent  4         2\n"),
        "{out}"
    );
}

#[actix_rt::test]
async fn the_receiver_misbehaves_exactly_as_requested() {
    let four_bodies = ["{}", "1", "not JSON", "{}"];
    assert_eq!(listen_to(&["--answer", "410"], &four_bodies).await.0, [Some(410); 4]);
    assert_eq!(listen_to(&["--drop"], &four_bodies[..2]).await.0, [None, None]);
    assert_eq!(listen_to(&["--redirect", "http://elsewhere.example/"], &four_bodies[..1]).await.0, [Some(302)]);
    assert_eq!(listen_to(&["--fail-every", "2"], &four_bodies).await.0, [Some(200), Some(500), Some(200), Some(500)]);
    let (statuses, out) = listen_to(&["--drop", "--fail-every", "3"], &four_bodies).await;
    assert_eq!(statuses, [Some(200), Some(200), None, Some(200)]);
    assert!(
        out.contains("unknown  8 bytes, hung up on\n    no deduplication key in it\n    no JSON: not JSON"),
        "{out}"
    );
    let slow = parse(&["--slow", "0.05"]).unwrap().faults.behaviour_for(1);
    assert_eq!(slow, Behaviour::SlowAnswer(Duration::from_millis(50)));
    for wrong in [
        &["--answer", "99"][..],
        &["--slow", "-1"],
        &["--redirect", "a b"],
        &["--fail-every", "0"],
        &["--hang", "--drop"],
    ] {
        assert!(parse(wrong).is_err(), "{wrong:?}");
    }
}

#[actix_rt::test]
async fn json_output_has_one_line_per_webhook_and_files_have_the_exact_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let bodies = directory.path().join("bodies");
    fs::create_dir(&bodies).unwrap();
    let body = r#"{ "data": {"transactionId": "t-1", "docs": []} }"#;
    let (_, out) = listen_to(&["--json", "--out", bodies.to_str().unwrap()], &[body, body]).await;
    let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        (&lines[0]["kind"], &lines[0]["key"], &lines[0]["duplicate_of"]),
        (&json!("doclocker"), &json!("data.transactionId=t-1"), &Value::Null)
    );
    assert_eq!(
        (&lines[1]["duplicate_of"], &lines[1]["same_body"], &lines[1]["body"]["data"]["docs"]),
        (&json!(1), &json!(true), &json!([]))
    );
    assert_eq!(
        (&lines[2]["event"], &lines[2]["webhooks"], &lines[2]["duplicates"]),
        (&json!("summary"), &json!(2), &json!(1))
    );
    for line in &lines[..2] {
        assert_eq!(fs::read_to_string(line["file"].as_str().unwrap()).unwrap(), body);
    }
}

#[actix_rt::test]
async fn the_error_for_a_port_in_use_suggests_another_port() {
    let occupied = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let error = open_receiver(occupied.local_addr().unwrap()).await.map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("is in use") && error.contains("--port"), "{error}");
}
