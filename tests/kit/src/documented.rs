//! Checks that every response status seen in a test is listed for its operation in `/openapi.json`.

use reqwest::{Client, Method, Url};
use serde_json::Value;
use tokio::sync::OnceCell;

/// The document of the first node asked in this process; it is the same for all.
static DOCUMENT: OnceCell<Value> = OnceCell::const_new();

/// Checks the status of a response against the document.
pub(crate) async fn assert_listed(http: &Client, method: &Method, url: &Url, status: u16) {
    if !url.path().starts_with("/api/v1/") {
        return;
    }
    let document = DOCUMENT.get_or_try_init(|| async {
        let mut address = url.clone();
        address.set_path("/openapi.json");
        address.set_query(None);
        http.get(address).send().await?.error_for_status()?.json::<Value>().await
    });
    // A node that is shutting down does not answer.
    let Ok(document) = document.await else { return };
    let fits = |pattern: &str| {
        let (parts, known) = (url.path().split('/'), pattern.split('/'));
        parts.clone().count() == known.clone().count()
            && parts.zip(known).all(|(part, known)| part == known || known.starts_with('{'))
    };
    let item = document["paths"].as_object().and_then(|paths| paths.iter().find(|(pattern, _)| fits(pattern)));
    // For an unlisted path or method, the service sends its default response, which the document does not list.
    let Some(operation) = item.and_then(|(_, item)| item.get(method.as_str().to_lowercase())) else { return };
    let path = url.path();
    assert!(
        operation["responses"].get(status.to_string()).is_some(),
        "{method} {path} answers {status}, which the document does not list"
    );
}
