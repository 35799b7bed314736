//! Browser input: headers with cookies, forms, and query strings.

use actix_web::HttpRequest;
use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::test::TestRequest;
use sakshi_domain::limits::{PAGE_MAX, PAGE_SIZE_MAX};
use sakshi_web::query::{Query, parse_page};
use sakshi_web::same_site::is_of_page_at;
use sakshi_wire::ReceivedObject;
use sakshi_wire::events::{CreateEventRequest, PatchEventRequest};
use sakshi_wire::json::Json;

use crate::CANARY;
use crate::bodies::{assert_echoes_nothing, context};

/// Builds a request from lines of `name: value`; invalid headers are skipped. A line that begins with `?` is the query.
fn request(data: &[u8]) -> HttpRequest {
    let mut request = TestRequest::get();
    for line in data.split(|byte| *byte == b'\n').take(40) {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            if let Some(query) = line.strip_prefix(b"?").and_then(|query| std::str::from_utf8(query).ok()) {
                let plain: String = query
                    .chars()
                    .filter(|c| {
                        c.is_ascii_graphic() && !matches!(c, '#' | '<' | '>' | '"' | '\\' | '^' | '`' | '{' | '|' | '}')
                    })
                    .collect();
                request = request.uri(&format!("/e/x?{plain}"));
            }
            continue;
        };
        let name = HeaderName::from_bytes(&line[..colon]);
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            request = request.append_header((name, value));
        }
    }
    request.to_http_request()
}

/// Target: a request's headers, with the cookies of the portal and of pages.
pub(crate) fn headers(data: &[u8]) {
    let request = request(data);
    if let Some((cookie, token)) = sakshi_portal::fuzzing::read_session(&request) {
        let pair = cookie.split(';').next().unwrap();
        let next_request = TestRequest::get().insert_header(("cookie", pair)).to_http_request();
        assert_eq!(sakshi_portal::fuzzing::read_session(&next_request), Some((cookie.clone(), token.clone())));
        assert!(!cookie.contains(&token), "a form shows the session");
    }
    for (txn, value) in sakshi_pages::fuzzing::read_visit_cookies(&request) {
        let next_request =
            TestRequest::get().insert_header(("cookie", format!("sakshi_visit_{txn}={value}"))).to_http_request();
        assert_eq!(sakshi_pages::fuzzing::read_visit_cookies(&next_request), [(txn, value.trim_end().to_owned())]);
    }
    let (address, tag) = sakshi_pages::fuzzing::localise(&request, "/e/x");
    assert!(address == "/e/x" || address == format!("/e/x?lang={tag}"), "the address has another part of the request");
    let (wants_intent, _) = sakshi_pages::fuzzing::wants_intent_and_json(&request);
    let accepts = |word: &str| {
        request
            .headers()
            .get_all("accept")
            .any(|value| value.to_str().is_ok_and(|text| text.to_ascii_lowercase().contains(word)))
    };
    assert!(
        !wants_intent || accepts("application/jwt"),
        "an intent costs a credit, so a client must accept its type by name"
    );
    let _ = sakshi_pages::fuzzing::is_phone(&request);
    let site = request.headers().get("sec-fetch-site").map(|value| value.as_bytes().to_vec());
    let is_same_site = is_of_page_at("https://v.example", false, &request);
    assert!(
        !is_same_site || !site.is_some_and(|site| site == b"cross-site" || site == b"same-site"),
        "a request of another site was accepted"
    );
    let origin = request.headers().get("origin").and_then(|value| value.to_str().ok());
    let is_foreign =
        origin.and_then(|origin| url::Url::parse(origin).ok()).is_some_and(|url| url.host_str() != Some("v.example"));
    assert!(!is_same_site || !is_foreign, "an origin of another host was accepted");
}

/// Target: a form of the portal, also read as terms of an event.
pub(crate) fn forms(data: &[u8]) {
    let sent = sakshi_portal::fuzzing::read_request(data);
    for (name, value) in &sent.0 {
        assert!(name != "once" && !matches!(value, Json::Object(_)));
        assert!(!matches!(value, Json::Text(text) if text.trim() != text || text.is_empty()));
    }
    for invalid in
        [form_errors::<CreateEventRequest>(data), form_errors::<PatchEventRequest>(data)].into_iter().flatten()
    {
        assert_echoes_nothing(&invalid);
        let problems = sakshi_portal::fuzzing::list_problems(data, &invalid);
        assert!(!problems.is_empty());
    }
    let _ = sent;
}

/// Reads a form as a `B`; returns the errors about its fields.
fn form_errors<B: sakshi_wire::Body>(data: &[u8]) -> Option<sakshi_domain::invalid::Invalid> {
    let ReceivedObject(members) = sakshi_portal::fuzzing::read_request(data);
    ReceivedObject(members).into_request::<B>(context()).err()
}

/// Target: a query string.
pub(crate) fn queries(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match parse_page(text) {
        Ok(page) => assert!((1..=PAGE_MAX).contains(&page.page) && (1..=PAGE_SIZE_MAX).contains(&page.page_size)),
        Err(error) => assert!(!error.message().contains(CANARY)),
    }
    let mut query = Query::parse(text);
    assert!(query.number(&["wait"], 0..=30_u64, 7) <= 30);
    assert!(query.text("q").is_none_or(|text| !text.is_empty() && text.trim() == text));
    let _ = query.time("from");
    assert!(query.one_of("order", [("newest", 1), ("oldest", 2)]) <= 2);
    let _ = query.finish();
}
