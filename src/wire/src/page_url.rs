//! The URL of an upstream's page, which the client receives unchanged.

use std::fmt;

use sakshi_domain::limits::URL_CHARS_MAX;
use serde::{Deserialize, Deserializer, Serialize, de};
use url::Url;

use crate::body::described;

/// A page of an upstream to which the client sends a person: an absolute http(s) URL of at most 2,048
/// visible ASCII characters without credentials, exactly as the upstream wrote it.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct PageUrl(Box<str>);

impl PageUrl {
    /// Accepts a URL.
    ///
    /// # Errors
    /// A message that states the accepted form.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let refusal =
            "must be an absolute http or https URL of at most 2048 visible ASCII characters without credentials";
        // Clients get the text unparsed, so it must not contain anything that parsers read differently or browsers
        // hide.
        let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
        let is_unambiguous = is_plain && text.len() <= URL_CHARS_MAX && names_authority(text);
        let url = is_unambiguous.then(|| Url::parse(text).ok()).flatten().ok_or(refusal)?;
        let is_anonymous = url.username().is_empty() && url.password().is_none();
        let is_web = matches!(url.scheme(), "http" | "https") && url.has_host() && url.port() != Some(0);
        (is_anonymous && is_web).then(|| Self(text.into())).ok_or(refusal)
    }

    /// Returns the URL.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

described! { PageUrl: { "type": "string", "format": "uri" } }

/// Returns true if the authority is where RFC 3986 §3 puts it. Lenient parsers also find it in `https:host` and
/// `https:///host`.
fn names_authority(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, rest)| !scheme.contains(':') && !rest.starts_with(['/', '@', ':']))
}

impl<'de> Deserialize<'de> for PageUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(de::Error::custom)
    }
}

/// Shows the length only: anyone with a signer's URL can sign.
impl fmt::Debug for PageUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PageUrl({} characters)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_url_is_absolute_and_kept_as_written() {
        for text in ["https://sign.example/#/a?b=c", "http://127.0.0.1:9/x", "HTTPS://Sign.Example"] {
            assert_eq!(PageUrl::parse(text).unwrap().as_str(), text);
        }
        let long = format!("https://sign.example/{}", "x".repeat(URL_CHARS_MAX));
        let foreign = ["", "/sign", "sign.example", "ftp://sign.example", "javascript:alert(1)", "https://a b", &long];
        for text in
            foreign.into_iter().chain(["https://u:p@sign.example", "https://u@sign.example", "https://:p@sign.example"])
        {
            assert!(PageUrl::parse(text).is_err(), "{text}");
        }
        assert!(!format!("{:?}", PageUrl::parse("https://sign.example/secret").unwrap()).contains("secret"));
    }

    #[test]
    fn a_url_that_parsers_read_differently_is_refused() {
        for text in [
            "https:h",
            "https:/h",
            "https:///h",
            "https:\\\\h",
            "https://good.example\\@evil.example/",
            "https://@h",
            "https://:80/",
            "https://",
            "https://h:0/",
            "https://h/\u{7}",
            "https://h/\0",
            "https://h/a\nb",
            "https://h/a\tb",
            " https://h/",
            "https://h/\u{202e}gpj.exe",
            "https://h\u{200b}.example/",
            "https://sîgn.example/",
            "javascript://h/%0aalert(1)",
            "x:https://h/",
        ] {
            assert!(PageUrl::parse(text).is_err(), "{text:?}");
        }
        assert!(PageUrl::parse("https://xn--sgn-tma.example:8443/a%20b?next=https://h/").is_ok());
    }
}
