//! The id of a session, 256 random bits in an HttpOnly cookie, and the CSRF token of its forms.
//!
//! The store has only a digest of the id, and the token does not reveal the id. The portal and the console each have a
//! cookie, which browsers send below one path only.

use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::http::header::COOKIE;
use aws_lc_rs::rand;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sakshi_domain::limits::CONSOLE_SESSION_MAX;
use sakshi_service::api_key::sha256;
use sakshi_store::SessionDigest;
use subtle::ConstantTimeEq as _;

const BYTES: usize = 32;

/// Time after which an unused session ends.
pub const IDLE: Duration = Duration::from_secs(30 * 60);
/// Longest lifetime of a session.
pub const LIFETIME: Duration = CONSOLE_SESSION_MAX;
/// Least time between two extensions of a session, so that not every page writes to the store.
pub const PROLONG_INTERVAL: Duration = Duration::from_secs(60);

/// The cookie of a site with sessions.
#[derive(Clone, Copy, Debug)]
pub struct SessionCookie {
    /// Name of the cookie.
    pub name: &'static str,
    /// Path below which browsers send it.
    pub path: &'static str,
    /// Word that separates digests and tokens of this site from those of others.
    pub site: &'static str,
    /// Links with which browsers send it.
    pub same_site: SameSite,
}

/// The links with which a cookie is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SameSite {
    /// Links of own pages only.
    Strict,
    /// Links of other sites too, but not their forms.
    Lax,
}

/// The id of a session.
pub struct SessionId {
    cookie: &'static SessionCookie,
    bytes: [u8; BYTES],
}

impl SessionCookie {
    /// Generates a fresh id; `None` when the system has no randomness.
    #[must_use]
    pub fn mint(&'static self) -> Option<SessionId> {
        let mut bytes = [0; BYTES];
        rand::fill(&mut bytes).ok()?;
        Some(SessionId { cookie: self, bytes })
    }

    /// Returns the id that a browser sends. Of two, another site under our domain may have planted one, so both are
    /// refused.
    #[must_use]
    pub fn of(&'static self, request: &HttpRequest) -> Option<SessionId> {
        let mut bytes = [0; BYTES];
        let length = URL_SAFE_NO_PAD.decode_slice(self.value(request)?, &mut bytes).ok()?;
        (length == BYTES).then_some(SessionId { cookie: self, bytes })
    }

    /// Returns the value of the cookie, if it was sent once.
    fn value<'a>(&self, request: &'a HttpRequest) -> Option<&'a str> {
        let values = request.headers().get_all(COOKIE).filter_map(|value| value.to_str().ok());
        let pairs = values.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let mut sent = pairs.filter(|(name, _)| *name == self.name);
        let (_, value) = sent.next()?;
        sent.next().is_none().then_some(value)
    }

    /// Returns the value of `Set-Cookie` that deletes the cookie.
    #[must_use]
    pub fn none(&self, secure: bool) -> String {
        format!("{}=; Max-Age=0; {}", self.name, self.attributes(secure))
    }

    fn attributes(&self, secure: bool) -> String {
        format!("Path={}; HttpOnly; SameSite={:?}{}", self.path, self.same_site, if secure { "; Secure" } else { "" })
    }
}

impl SessionId {
    /// Returns the digest that the store keeps.
    #[must_use]
    pub fn digest(&self) -> SessionDigest {
        SessionDigest(self.hash("session"))
    }

    /// Returns the CSRF token that each form of this session carries.
    #[must_use]
    pub fn csrf_token(&self) -> CsrfToken {
        CsrfToken(self.derived("form"))
    }

    /// Derives a secret of this session for one purpose, which neither the token nor another secret reveals.
    #[must_use]
    pub fn derived(&self, purpose: &str) -> String {
        URL_SAFE_NO_PAD.encode(self.hash(purpose))
    }

    fn hash(&self, of: &str) -> [u8; 32] {
        sha256(&[b"sakshi ", self.cookie.site.as_bytes(), b" ", of.as_bytes(), &self.bytes])
    }

    /// Returns the value of `Set-Cookie` (RFC 6265 §4.1). The cookie ends with the browser's session.
    #[must_use]
    pub fn cookie(&self, secure: bool) -> String {
        format!("{}={}; {}", self.cookie.name, URL_SAFE_NO_PAD.encode(self.bytes), self.cookie.attributes(secure))
    }
}

/// Returns the SHA-256 of a text in Base64url, the form of a PKCE challenge (RFC 7636, section 4.2).
#[must_use]
pub fn sha256_base64url(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(sha256(&[text.as_bytes()]))
}

/// The CSRF token of a session's forms, which only pages of this session know.
#[derive(Clone)]
pub struct CsrfToken(String);

impl CsrfToken {
    /// Returns the token.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if a form carries the token; takes constant time.
    #[must_use]
    pub fn is(&self, sent: &str) -> bool {
        self.0.as_bytes().ct_eq(sent.as_bytes()).into()
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    static COOKIE_OF_TESTS: SessionCookie =
        SessionCookie { name: "sakshi_portal", path: "/portal", site: "portal", same_site: SameSite::Strict };
    static OTHER: SessionCookie = SessionCookie { site: "console", ..COOKIE_OF_TESTS };

    fn sent(cookies: &[&str]) -> Option<SessionId> {
        let request =
            cookies.iter().fold(TestRequest::get(), |request, cookie| request.append_header(("cookie", *cookie)));
        COOKIE_OF_TESTS.of(&request.to_http_request())
    }

    #[test]
    fn the_cookie_that_is_set_is_the_one_that_is_read() {
        let id = COOKIE_OF_TESTS.mint().unwrap();
        let set = id.cookie(true);
        let pair = set.split(';').next().unwrap();
        assert!(sent(&[&format!("theme=dark; {pair}; x=y")]).unwrap().digest() == id.digest());
        for attribute in ["Path=/portal", "HttpOnly", "SameSite=Strict", "Secure"] {
            assert!(set.split("; ").any(|part| part == attribute), "{set}");
        }
        assert!(!id.cookie(false).contains("Secure"));
        assert!(COOKIE_OF_TESTS.none(true).starts_with("sakshi_portal=; Max-Age=0; "));
    }

    #[test]
    fn what_is_no_id_or_one_of_two_is_not_taken() {
        let pair = |id: SessionId| id.cookie(false).split(';').next().unwrap().to_owned();
        let (one, other) = (pair(COOKIE_OF_TESTS.mint().unwrap()), pair(COOKIE_OF_TESTS.mint().unwrap()));
        for cookies in [
            &[] as &[&str],
            &["sakshi_portal="],
            &["sakshi_portal=abc"],
            &[&one[..one.len() - 1]],
            &[&format!("{one}A")],
            &[&one, &other],
            &[&format!("{one}; {other}")],
            &[&one.replace("sakshi_portal", "Sakshi_portal")],
        ] {
            assert!(sent(cookies).is_none(), "{cookies:?}");
        }
    }

    #[test]
    fn the_csrf_token_is_of_one_session_and_is_neither_its_id_nor_its_digest() {
        let (id, other) = (COOKIE_OF_TESTS.mint().unwrap(), COOKIE_OF_TESTS.mint().unwrap());
        let token = id.csrf_token();
        assert!(token.is(id.csrf_token().as_str()) && !token.is(other.csrf_token().as_str()) && !token.is(""));
        assert!(!id.cookie(false).contains(token.as_str()));
        assert_ne!(URL_SAFE_NO_PAD.encode(id.digest().0), token.as_str());
        let elsewhere = SessionId { cookie: &OTHER, ..id };
        assert!(
            elsewhere.digest() != id.digest() && !token.is(elsewhere.csrf_token().as_str()),
            "no site takes those of another"
        );
    }
}
