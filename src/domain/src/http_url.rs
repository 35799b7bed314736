//! URLs from a client: for webhooks, and for the redirection of people.
//!
//! This module checks only the text. The outbound crate checks the resolved address when a webhook is sent.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use url::Url;

use crate::limits::URL_CHARS_MAX;

/// Schemes that a deployment accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schemes {
    /// Only `https`.
    HttpsOnly,
    /// `http` too, for tests and sandboxes.
    HttpAndHttps,
}

/// An absolute http(s) URL without credentials or fragment, at most 2,048 characters as sent and as stored.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HttpUrl(Arc<str>);

/// The URL that receives a webhook.
pub type WebhookUrl = HttpUrl;

impl HttpUrl {
    /// Accepts a client's URL.
    ///
    /// # Errors
    /// A message that states the accepted form.
    pub fn parse(text: &str, schemes: Schemes) -> Result<Self, &'static str> {
        Self::parse_url(text, schemes).map(|url| Self(url.as_str().into()))
    }

    /// Accepts a client's URL if its parts satisfy a predicate.
    ///
    /// # Errors
    /// A message that states the accepted form; `refusal` if the predicate is false.
    pub fn parse_if(
        text: &str,
        schemes: Schemes,
        predicate: impl FnOnce(&Url) -> bool,
        refusal: &'static str,
    ) -> Result<Self, &'static str> {
        let url = Self::parse_url(text, schemes)?;
        if predicate(&url) { Ok(Self(url.as_str().into())) } else { Err(refusal) }
    }

    fn parse_url(text: &str, schemes: Schemes) -> Result<Url, &'static str> {
        if text.chars().count() > URL_CHARS_MAX {
            return Err("must be at most 2048 characters");
        }
        if text.bytes().any(|byte| byte.is_ascii_control() || byte == b' ') {
            return Err("must not contain spaces or control characters");
        }
        let url = Url::parse(text).map_err(|_| "must be an absolute URL")?;
        match (url.scheme(), schemes) {
            ("https", _) | ("http", Schemes::HttpAndHttps) => {}
            (_, Schemes::HttpsOnly) => return Err("must be an https URL"),
            (_, Schemes::HttpAndHttps) => return Err("must be an http or https URL"),
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err("must name a host");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("must not contain credentials");
        }
        if url.fragment().is_some() {
            return Err("must not contain a fragment");
        }
        if url.port() == Some(0) {
            return Err("must not name port 0");
        }
        // The normalised form, which is stored and returned, can be longer.
        if url.as_str().len() > URL_CHARS_MAX {
            return Err("must be at most 2048 characters when it is percent-encoded");
        }
        Ok(url)
    }

    /// Returns the URL in its normalised form.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the scheme, host and port, by which webhook receivers share resources fairly.
    #[must_use]
    pub fn origin(&self) -> String {
        // In a normalised URL without credentials, the origin is everything before the path.
        let end = self.0.match_indices('/').nth(2).map_or(self.0.len(), |(at, _)| at);
        self.0[..end].to_owned()
    }
}

/// Shows the origin only: paths and queries of webhook URLs often hold secrets.
impl fmt::Debug for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HttpUrl({}/…)", self.origin())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn https_is_always_accepted_and_http_only_where_allowed() {
        assert!(HttpUrl::parse("https://a.example/hook?x=1", Schemes::HttpsOnly).is_ok());
        assert!(HttpUrl::parse("http://a.example/", Schemes::HttpsOnly).is_err());
        assert!(HttpUrl::parse("http://a.example/", Schemes::HttpAndHttps).is_ok());
    }

    #[test]
    fn malformed_and_risky_urls_are_refused() {
        let long = format!("https://a.example/{}", "x".repeat(2_048));
        for text in [
            "",
            "a.example",
            "/path",
            "ftp://a.example",
            "https://u:p@a.example",
            "https://u@a.example",
            "https://a.example/#f",
            "https://",
            "https://a.example:0/",
            "https://a b.example/",
            "https://a.example/\n",
            "javascript:alert(1)",
            &long,
        ] {
            assert!(HttpUrl::parse(text, Schemes::HttpAndHttps).is_err(), "{text}");
        }
    }

    #[test]
    fn the_limit_applies_to_the_normalised_form() {
        let parse = |length: usize, letter: &str| {
            let text = format!(
                "https://a.example/{}",
                "x".repeat(length - "https://a.example/".len() - letter.chars().count())
            ) + letter;
            assert_eq!(text.chars().count(), length);
            HttpUrl::parse(&text, Schemes::HttpsOnly)
        };
        assert_eq!(parse(URL_CHARS_MAX, "").unwrap().as_str().len(), URL_CHARS_MAX);
        // These letters are longer in the normalised form.
        for letter in ["\u{fc}", "\"", "\u{937f}"] {
            assert!(parse(URL_CHARS_MAX, letter).is_err(), "{letter}");
            assert!(parse(URL_CHARS_MAX - 8, letter).is_ok_and(|url| url.as_str().len() <= URL_CHARS_MAX), "{letter}");
        }
    }

    #[test]
    fn the_origin_matches_the_url_standard() {
        for text in [
            "https://a.example",
            "https://A.Example:443/hook",
            "https://a.example:8443?x=/y",
            "http://a.example:80/a//b",
            "https://b\u{fc}cher.example/",
            "https://[2606:4700::1]:8443/x",
            "https:a.example/x/",
        ] {
            let address = HttpUrl::parse(text, Schemes::HttpAndHttps).unwrap();
            assert_eq!(address.origin(), Url::parse(text).unwrap().origin().ascii_serialization(), "{text}");
        }
    }

    #[test]
    fn debug_output_hides_the_path() {
        let url = HttpUrl::parse("https://a.example/token-123", Schemes::HttpsOnly).unwrap();
        assert!(!format!("{url:?}").contains("token-123"));
        assert_eq!(url.origin(), "https://a.example");
    }
}
