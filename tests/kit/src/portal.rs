//! A browser at the portal: it keeps one cookie and sends the forms of the pages it has loaded.

use reqwest::header::{CONTENT_TYPE, COOKIE};
use reqwest::{Method, RequestBuilder};
use serde_json::json;
use url::form_urlencoded;

use super::answer::Answer;
use super::backend::{Backend, Opened};
use super::node::{Addresses, TestNode};
use super::secrets::Secrets;

/// HTML entities and their characters. `&` is last, so that nothing is decoded twice.
const ENTITIES: [(&str, &str); 5] = [("&#34;", "\""), ("&#39;", "'"), ("&#60;", "<"), ("&#62;", ">"), ("&#38;", "&")];

/// The field of a form that holds the session's token.
pub const CSRF_FIELD: &str = "form_word";

/// Default fields of a trial.
pub const TRIAL: [(&str, &str); 4] =
    [("claims", "name"), ("claims", "dob"), ("channel", "qr"), ("language", "english")];

/// A browser at the portal.
#[derive(Clone)]
pub struct Browser {
    /// `name=value` of the session's cookie; empty without a session.
    pub cookie: String,
    http: reqwest::Client,
    addresses: Addresses,
    secrets: Secrets,
}

impl Browser {
    /// Returns a browser without a session.
    pub fn at(node: &TestNode) -> Self {
        let TestNode { http, addresses, secrets, .. } = node;
        Self { cookie: String::new(), http: http.clone(), addresses: addresses.clone(), secrets: secrets.clone() }
    }

    /// Returns a browser signed in with the credentials of this backend.
    pub async fn signed_in(node: &TestNode, backend: &Backend) -> Self {
        let mut browser = Self::at(node);
        let answer = browser.sign_in(&backend.key, &backend.app).await;
        assert_eq!((answer.status, answer.header("location")), (303, Some("/portal")), "{}", answer.text);
        browser
    }

    /// Returns the same browser, directed to another node.
    pub fn through(&self, addresses: &Addresses) -> Self {
        Self { addresses: addresses.clone(), ..self.clone() }
    }

    /// Sends the sign-in form and keeps the session's cookie.
    pub async fn sign_in(&mut self, key: &str, app: &str) -> Answer {
        let answer = self.post("/portal/sign-in", &[("key", key), ("app_id", app)]).await;
        if let Some(cookie) = answer.header("set-cookie") {
            cookie.split(';').next().unwrap_or_default().clone_into(&mut self.cookie);
            self.secrets.watch_for(self.cookie.split_once('=').expect("a pair").1);
        }
        answer
    }

    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http
            .request(method, self.addresses.public(path))
            .header("Accept", "text/html")
            .header(COOKIE, &self.cookie)
    }

    pub async fn get(&self, path: &str) -> Answer {
        Answer::receive(self.request(Method::GET, path)).await
    }

    /// Sends these fields without a CSRF token.
    pub async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        Answer::receive(
            self.request(Method::POST, path).header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(body),
        )
        .await
    }

    /// Returns the token in the forms of this session.
    pub async fn csrf_token(&self) -> String {
        let token = hidden_field(&self.get("/portal").await.text, CSRF_FIELD);
        self.secrets.watch_for(&token);
        token
    }

    /// Sends these fields as a page of this session does.
    pub async fn send(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let token = self.csrf_token().await;
        self.post(path, &[fields, &[(CSRF_FIELD, &token)]].concat()).await
    }

    /// Starts a trial and follows it to its page.
    pub async fn trial(&self) -> Trial {
        let answer = self.send("/portal/trial", &TRIAL).await;
        assert_eq!(answer.status, 303, "{}", answer.text);
        let path = answer.header("location").expect("the transaction's page").to_owned();
        let page = self.get(&path).await;
        assert_eq!(page.status, 200, "{}", page.text);
        let txn = path.rsplit('/').next().unwrap_or_default();
        let intent = element_text(&page.text, "intent");
        self.secrets.watch_for(&intent);
        Trial { opened: Opened::read(&json!({"txnId": txn, "intentJwt": intent})), path, page: page.text }
    }

    /// Returns true if a page redirects to the sign-in, as without a session.
    pub async fn is_redirected_to_sign_in(&self, path: &str) -> bool {
        let answer = self.get(path).await;
        answer.status == 303
            && answer.text.is_empty()
            && answer.header("location").is_some_and(|to| to.starts_with("/portal/sign-in"))
    }
}

/// A transaction opened by the trial screen.
pub struct Trial {
    pub opened: Opened,
    pub path: String,
    pub page: String,
}

/// Returns the value of a page's hidden field.
pub fn hidden_field(page: &str, name: &str) -> String {
    between(page, &format!("name=\"{name}\" value=\""), "\"")
}

/// Returns the text of the element with this id, as a browser shows it.
pub fn element_text(page: &str, id: &str) -> String {
    decode_entities(&between(page, &format!("id=\"{id}\">"), "<"))
}

/// Returns the shell commands of a page: the line that sets the credentials, and the other commands with their titles.
pub fn commands(page: &str) -> (String, Vec<(String, String)>) {
    let (_, section) = page.split_once("class=\"card commands\"").expect("commands");
    let command = |part: &str| {
        let (_, text) = part.split_once("<code").and_then(|(_, rest)| rest.split_once('>')).expect("a command");
        (decode_entities(&between(part, "", "<")), decode_entities(&between(text, "", "<")))
    };
    (decode_entities(&between(section, "<code>", "<")), section.split("<summary>").skip(1).map(command).collect())
}

/// Returns the text between the first `before` and the next `after`.
fn between(page: &str, before: &str, after: &str) -> String {
    let (_, rest) = page.split_once(before).unwrap_or_else(|| panic!("{before} is not in {page}"));
    rest.split(after).next().unwrap_or_default().to_owned()
}

fn decode_entities(html: &str) -> String {
    ENTITIES.iter().fold(html.to_owned(), |text, (from, to)| text.replace(from, to))
}
