//! Tests of the operators' console: requests of a browser, on a real store.

mod records;
mod sessions;
mod tree;
mod writes;

use std::cell::RefCell;
use std::time::Duration;

use actix_web::body::MessageBody;
use actix_web::dev::{Service, ServiceResponse};
use actix_web::http::header::COOKIE;
use actix_web::middleware::from_fn;
use actix_web::test::{TestRequest, init_service};
use actix_web::{App, Error};
use sakshi_console::{Console, STREAMS_MAX};
use sakshi_operator::InternalDeps;
use sakshi_service::drain::Drain;
use sakshi_supervision::FairSlots;
use sakshi_web::edge::edge;
use serde_json::json;

use crate::browser::{Answer, form_request};
use crate::operator::call as call_api;
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
        let answer = Answer::receive(response.unwrap_or_else(|error| panic!("{error}"))).await;
        if let Some(cookie) = &answer.cookie {
            *self.cookie.borrow_mut() = cookie.split(';').next().map(str::to_owned);
        }
        answer
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
        self.call(form_request(origin, path, pairs)).await
    }

    /// Sends a form from a page of the console.
    async fn post(&self, path: &str, pairs: &[(&str, &str)]) -> Answer {
        self.post_from(CONSOLE_ORIGIN, path, pairs).await
    }

    /// Returns the token in the forms of this session.
    async fn csrf_token(&self) -> String {
        let page = self.get("/console").await;
        assert_eq!(page.status, 200, "{}", page.html);
        page.hidden_field("form_word")
    }

    /// Sends a form with the token of this session.
    async fn send(&self, path: &str, pairs: &[(&str, &str)]) -> Answer {
        let token = self.csrf_token().await;
        let pairs: Vec<_> = pairs.iter().copied().chain([("form_word", token.as_str())]).collect();
        self.post(path, &pairs).await
    }
}

/// Returns the entries of the audit log.
async fn audit_log(fixture: &StoreFixture) -> Vec<serde_json::Value> {
    let entries = fixture.store.audit_log(0, 1_000).await.unwrap();
    entries.iter().map(|record| serde_json::from_str(&record.entry).unwrap()).collect()
}
