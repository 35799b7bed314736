//! The id of a session, 256 random bits in an HttpOnly cookie, and the CSRF token of its forms.
//!
//! The store has only a digest of the id, and the token does not reveal the id. The portal and the console each have
//! their own cookie, which browsers send below one path only.

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

/// Length of an id.
const ID_BYTES: usize = 32;

/// Time without a request after which a session ends.
pub const IDLE: Duration = Duration::from_secs(30 * 60);
/// Maximum lifetime of a session.
pub const LIFETIME: Duration = CONSOLE_SESSION_MAX;
/// Minimum time between two extensions of a session, so that not every page writes to the store.
pub const PROLONG_INTERVAL: Duration = Duration::from_secs(60);

/// The cookie of a site with sessions.
#[derive(Clone, Copy, Debug)]
pub struct SessionCookie {
    /// Name of the cookie.
    pub name: &'static str,
    /// Path below which browsers send the cookie.
    pub path: &'static str,
    /// Word that makes digests and tokens of this site differ from those of other sites.
    pub site: &'static str,
    /// Links with which browsers send the cookie.
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
    bytes: [u8; ID_BYTES],
}

impl SessionCookie {
    /// Generates an id; `None` if the system has no randomness.
    #[must_use]
    pub fn mint(&'static self) -> Option<SessionId> {
        let mut bytes = [0; ID_BYTES];
        rand::fill(&mut bytes).ok()?;
        Some(SessionId { cookie: self, bytes })
    }

    /// Returns the session id of a request. Two cookies are both refused: another site under our domain may have set
    /// one.
    #[must_use]
    pub fn session_id(&'static self, request: &HttpRequest) -> Option<SessionId> {
        let mut bytes = [0; ID_BYTES];
        let length = URL_SAFE_NO_PAD.decode_slice(self.value(request)?, &mut bytes).ok()?;
        (length == ID_BYTES).then_some(SessionId { cookie: self, bytes })
    }

    /// Returns the value of the cookie, if it was sent once.
    fn value<'a>(&self, request: &'a HttpRequest) -> Option<&'a str> {
        let values = request.headers().get_all(COOKIE).filter_map(|value| value.to_str().ok());
        let pairs = values.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let mut values = pairs.filter(|(name, _)| *name == self.name);
        let (_, value) = values.next()?;
        values.next().is_none().then_some(value)
    }

    /// Returns the value of `Set-Cookie` that deletes the cookie; `secure` as in [`SessionId::cookie`].
    #[must_use]
    pub fn removal(&self, secure: bool) -> String {
        format!("{}=; Max-Age=0; {}", self.name, self.attributes(secure))
    }

    /// Returns the attributes of `Set-Cookie`; `secure` restricts the cookie to TLS.
    fn attributes(&self, secure: bool) -> String {
        format!("Path={}; HttpOnly; SameSite={:?}{}", self.path, self.same_site, if secure { "; Secure" } else { "" })
    }
}

impl SessionId {
    /// Returns the digest for the store.
    #[must_use]
    pub fn digest(&self) -> SessionDigest {
        SessionDigest(self.hash("session"))
    }

    /// Returns the CSRF token that each form of this session carries.
    #[must_use]
    pub fn csrf_token(&self) -> CsrfToken {
        CsrfToken(self.derive_secret("form"))
    }

    /// Derives a secret of this session for a purpose. Neither the token nor another derived secret reveals it.
    #[must_use]
    pub fn derive_secret(&self, purpose: &str) -> String {
        URL_SAFE_NO_PAD.encode(self.hash(purpose))
    }

    fn hash(&self, purpose: &str) -> [u8; 32] {
        sha256(&[b"sakshi ", self.cookie.site.as_bytes(), b" ", purpose.as_bytes(), &self.bytes])
    }

    /// Returns the value of `Set-Cookie` (RFC 6265 §4.1). The cookie ends with the browser's session; `secure`
    /// restricts it to TLS.
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

/// The CSRF token of a session's forms. Only pages of the session know it.
#[derive(Clone)]
pub struct CsrfToken(String);

impl CsrfToken {
    /// Returns the token.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if the token of a form is equal, in constant time.
    #[must_use]
    pub fn matches(&self, sent: &str) -> bool {
        self.0.as_bytes().ct_eq(sent.as_bytes()).into()
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    static PORTAL: SessionCookie =
        SessionCookie { name: "sakshi_portal", path: "/portal", site: "portal", same_site: SameSite::Strict };
    static CONSOLE: SessionCookie = SessionCookie { site: "console", ..PORTAL };

    fn session_id(cookies: &[&str]) -> Option<SessionId> {
        let request =
            cookies.iter().fold(TestRequest::get(), |request, cookie| request.append_header(("cookie", *cookie)));
        PORTAL.session_id(&request.to_http_request())
    }

    #[test]
    fn the_id_in_the_set_cookie_is_read_from_a_request() {
        let id = PORTAL.mint().unwrap();
        let set_cookie = id.cookie(true);
        let pair = set_cookie.split(';').next().unwrap();
        assert!(session_id(&[&format!("theme=dark; {pair}; x=y")]).unwrap().digest() == id.digest());
        for attribute in ["Path=/portal", "HttpOnly", "SameSite=Strict", "Secure"] {
            assert!(set_cookie.split("; ").any(|part| part == attribute), "{set_cookie}");
        }
        assert!(!id.cookie(false).contains("Secure"));
        assert!(PORTAL.removal(true).starts_with("sakshi_portal=; Max-Age=0; "));
    }

    #[test]
    fn malformed_and_repeated_ids_are_refused() {
        let pair = |id: SessionId| id.cookie(false).split(';').next().unwrap().to_owned();
        let (one, other) = (pair(PORTAL.mint().unwrap()), pair(PORTAL.mint().unwrap()));
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
            assert!(session_id(cookies).is_none(), "{cookies:?}");
        }
    }

    #[test]
    fn a_csrf_token_belongs_to_one_session_and_reveals_neither_id_nor_digest() {
        let (id, other) = (PORTAL.mint().unwrap(), PORTAL.mint().unwrap());
        let token = id.csrf_token();
        assert!(
            token.matches(id.csrf_token().as_str())
                && !token.matches(other.csrf_token().as_str())
                && !token.matches("")
        );
        assert!(!id.cookie(false).contains(token.as_str()));
        assert_ne!(URL_SAFE_NO_PAD.encode(id.digest().0), token.as_str());
        let other_site = SessionId { cookie: &CONSOLE, ..id };
        assert!(
            other_site.digest() != id.digest() && !token.matches(other_site.csrf_token().as_str()),
            "the sites share neither digests nor tokens"
        );
    }
}
