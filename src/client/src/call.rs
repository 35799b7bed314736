//! One operation of an API as a value, and the pages of lists.

use std::fmt::Display;
use std::marker::PhantomData;
use std::time::Duration;

use reqwest::Method;
use serde::Serialize;

/// One operation, whose answer is a `T`.
#[derive(Debug)]
#[must_use = "a call does nothing until it is sent"]
pub struct Call<T> {
    /// The method.
    pub method: Method,
    /// Path and query.
    pub path: String,
    pub(crate) body: Option<serde_json::Result<Vec<u8>>>,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) timeout: Option<Duration>,
    answer: PhantomData<fn() -> T>,
}

impl<T> Call<T> {
    /// Without a body.
    pub fn new(method: Method, path: impl Into<String>) -> Self {
        Self { method, path: path.into(), body: None, idempotency_key: None, timeout: None, answer: PhantomData }
    }

    /// A GET.
    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    /// A POST with a JSON body.
    pub fn post(path: impl Into<String>, body: &impl Serialize) -> Self {
        Self::new(Method::POST, path).body(body)
    }

    /// The same operation with a JSON body.
    pub fn body(self, body: &impl Serialize) -> Self {
        Self { body: Some(serde_json::to_vec(body)), ..self }
    }

    /// The same operation at most once for this key.
    pub fn once(self, key: impl Into<String>) -> Self {
        Self { idempotency_key: Some(key.into()), ..self }
    }

    /// The same operation, for which the caller waits so long and not as long as the client does for others.
    pub fn within(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// The same operation with its answer read as another type, such as [`serde_json::Value`].
    pub fn read_as<U>(self) -> Call<U> {
        let Self { method, path, body, idempotency_key, timeout, .. } = self;
        Call { method, path, body, idempotency_key, timeout, answer: PhantomData }
    }
}

/// A page of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Its number, from 1.
    pub page: u32,
    /// Entries of a page.
    pub page_size: u32,
}

impl Page {
    /// The largest pages that there are, from the first.
    pub fn all() -> impl Iterator<Item = Self> {
        (1..).map(|page| Self { page, page_size: 100 })
    }
}

impl Display for Page {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "?page={}&page_size={}", self.page, self.page_size)
    }
}

/// Text as one segment of a path, whatever it contains (RFC 3986 §3.3).
///
/// Parsers of URLs remove the segments `.` and `..`, even percent-encoded (URL Standard, "double-dot URL path segment"). So the percent
/// signs of those are encoded too: the service finds nothing under that name, instead of something else under the shortened path.
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
