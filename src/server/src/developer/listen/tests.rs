//! `listen` against a real socket: its output, its responses, and its reports of repeats.

use clap::Parser;
use reqwest::Client;
use serde_json::json;

use crate::developer::listen::*;

#[derive(Parser)]
struct Typed {
    #[command(flatten)]
    listen: Listen,
}

fn typed(words: &[&str]) -> Result<Listen, clap::Error> {
    Typed::try_parse_from([&["listen", "--port", "0"], words].concat()).map(|typed| typed.listen)
}

/// Sends bodies one after the other. Returns the statuses and the output.
async fn heard(words: &[&str], bodies: &[&str]) -> (Vec<Option<u16>>, String) {
    let options = typed(words).unwrap();
    let (receiver, arrivals) = open(SocketAddr::new(options.addr, options.port)).await.unwrap();
    let (url, mut out) = (receiver.url("/hook"), Vec::new());
    let mut log = Log {
        options: &options,
        forwarder: options.forward.clone().map(Forwarder::new).transpose().unwrap(),
        seen: HashMap::new(),
        tally: Tally::default(),
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
        ended = log.take_all(arrivals, &mut out) => panic!("it ended: {ended:?}"),
        statuses = send => statuses,
    };
    log.tally.show(options.json, &mut out).unwrap();
    (statuses, String::from_utf8(out).unwrap())
}

fn consent(status: &str, session: &str) -> String {
    json!({ "consentHandle": "h", "status": status, "consentId": "c-1", "accounts": [], "userSessionId": session })
        .to_string()
}

#[actix_rt::test]
async fn a_second_webhook_under_one_key_is_a_loud_duplicate_and_another_status_is_none() {
    let bodies =
        [consent("Accepted", "s"), consent("Revoked", "s"), consent("Accepted", "s"), consent("Accepted", "t")];
    let (statuses, out) = heard(&[], &bodies.each_ref().map(String::as_str)).await;
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
async fn it_misbehaves_as_told_and_only_when_told() {
    let four = ["{}", "1", "not JSON", "{}"];
    assert_eq!(heard(&["--answer", "410"], &four).await.0, [Some(410); 4]);
    assert_eq!(heard(&["--drop"], &four[..2]).await.0, [None, None]);
    assert_eq!(heard(&["--redirect", "http://elsewhere.example/"], &four[..1]).await.0, [Some(302)]);
    assert_eq!(heard(&["--fail-every", "2"], &four).await.0, [Some(200), Some(500), Some(200), Some(500)]);
    let (statuses, out) = heard(&["--drop", "--fail-every", "3"], &four).await;
    assert_eq!(statuses, [Some(200), Some(200), None, Some(200)]);
    assert!(
        out.contains("unknown  8 bytes, hung up on\n    no deduplication key in it\n    no JSON: not JSON"),
        "{out}"
    );
    let slow = typed(&["--slow", "0.05"]).unwrap().manner.treat(1);
    assert_eq!(slow, Behaviour::SlowAnswer(Duration::from_millis(50)));
    for wrong in [
        &["--answer", "99"][..],
        &["--slow", "-1"],
        &["--redirect", "a b"],
        &["--fail-every", "0"],
        &["--hang", "--drop"],
    ] {
        assert!(typed(wrong).is_err(), "{wrong:?}");
    }
}

#[actix_rt::test]
async fn machines_get_a_line_for_each_and_files_hold_the_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let kept = directory.path().join("kept");
    fs::create_dir(&kept).unwrap();
    let body = r#"{ "data": {"transactionId": "t-1", "docs": []} }"#;
    let (_, out) = heard(&["--json", "--out", kept.to_str().unwrap()], &[body, body]).await;
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
async fn a_port_that_is_taken_is_told_with_a_way_out() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let refused = open(taken.local_addr().unwrap()).await.map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("is taken") && refused.contains("--port"), "{refused}");
}
