//! Tests of the portal: requests of a browser, on a real store and a real tree of actors.

mod checks;
mod docs;
mod errors;
mod forms;
mod keys;
mod pages;
mod roles;
mod sessions;
mod standing;
mod team;
mod users;
mod work;

use crate::browser::{Answer, form_request};
use crate::pages_fixture::PagesFixture;
use actix_web::http::header::COOKIE;
use actix_web::test::TestRequest;

const PORTAL_ORIGIN: &str = "https://v.example";

/// A browser that keeps the cookie of the session and the cookie that marks known browsers.
struct Browser<'a> {
    fixture: &'a PagesFixture,
    cookie: Option<String>,
    known_browser: Option<String>,
}

impl<'a> Browser<'a> {
    fn new(fixture: &'a PagesFixture) -> Self {
        Self { fixture, cookie: None, known_browser: None }
    }

    /// Returns a browser signed in as the first client.
    async fn signed_in(fixture: &'a PagesFixture) -> Self {
        let mut browser = Self::new(fixture);
        let answer = browser.sign_in(fixture.first.key.reveal(), fixture.first.app.as_str()).await;
        assert_eq!((answer.status, answer.location.as_str()), (303, "/portal"), "{}", answer.html);
        browser
    }

    /// Signs in with a key; keeps the cookie of the session.
    async fn sign_in(&mut self, key: &str, app: &str) -> Answer {
        let answer = self.post("/portal/sign-in", &[("key", key), ("app_id", app)]).await;
        if let Some(cookie) = &answer.cookie {
            self.cookie = cookie.split(';').next().map(str::to_owned);
        }
        answer
    }

    /// Sends a request with the cookies of the browser.
    async fn call(&self, request: TestRequest) -> Answer {
        let request = request.insert_header(("accept", "text/html,*/*;q=0.8"));
        let cookies: Vec<&str> =
            [&self.cookie, &self.known_browser].into_iter().flatten().map(String::as_str).collect();
        let request = if cookies.is_empty() { request } else { request.insert_header((COOKIE, cookies.join("; "))) };
        Answer::receive(self.fixture.call(request).await).await
    }

    async fn get(&self, path: &str) -> Answer {
        self.call(TestRequest::get().uri(path)).await
    }

    /// Sends a form unchanged, from a page of this origin.
    async fn post_from(&self, origin: &str, path: &str, pairs: &[(&str, &str)]) -> Answer {
        self.call(form_request(origin, path, pairs)).await
    }

    /// Sends a form unchanged, from a page of the portal.
    async fn post(&self, path: &str, pairs: &[(&str, &str)]) -> Answer {
        self.post_from(PORTAL_ORIGIN, path, pairs).await
    }

    /// Returns the token in the forms of this session.
    async fn csrf_token(&self) -> String {
        self.get("/portal").await.hidden_field("form_word")
    }

    /// Sends a form with the token of this session.
    async fn send(&self, path: &str, pairs: &[(&str, &str)]) -> Answer {
        let token = self.csrf_token().await;
        let pairs: Vec<_> = pairs.iter().copied().chain([("form_word", token.as_str())]).collect();
        self.post(path, &pairs).await
    }

    /// Returns the balance of the first client.
    async fn balance(&self) -> u64 {
        let store = &self.fixture.shared.service.store;
        store.balance(self.fixture.first.client.clone()).await.unwrap().unwrap()
    }
}

impl Answer {
    /// Returns the text of the element with this id, as a browser shows it.
    fn element_text(&self, id: &str) -> String {
        let (_, rest) = self.html.split_once(&format!("id=\"{id}\">")).unwrap_or_else(|| panic!("{id}: {}", self.html));
        let text = rest.split('<').next().unwrap();
        ["&#34;", "&#39;", "&#60;", "&#62;", "&#38;"]
            .iter()
            .zip(["\"", "'", "<", ">", "&"])
            .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
    }
}
