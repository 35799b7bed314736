//! Parts of upstreams' answers that are passed on to clients.

use std::fmt;

use sakshi_domain::limits::URL_CHARS_MAX;
use serde::{Deserialize, Deserializer, Serialize, de};
use url::Url;

/// A page of an upstream's, which the client sends a person to: an absolute http(s) URL of at most
/// 2,048 characters without credentials, as the upstream wrote it.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct PageUrl(Box<str>);

impl PageUrl {
    /// Accepts a URL.
    ///
    /// # Errors
    /// What it must look like.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let refusal = "must be an absolute http or https URL of at most 2048 characters without credentials";
        let readable = text.chars().count() <= URL_CHARS_MAX && !text.bytes().any(|byte| byte.is_ascii_control() || byte == b' ');
        let url = readable.then(|| Url::parse(text).ok()).flatten().ok_or(refusal)?;
        let anonymous = url.username().is_empty() && url.password().is_none();
        let web = matches!(url.scheme(), "http" | "https") && url.has_host();
        (anonymous && web).then(|| Self(text.into())).ok_or(refusal)
    }

    /// The URL.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for PageUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(de::Error::custom)
    }
}

/// Whoever has the URL of a signer may sign, so none of it is shown.
impl fmt::Debug for PageUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PageUrl({} characters)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_an_absolute_web_address_as_it_was_written() {
        for text in ["https://sign.example/#/a?b=c", "http://127.0.0.1:9/x", "HTTPS://Sign.Example"] {
            assert_eq!(PageUrl::parse(text).unwrap().as_str(), text);
        }
        let long = format!("https://sign.example/{}", "x".repeat(URL_CHARS_MAX));
        for text in
            ["", "/sign", "sign.example", "ftp://sign.example", "javascript:alert(1)", "https://u:p@sign.example", "https://a b", &long]
        {
            assert!(PageUrl::parse(text).is_err(), "{text}");
        }
        assert!(!format!("{:?}", PageUrl::parse("https://sign.example/secret").unwrap()).contains("secret"));
    }
}
