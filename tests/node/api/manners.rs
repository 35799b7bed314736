//! Good manners of an API: visible limits, no lost updates, and lists for reconciliation.

use std::time::Duration;

use reqwest::header::{ETAG, HeaderMap};
use reqwest::{Method, Response};
use sakshi_domain::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};

use crate::in_process::InProcessNode;

const EVENTS: &str = "/api/v1/nationalid-ovse/events";
const TRANSACTIONS: &str = "/api/v1/nationalid-ovse/transactions";

fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).map_or("", |value| value.to_str().unwrap())
}

#[actix_rt::test]
async fn each_answer_tells_what_is_left_of_its_limits_and_a_429_which_limit_it_was() {
    let more = [("limits.init_per_second_per_app", "3"), ("limits.polls_per_second_per_app", "40")];
    let live = InProcessNode::start_with(&more).await;
    let init = async || {
        let request = live.signed(live.http.post(live.url("/api/v1/nationalid-ovse/init")));
        request.json(&json!({ "claims": ["name"], "channel": "qr" })).send().await.unwrap()
    };
    let first = init().await;
    assert_eq!(text(first.headers(), "ratelimit-policy"), "\"init\";q=3;w=1");
    assert!(text(first.headers(), "ratelimit").starts_with("\"init\";r=2;t="), "{:?}", first.headers());
    let refused = loop {
        let next = init().await;
        if next.status() == 429 {
            break next;
        }
    };
    assert!(text(refused.headers(), "ratelimit").starts_with("\"init\";r=0;t="), "{:?}", refused.headers());
    assert!(!text(refused.headers(), "retry-after").is_empty());
    let body: Value = refused.json().await.unwrap();
    assert!(body["code"] == "rate_limited" && body["message"].as_str().unwrap().contains("`init`"), "{body}");
    let polled = live.signed(live.http.get(live.url(TRANSACTIONS))).send().await.unwrap();
    assert!(text(polled.headers(), "ratelimit-policy") == "\"polls\";q=40;w=1", "{:?}", polled.headers());
    let free = live.signed(live.http.get(live.url("/api/v1/credits"))).send().await.unwrap();
    assert!(!free.headers().contains_key("ratelimit"), "what has no limit says nothing");
    live.stop().await;
}

#[actix_rt::test]
async fn a_change_of_an_event_that_others_have_changed_is_refused_if_it_says_what_it_has_seen() {
    let live = InProcessNode::start().await;
    let end = SystemClock.now() + Duration::from_secs(3_600);
    let terms = json!({ "name": "Open day", "claims": ["name"], "max_guests": 5, "expires_at": end });
    let (_, created) = live.post(EVENTS, &terms).await;
    let path = format!("{EVENTS}/{}", created["event_id"].as_str().unwrap());
    let ask = async |method: Method, body: Value, tag: Option<&str>| -> Response {
        let request = live.signed(live.http.request(method, live.url(&path)));
        let request = if body.is_null() { request } else { request.json(&body) };
        tag.into_iter().fold(request, |request, tag| request.header("if-match", tag)).send().await.unwrap()
    };
    let tag = |response: &Response| text(response.headers(), ETAG.as_str()).to_owned();
    let seen = tag(&ask(Method::GET, Value::Null, None).await);
    assert!(seen.len() == 26 && seen.starts_with('"'), "{seen}");
    // A guest does not change it.
    assert_eq!(
        live.http
            .get(live.url(&format!("/e/{}", created["event_id"].as_str().unwrap())))
            .header("accept", "application/jwt")
            .send()
            .await
            .unwrap()
            .status(),
        200
    );
    assert_eq!(tag(&ask(Method::GET, Value::Null, None).await), seen);

    let renamed = ask(Method::PATCH, json!({ "name": "Day of open doors" }), Some(&seen)).await;
    assert_eq!(renamed.status(), 200);
    let now = tag(&renamed);
    assert_ne!(now, seen);
    let late = ask(Method::PATCH, json!({ "max_guests": 9 }), Some(&seen)).await;
    assert_eq!(late.status(), 412);
    assert_eq!(late.json::<Value>().await.unwrap()["code"], "event_changed");
    let any = [format!("\"other\", {now}"), "*".to_owned()];
    for (tag, status) in [(&*("W/".to_owned() + &now), 412), ("no tag", 400), (&*any[0], 200), (&*any[1], 200)] {
        let before =
            ask(Method::GET, Value::Null, None).await.json::<Value>().await.unwrap()["max_guests"].as_u64().unwrap();
        assert_eq!(ask(Method::PATCH, json!({ "max_guests": before + 1 }), Some(tag)).await.status(), status, "{tag}");
        let after =
            ask(Method::GET, Value::Null, None).await.json::<Value>().await.unwrap()["max_guests"].as_u64().unwrap();
        assert_eq!(after, before + u64::from(status == 200), "{tag}");
    }
    assert_eq!(ask(Method::PATCH, json!({ "max_guests": 6 }), None).await.status(), 200, "who says nothing overwrites");
    live.stop().await;
}

#[actix_rt::test]
async fn an_app_lists_its_transactions_by_reference_status_and_time() {
    let live = InProcessNode::start().await;
    let mut opened = Vec::new();
    for number in 0..5 {
        let terms =
            json!({ "claims": ["name"], "channel": "web", "client_reference_id": format!("order-{}", number / 2) });
        let (status, answer) = live.post("/api/v1/nationalid-ovse/init", &terms).await;
        assert_eq!(status, 200, "{answer}");
        opened.push(answer);
    }
    let answer = json!({ "intent": opened[1]["intentJwt"], "resident": "asha", "action": "approve" });
    assert_eq!(live.post("/sandbox/app/answer", &answer).await.0, 200);
    let declined = json!({ "intent": opened[2]["intentJwt"], "resident": "asha", "action": "decline" });
    assert_eq!(live.post("/sandbox/app/answer", &declined).await.0, 200);
    let listed = async |query: &str| {
        let (mut path, mut found) = (Some(format!("{TRANSACTIONS}?{query}")), Vec::new());
        while let Some(next) = path {
            let (status, page) = live.get(&next).await;
            assert_eq!(status, 200, "{next}: {page}");
            found.extend(page["transactions"].as_array().unwrap().clone());
            path = page["next"].as_str().map(str::to_owned);
        }
        found
    };
    let numbers = |found: &[Value]| -> Vec<usize> {
        found.iter().map(|row| opened.iter().position(|opened| opened["txnId"] == row["txn_id"]).unwrap()).collect()
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
        assert_eq!(numbers(&listed(query).await), expected, "{query}");
    }
    let all = listed("").await;
    let row = all.iter().find(|row| row["status"] == "passed").unwrap();
    assert_eq!((&row["channel"], &row["client_reference_id"]), (&json!("web"), &json!("order-0")), "{row}");
    let at = |number: usize| all[4 - number]["opened_at"].as_str().unwrap().to_owned();
    let within = listed(&format!("from={}&to={}&limit=1", at(1), at(4))).await;
    let times: Vec<&str> = within.iter().map(|row| row["opened_at"].as_str().unwrap()).collect();
    let expected: Vec<&str> = all
        .iter()
        .map(|row| row["opened_at"].as_str().unwrap())
        .filter(|time| *time >= &*at(1) && *time < &*at(4))
        .collect();
    assert_eq!(times, expected);

    let (_, statement) = live.get(&format!("/api/v1/credits/statement?from={}&page_size=2", at(1))).await;
    let from = all.iter().filter(|row| row["opened_at"].as_str().unwrap() >= &*at(1)).count();
    assert_eq!(statement["total"], from, "{statement}");
    assert!(statement["next"].as_str().unwrap().contains("from="), "{statement}");
    for (query, field) in [
        ("client_reference_id=", "client_reference_id"),
        ("status=waiting", "status"),
        ("from=yesterday", "from"),
        ("limit=0", "limit"),
        ("page=1", "page"),
    ] {
        let (status, refused) = live.get(&format!("{TRANSACTIONS}?{query}")).await;
        assert_eq!((status, &refused["errors"][0]["field"]), (400, &json!(field)), "{query}");
    }
    live.stop().await;
}

#[actix_rt::test]
async fn the_status_tells_the_authority_the_upstreams_and_the_apps_own_webhooks_apart() {
    let live = InProcessNode::start().await;
    let (_, inbox) = live.post("/sandbox/inboxes", &Value::Null).await;
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nowhere = format!("http://{}/hook", nobody.local_addr().unwrap());
    drop(nobody);
    for (action, hook) in [
        ("approve", inbox["url"].as_str().unwrap()),
        ("service_down", inbox["url"].as_str().unwrap()),
        ("http_error", &nowhere),
    ] {
        let hint = format!("sandbox:{action}");
        let terms = json!({ "claims": ["name"], "channel": "qr", "webhook_url": hook, "name_hint": hint });
        let (_, opened) = live.post("/api/v1/nationalid-ovse/init", &terms).await;
        let txn = opened["txnId"].as_str().unwrap();
        live.get(&format!("/api/v1/nationalid-ovse/result/{txn}?wait=20")).await;
    }
    let ifsc = json!({ "ifsc": "EXMP0001234" });
    assert_eq!(live.post("/api/v1/ifsc/verify", &ifsc).await.0, 200);
    let status = loop {
        let (code, status) = live.get("/api/v1/status").await;
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
    assert_eq!(live.stranger("/api/v1/status").await.0, 401);
    live.stop().await;
}
