//! Headers of limits, conditional changes, the list of transactions, and the status.

use std::time::Duration;

use reqwest::header::{ETAG, HeaderMap};
use reqwest::{Method, Response};
use sakshi_domain::clock::{Clock as _, SystemClock};
use sakshi_kit::ports::free_address;
use serde_json::{Value, json};

use crate::in_process::InProcessNode;

const EVENTS: &str = "/api/v1/nationalid-ovse/events";
const TRANSACTIONS: &str = "/api/v1/nationalid-ovse/transactions";

fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).map_or("", |value| value.to_str().unwrap())
}

#[actix_rt::test]
async fn responses_show_the_remaining_limit_and_a_429_names_its_limit() {
    let settings = [("limits.init_per_second_per_app", "3"), ("limits.polls_per_second_per_app", "40")];
    let node = InProcessNode::start_with(&settings).await;
    let init = async || {
        let request = node.with_credentials(node.http.post(node.url("/api/v1/nationalid-ovse/init")));
        request.json(&json!({ "claims": ["name"], "channel": "qr" })).send().await.unwrap()
    };
    let first = init().await;
    assert_eq!(header_text(first.headers(), "ratelimit-policy"), "\"init\";q=3;w=1");
    assert!(header_text(first.headers(), "ratelimit").starts_with("\"init\";r=2;t="), "{:?}", first.headers());
    let refused = loop {
        let next = init().await;
        if next.status() == 429 {
            break next;
        }
    };
    assert!(header_text(refused.headers(), "ratelimit").starts_with("\"init\";r=0;t="), "{:?}", refused.headers());
    assert!(!header_text(refused.headers(), "retry-after").is_empty());
    let body: Value = refused.json().await.unwrap();
    assert!(body["code"] == "rate_limited" && body["message"].as_str().unwrap().contains("`init`"), "{body}");
    let polled = node.with_credentials(node.http.get(node.url(TRANSACTIONS))).send().await.unwrap();
    assert!(header_text(polled.headers(), "ratelimit-policy") == "\"polls\";q=40;w=1", "{:?}", polled.headers());
    for list in [EVENTS.to_owned(), "/api/v1/credits/statement".to_owned()] {
        let listed = node.with_credentials(node.http.get(node.url(&list))).send().await.unwrap();
        assert_eq!(header_text(listed.headers(), "ratelimit-policy"), "\"polls\";q=40;w=1", "{list}");
    }
    let unlimited = node.with_credentials(node.http.get(node.url("/api/v1/credits"))).send().await.unwrap();
    assert!(!unlimited.headers().contains_key("ratelimit"), "an operation without a limit has no such header");
    node.stop().await;
}

#[actix_rt::test]
async fn an_event_change_with_a_stale_etag_is_refused() {
    let node = InProcessNode::start().await;
    let end = SystemClock.now() + Duration::from_secs(3_600);
    let terms = json!({ "name": "Open day", "claims": ["name"], "max_guests": 5, "expires_at": end });
    let (_, created) = node.post(EVENTS, &terms).await;
    let path = format!("{EVENTS}/{}", created["event_id"].as_str().unwrap());
    let send = async |method: Method, body: Value, tag: Option<&str>| -> Response {
        let request = node.with_credentials(node.http.request(method, node.url(&path)));
        let request = if body.is_null() { request } else { request.json(&body) };
        tag.into_iter().fold(request, |request, tag| request.header("if-match", tag)).send().await.unwrap()
    };
    let tag = |response: &Response| header_text(response.headers(), ETAG.as_str()).to_owned();
    let old_tag = tag(&send(Method::GET, Value::Null, None).await);
    assert!(old_tag.len() == 26 && old_tag.starts_with('"'), "{old_tag}");
    // A guest does not change the event.
    assert_eq!(
        node.http
            .get(node.url(&format!("/e/{}", created["event_id"].as_str().unwrap())))
            .header("accept", "application/jwt")
            .send()
            .await
            .unwrap()
            .status(),
        200
    );
    assert_eq!(tag(&send(Method::GET, Value::Null, None).await), old_tag);

    let renamed = send(Method::PATCH, json!({ "name": "Day of open doors" }), Some(&old_tag)).await;
    assert_eq!(renamed.status(), 200);
    let new_tag = tag(&renamed);
    assert_ne!(new_tag, old_tag);
    let stale = send(Method::PATCH, json!({ "max_guests": 9 }), Some(&old_tag)).await;
    assert_eq!(stale.status(), 412);
    assert_eq!(stale.json::<Value>().await.unwrap()["code"], "event_changed");
    let accepted_tags = [format!("\"other\", {new_tag}"), "*".to_owned()];
    for (tag, status) in
        [(&*("W/".to_owned() + &new_tag), 412), ("no tag", 400), (&*accepted_tags[0], 200), (&*accepted_tags[1], 200)]
    {
        let before =
            send(Method::GET, Value::Null, None).await.json::<Value>().await.unwrap()["max_guests"].as_u64().unwrap();
        assert_eq!(send(Method::PATCH, json!({ "max_guests": before + 1 }), Some(tag)).await.status(), status, "{tag}");
        let after =
            send(Method::GET, Value::Null, None).await.json::<Value>().await.unwrap()["max_guests"].as_u64().unwrap();
        assert_eq!(after, before + u64::from(status == 200), "{tag}");
    }
    assert_eq!(
        send(Method::PATCH, json!({ "max_guests": 6 }), None).await.status(),
        200,
        "a change without a tag overwrites"
    );
    node.stop().await;
}

#[actix_rt::test]
async fn an_app_lists_its_transactions_by_reference_status_and_time() {
    let node = InProcessNode::start().await;
    let mut opened = Vec::new();
    for number in 0..5 {
        let terms =
            json!({ "claims": ["name"], "channel": "web", "client_reference_id": format!("order-{}", number / 2) });
        let (status, answer) = node.post("/api/v1/nationalid-ovse/init", &terms).await;
        assert_eq!(status, 200, "{answer}");
        opened.push(answer);
    }
    let answer = json!({ "intent": opened[1]["intentJwt"], "resident": "asha", "action": "approve" });
    assert_eq!(node.post("/sandbox/app/answer", &answer).await.0, 200);
    let declined = json!({ "intent": opened[2]["intentJwt"], "resident": "asha", "action": "decline" });
    assert_eq!(node.post("/sandbox/app/answer", &declined).await.0, 200);
    let list = async |query: &str| {
        let (mut path, mut rows) = (Some(format!("{TRANSACTIONS}?{query}")), Vec::new());
        while let Some(next) = path {
            let (status, page) = node.get(&next).await;
            assert_eq!(status, 200, "{next}: {page}");
            rows.extend(page["transactions"].as_array().unwrap().clone());
            path = page["next"].as_str().map(str::to_owned);
        }
        rows
    };
    let numbers = |rows: &[Value]| -> Vec<usize> {
        rows.iter().map(|row| opened.iter().position(|opened| opened["txnId"] == row["txn_id"]).unwrap()).collect()
    };
    for (query, expected) in [
        ("", vec![4, 3, 2, 1, 0]),
        ("limit=2", vec![4, 3, 2, 1, 0]),
        ("client_reference_id=order-1", vec![3, 2]),
        ("client_reference_id=order", vec![]),
        ("status=passed", vec![1]),
        ("status=failed&limit=1", vec![2]),
        ("status=pending&client_reference_id=order-0", vec![0]),
        ("status=expired", vec![]),
    ] {
        assert_eq!(numbers(&list(query).await), expected, "{query}");
    }
    let all = list("").await;
    let row = all.iter().find(|row| row["status"] == "passed").unwrap();
    assert_eq!((&row["channel"], &row["client_reference_id"]), (&json!("web"), &json!("order-0")), "{row}");
    let opened_at = |number: usize| all[4 - number]["opened_at"].as_str().unwrap().to_owned();
    let in_range = list(&format!("from={}&to={}&limit=1", opened_at(1), opened_at(4))).await;
    let times: Vec<&str> = in_range.iter().map(|row| row["opened_at"].as_str().unwrap()).collect();
    let expected: Vec<&str> = all
        .iter()
        .map(|row| row["opened_at"].as_str().unwrap())
        .filter(|time| *time >= &*opened_at(1) && *time < &*opened_at(4))
        .collect();
    assert_eq!(times, expected);

    let (_, statement) = node.get(&format!("/api/v1/credits/statement?from={}&page_size=2", opened_at(1))).await;
    let expected_total = all.iter().filter(|row| row["opened_at"].as_str().unwrap() >= &*opened_at(1)).count();
    assert_eq!(statement["total"], expected_total, "{statement}");
    assert!(statement["next"].as_str().unwrap().contains("from="), "{statement}");
    for (query, field) in [
        ("client_reference_id=", "client_reference_id"),
        ("status=waiting", "status"),
        ("from=yesterday", "from"),
        ("limit=0", "limit"),
        ("page=1", "page"),
    ] {
        let (status, refused) = node.get(&format!("{TRANSACTIONS}?{query}")).await;
        assert_eq!((status, &refused["errors"][0]["field"]), (400, &json!(field)), "{query}");
    }
    node.stop().await;
}

#[actix_rt::test]
async fn the_status_separates_authority_upstreams_and_own_webhooks() {
    let node = InProcessNode::start().await;
    let (_, inbox) = node.post("/sandbox/inboxes", &Value::Null).await;
    let unreachable_url = format!("http://{}/hook", free_address());
    for (action, hook) in [
        ("approve", inbox["url"].as_str().unwrap()),
        ("service_down", inbox["url"].as_str().unwrap()),
        ("http_error", &unreachable_url),
    ] {
        let hint = format!("sandbox:{action}");
        let terms = json!({ "claims": ["name"], "channel": "qr", "webhook_url": hook, "name_hint": hint });
        let (_, opened) = node.post("/api/v1/nationalid-ovse/init", &terms).await;
        let txn = opened["txnId"].as_str().unwrap();
        node.get(&format!("/api/v1/nationalid-ovse/result/{txn}?wait=20")).await;
    }
    let ifsc = json!({ "ifsc": "EXMP0001234" });
    assert_eq!(node.post("/api/v1/ifsc/verify", &ifsc).await.0, 200);
    let status = loop {
        let (code, status) = node.get("/api/v1/status").await;
        assert_eq!(code, 200, "{status}");
        if status["webhooks"]["waiting"] == 0 && status["webhooks"]["failed"] == 1 {
            break status;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(status["webhooks"], json!({ "delivered": 2, "failed": 1, "waiting": 0 }));
    let authority = &status["authority"];
    assert_eq!(
        [&authority["answers"], &authority["service_down"], &authority["http_errors"]],
        [3, 1, 1],
        "{authority}"
    );
    assert!(authority["last_answer_at"].is_string());
    let upstreams = status["upstreams"].as_array().unwrap();
    assert!(upstreams.contains(&json!({ "kind": "ifsc", "answered": 1, "failed": 0 })), "{upstreams:?}");
    assert_eq!(node.get_unsigned("/api/v1/status").await.0, 401);
    node.stop().await;
}
