//! One operation of an API as a value, and the pages of lists.

use std::fmt::Display;
use std::marker::PhantomData;
use std::time::Duration;

use reqwest::Method;
use serde::Serialize;

/// One operation of an API, not yet sent; the service's response has type `T`.
#[derive(Debug)]
#[must_use = "a call does nothing until it is sent"]
pub struct Call<T> {
    /// The HTTP method.
    pub method: Method,
    /// The path and the query.
    pub path: String,
    pub(crate) body: Option<serde_json::Result<Vec<u8>>>,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) timeout: Option<Duration>,
    response: PhantomData<fn() -> T>,
}

impl<T> Call<T> {
    /// Builds an operation without a body.
    pub fn new(method: Method, path: impl Into<String>) -> Self {
        Self { method, path: path.into(), body: None, idempotency_key: None, timeout: None, response: PhantomData }
    }

    /// Builds a GET request.
    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    /// Builds a POST request with a JSON body.
    pub fn post(path: impl Into<String>, body: &impl Serialize) -> Self {
        Self::new(Method::POST, path).body(body)
    }

    /// Adds a JSON body.
    pub fn body(self, body: &impl Serialize) -> Self {
        Self { body: Some(serde_json::to_vec(body)), ..self }
    }

    /// Adds an idempotency key, under which the service does the operation at most once.
    pub fn once(self, key: impl Into<String>) -> Self {
        Self { idempotency_key: Some(key.into()), ..self }
    }

    /// Sets a timeout for this call only.
    pub fn within(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// Reads the response as another type, such as [`serde_json::Value`].
    pub fn read_as<U>(self) -> Call<U> {
        let Self { method, path, body, idempotency_key, timeout, .. } = self;
        Call { method, path, body, idempotency_key, timeout, response: PhantomData }
    }
}

/// A page of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// The number of the page, from 1.
    pub page: u32,
    /// The number of entries per page.
    pub page_size: u32,
}

impl Page {
    /// Returns an endless iterator over pages of the largest size, from the first page.
    pub fn all() -> impl Iterator<Item = Self> {
        (1..).map(|page| Self { page, page_size: 100 })
    }
}

impl Display for Page {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "?page={}&page_size={}", self.page, self.page_size)
    }
}

/// Encodes any text as one segment of a path (RFC 3986 §3.3).
///
/// Parsers of URLs remove the segments `.` and `..`, even percent-encoded (URL Standard, "double-dot URL path
/// segment"). Their percent signs are encoded too, so that the service responds with 404 instead of reading a shortened
/// path.
#[must_use]
pub fn segment(text: &str) -> String {
    match text {
        "." | ".." => text.replace('.', "%252E"),
        _ => url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20"),
    }
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;

    #[test]
    fn any_text_is_one_segment_of_a_path() {
        for (text, encoded) in [
            ("app_1-2.3~", "app_1-2.3%7E"),
            ("a b", "a%20b"),
            ("a+b", "a%2Bb"),
            ("a/b?c#d%20", "a%2Fb%3Fc%23d%2520"),
            ("\u{fc}\n", "%C3%BC%0A"),
            (".", "%252E"),
            ("..", "%252E%252E"),
            ("%2e%2E", "%252e%252E"),
            ("...", "..."),
        ] {
            assert_eq!(segment(text), encoded);
            let url = Url::parse(&format!("http://a.example/before/{}/after", segment(text))).unwrap();
            assert_eq!(url.path_segments().unwrap().collect::<Vec<_>>(), ["before", encoded, "after"], "{text}");
        }
    }
}
