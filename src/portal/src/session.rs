//! A session's id, 256 random bits in an HttpOnly cookie, and the CSRF token of its forms.
//!
//! The store has only a digest of the id, and the token does not reveal the id.

use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::http::header::COOKIE;
use aws_lc_rs::rand;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sakshi_service::api_key::sha256;
use sakshi_store::SessionDigest;
use subtle::ConstantTimeEq as _;

const NAME: &str = "sakshi_portal";
const BYTES: usize = 32;

/// How long a session lasts that nobody uses.
pub(super) const IDLE: Duration = Duration::from_secs(30 * 60);
/// How long a session lasts at most.
pub(super) const LIFETIME: Duration = Duration::from_secs(8 * 3_600);

/// The id of a session.
pub(super) struct SessionId([u8; BYTES]);

impl SessionId {
    /// A fresh one; `None` when the system has no randomness.
    pub(super) fn mint() -> Option<Self> {
        let mut bytes = [0; BYTES];
        rand::fill(&mut bytes).ok()?;
        Some(Self(bytes))
    }

    /// The one that a browser sends. Of two, another site under our domain may have planted one, so
    /// neither is taken.
    pub(super) fn of(request: &HttpRequest) -> Option<Self> {
        let values = request.headers().get_all(COOKIE).filter_map(|value| value.to_str().ok());
        let pairs = values.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let mut sent = pairs.filter(|(name, _)| *name == NAME);
        let (_, value) = sent.next()?;
        let mut bytes = [0; BYTES];
        let length = URL_SAFE_NO_PAD.decode_slice(value, &mut bytes).ok()?;
        (length == BYTES && sent.next().is_none()).then_some(Self(bytes))
    }

    /// What the store knows it by.
    pub(super) fn digest(&self) -> SessionDigest {
        SessionDigest(sha256(&[b"sakshi portal session", &self.0]))
    }

    /// The CSRF token that each form of this session carries.
    pub(super) fn csrf_token(&self) -> CsrfToken {
        CsrfToken(URL_SAFE_NO_PAD.encode(sha256(&[b"sakshi portal form", &self.0])))
    }

    /// The value of `Set-Cookie` (RFC 6265 §4.1). It goes when the browser is closed.
    pub(super) fn cookie(&self, secure: bool) -> String {
        format!("{NAME}={}; {}", URL_SAFE_NO_PAD.encode(self.0), attributes(secure))
    }
}

/// The value of `Set-Cookie` that takes the cookie away.
pub(super) fn no_cookie(secure: bool) -> String {
    format!("{NAME}=; Max-Age=0; {}", attributes(secure))
}

fn attributes(secure: bool) -> &'static str {
    if secure { "Path=/portal; HttpOnly; SameSite=Strict; Secure" } else { "Path=/portal; HttpOnly; SameSite=Strict" }
}

/// The CSRF token of a session's forms, which only pages of this session know.
#[derive(Clone)]
pub(super) struct CsrfToken(String);

impl CsrfToken {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a form carries it; takes the same time whatever it carries.
    pub(super) fn is(&self, sent: &str) -> bool {
        self.0.as_bytes().ct_eq(sent.as_bytes()).into()
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn sent(cookies: &[&str]) -> Option<SessionId> {
        let request = cookies.iter().fold(TestRequest::get(), |request, cookie| request.append_header(("cookie", *cookie)));
        SessionId::of(&request.to_http_request())
    }

    #[test]
    fn the_cookie_that_is_set_is_the_one_that_is_read() {
        let id = SessionId::mint().unwrap();
        let set = id.cookie(true);
        let pair = set.split(';').next().unwrap();
        assert!(sent(&[&format!("theme=dark; {pair}; x=y")]).unwrap().digest() == id.digest());
        for attribute in ["Path=/portal", "HttpOnly", "SameSite=Strict", "Secure"] {
            assert!(set.split("; ").any(|part| part == attribute), "{set}");
        }
        assert!(!id.cookie(false).contains("Secure"));
        assert!(no_cookie(true).starts_with("sakshi_portal=; Max-Age=0; "));
    }

    #[test]
    fn what_is_no_id_or_one_of_two_is_not_taken() {
        let pair = |id: SessionId| id.cookie(false).split(';').next().unwrap().to_owned();
        let (one, other) = (pair(SessionId::mint().unwrap()), pair(SessionId::mint().unwrap()));
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
        let (id, other) = (SessionId::mint().unwrap(), SessionId::mint().unwrap());
        let token = id.csrf_token();
        assert!(token.is(id.csrf_token().as_str()) && !token.is(other.csrf_token().as_str()) && !token.is(""));
        assert!(!id.cookie(false).contains(token.as_str()));
        assert_ne!(URL_SAFE_NO_PAD.encode(id.digest().0), token.as_str());
    }
}
