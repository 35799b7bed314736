//! Tests of the operators' console: requests of a browser, on a real store.

mod records;
mod sessions;
mod tree;
mod writes;

use std::cell::RefCell;
use std::time::Duration;

use actix_web::body::MessageBody;
use actix_web::dev::{Service, ServiceResponse};
use actix_web::http::header::{COOKIE, LOCATION, ORIGIN, SET_COOKIE};
use actix_web::middleware::from_fn;
use actix_web::test::{TestRequest, init_service, read_body};
use actix_web::{App, Error};
use sakshi_console::{Console, STREAMS_MAX};
use sakshi_operator::InternalDeps;
use sakshi_service::drain::Drain;
use sakshi_supervision::FairSlots;
use sakshi_web::edge::edge;
use serde_json::json;
use url::form_urlencoded;

use crate::operator::call;
use crate::store_fixture::{StoreFixture, TOKEN};

const HOST: &str = "console.example:8081";
const CONSOLE_ORIGIN: &str = "http://console.example:8081";

/// Returns the configuration of the console.
fn console() -> Console {
    Console {
        is_https: false,
        sandbox: false,
        low_credits: 100,
        transaction_retention: Duration::from_secs(25 * 3_600),
        installation: "https://v.example".into(),
        provider: None,
        drain: Drain::default(),
        streams: FairSlots::new(STREAMS_MAX),
    }
}

/// Returns the internal listener with the console.
async fn listener(
    deps: InternalDeps,
) -> impl Service<actix_http::Request, Response = ServiceResponse<impl MessageBody>, Error = Error> {
    let configure = move |config: &mut actix_web::web::ServiceConfig| {
        sakshi_operator::configure(config, deps);
        sakshi_console::configure(config, console());
    };
    init_service(App::new().wrap(from_fn(edge)).configure(configure)).await
}

/// A browser that keeps the session's cookie.
struct Browser<'a, S> {
    service: &'a S,
    cookie: RefCell<Option<String>>,
}

/// A response to a browser.
#[derive(Debug)]
struct Answer {
    status: u16,
    location: String,
    cookie: Option<String>,
    headers: Vec<(String, String)>,
    html: String,
}

impl<'a, S, B> Browser<'a, S>
where
    S: Service<actix_http::Request, Response = ServiceResponse<B>, Error = Error>,
    B: MessageBody,
{
    fn new(service: &'a S) -> Self {
        Self { service, cookie: RefCell::new(None) }
    }

    /// Returns a browser signed in with the token of the settings.
    async fn signed_in(service: &'a S) -> Self {
        Self::signed_in_with(service, TOKEN).await
    }

    /// Returns a browser signed in with this token.
    async fn signed_in_with(service: &'a S, token: &str) -> Self {
        let browser = Self::new(service);
        let answer = browser.post("/console/sign-in", &[("token", token)]).await;
        assert_eq!((answer.status, answer.location.as_str()), (303, "/console"), "{}", answer.html);
        browser
    }

    /// Adds an operator with this role; returns a browser signed in as them, and the operator's id.
    async fn with_role(service: &'a S, role: &str) -> (Self, String) {
        let (_, added) = call_api(
            service,
            "POST",
            "/admin/v1/operators",
            Some(json!({"name": format!("Asha {role}"), "role": role})),
        )
        .await;
        let browser = Self::signed_in_with(service, added["token"].as_str().unwrap()).await;
        (browser, added["operator_id"].as_str().unwrap().to_owned())
    }

    /// Sends a request with the session's cookie; keeps a cookie that the response sets.
    async fn call(&self, request: TestRequest) -> Answer {
        let request = request.insert_header(("accept", "text/html,*/*;q=0.8")).insert_header(("host", HOST));
        let cookie = self.cookie.borrow().clone();
        let request = cookie.iter().fold(request, |request, cookie| request.insert_header((COOKIE, cookie.as_str())));
        let response = self.service.call(request.to_request()).await;
        let response = response.unwrap_or_else(|error| panic!("{error}"));
        let header = |name| response.headers().get(&name).map(|value| value.to_str().unwrap().to_owned());
        let headers = response
            .headers()
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect();
        let (status, location, cookie) =
            (response.status().as_u16(), header(LOCATION).unwrap_or_default(), header(SET_COOKIE));
        if let Some(cookie) = &cookie {
            *self.cookie.borrow_mut() = cookie.split(';').next().map(str::to_owned);
        }
        let html = String::from_utf8(read_body(response).await.to_vec()).unwrap();
        Answer { status, location, cookie, headers, html }
    }

    async fn get(&self, path: &str) -> Answer {
        self.call(TestRequest::get().uri(path)).await
    }

    /// Returns the text of a page, which must exist.
    async fn page(&self, path: &str) -> String {
        let answer = self.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.html);
        answer.html
    }

    /// Sends a form from a page of this origin.
    async fn post_from(&self, origin: &str, path: &str, pairs: &[(&str, &str)]) -> Answer {
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        let request = TestRequest::post().uri(path).insert_header((ORIGIN, origin));
        self.call(request.insert_header(("content-type", "application/x-www-form-urlencoded")).set_payload(body)).await
    }

    /// Sends a form from a page of the console.
    async fn post(&self, path: &str, pairs: &[(&str, &str)]) -> Answer {
        self.post_from(CONSOLE_ORIGIN, path, pairs).await
    }

    /// Returns the token in the forms of this session.
    async fn csrf_token(&self) -> String {
        hidden_field(&self.page("/console").await, "form_word")
    }

    /// Sends a form with the token of this session.
    async fn send(&self, path: &str, pairs: &[(&str, &str)]) -> Answer {
        let token = self.csrf_token().await;
        let pairs: Vec<_> = pairs.iter().copied().chain([("form_word", token.as_str())]).collect();
        self.post(path, &pairs).await
    }
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn redirects_to_sign_in(&self) -> bool {
        self.status == 303 && self.location.starts_with("/console/sign-in")
    }
}

/// Returns the value of a hidden field.
fn hidden_field(html: &str, name: &str) -> String {
    let (_, rest) = html.split_once(&format!("name=\"{name}\" value=\"")).unwrap_or_else(|| panic!("{name}: {html}"));
    rest.split('"').next().unwrap().to_owned()
}

/// Calls the API with the token of the settings.
async fn call_api<S, B>(
    service: &S,
    method: &str,
    uri: &str,
    body: Option<serde_json::Value>,
) -> (u16, serde_json::Value)
where
    S: Service<actix_http::Request, Response = ServiceResponse<B>, Error = Error>,
    B: MessageBody,
{
    call(service, method, uri, body).await
}

/// Returns the entries of the audit log.
async fn audit_log(fixture: &StoreFixture) -> Vec<serde_json::Value> {
    let entries = fixture.store.audit_log(0, 1_000).await.unwrap();
    entries.iter().map(|record| serde_json::from_str(&record.entry).unwrap()).collect()
}
