//! Refuses requests from pages of other sites, so that no site can spend an organiser's credits through its visitors'
//! browsers.

use actix_web::HttpRequest;
use actix_web::http::header::{HOST, HeaderName, ORIGIN, REFERER};
use sakshi_service::Service;
use url::Url;

use crate::error::ApiError;

/// The origin of our own pages.
#[derive(Clone, Copy, Debug)]
struct OwnOrigin<'a> {
    /// Public base URL.
    base: &'a str,
    /// True if the host in `Host` is an own origin, too. It is so only in a sandbox without a base URL: elsewhere
    /// anybody may point a name at this address.
    accepts_host: bool,
}

/// Refuses requests from pages of other sites. Browsers name the origin in `Sec-Fetch-Site` (Fetch Metadata Request
/// Headers §2.3), older ones in `Origin` (RFC 6454 §7), the oldest in `Referer` (RFC 9110 §10.1.3). Programs send none
/// of them.
///
/// # Errors
/// [`ApiError::CrossSite`] if a page of another site sent the request.
pub fn refuse_cross_site(request: &HttpRequest, service: &Service) -> Result<(), ApiError> {
    let own = OwnOrigin { base: &service.authority.public_base, accepts_host: !service.rules.has_public_base_url };
    own.is_sender(request).then_some(()).ok_or(ApiError::CrossSite)
}

/// Refuses requests from pages of other sites on a listener without a public URL. Its own pages are at the host in
/// `Host`. A foreign name that points at this listener is harmless, because browsers send it no cookie.
///
/// # Errors
/// [`ApiError::CrossSite`] if a page of another site sent the request.
pub fn refuse_other_host(request: &HttpRequest) -> Result<(), ApiError> {
    OwnOrigin { base: "", accepts_host: true }.is_sender(request).then_some(()).ok_or(ApiError::CrossSite)
}

/// Returns true if a request comes from a page at this base URL, for the fuzzer.
#[cfg(feature = "fuzzing")]
#[must_use]
pub fn is_of_page_at(base: &str, accepts_host: bool, request: &HttpRequest) -> bool {
    OwnOrigin { base, accepts_host }.is_sender(request)
}

impl OwnOrigin<'_> {
    /// Returns true if an own page, or no page, sent the request.
    fn is_sender(self, request: &HttpRequest) -> bool {
        let header = |name: HeaderName| request.headers().get(name).map(|value| value.to_str().unwrap_or("?"));
        let site = header(HeaderName::from_static("sec-fetch-site"));
        match (site, header(ORIGIN)) {
            (Some("same-origin" | "none"), None | Some("null")) => true,
            (Some("same-origin" | "none") | None, Some(origin)) => self.includes(origin, header(HOST)),
            (None, None) => header(REFERER).is_none_or(|page| self.includes(page, header(HOST))),
            (Some(_), _) => false,
        }
    }

    /// Returns true if an origin or the URL of a page is our own.
    fn includes(self, url: &str, host: Option<&str>) -> bool {
        let Ok(url) = Url::parse(url) else { return false };
        let origin = url.origin().ascii_serialization();
        origin == self.base
            || (self.accepts_host
                && host.is_some_and(|host| origin.split_once("://").is_some_and(|(_, own_host)| own_host == host)))
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    /// Checks a request to `alias.example`, a second name of the service at `v.example`.
    fn is_accepted(accepts_host: bool, headers: &[(&'static str, &str)]) -> bool {
        let request =
            headers.iter().fold(TestRequest::post().insert_header(("host", "alias.example")), |request, header| {
                request.insert_header(*header)
            });
        OwnOrigin { base: "https://v.example", accepts_host }.is_sender(&request.to_http_request())
    }

    #[test]
    fn requests_of_own_pages_and_of_programs_are_accepted() {
        const SITE: &str = "sec-fetch-site";
        for (headers, allowed) in [
            (&[] as &[(&'static str, &str)], true),
            (&[(SITE, "same-origin"), ("origin", "https://v.example")], true),
            (&[(SITE, "same-origin"), ("origin", "null")], true),
            (&[(SITE, "none")], true),
            (&[("origin", "https://v.example")], true),
            (&[("origin", "https://v.example:443")], true),
            (&[("referer", "https://v.example/e/00000000000000000")], true),
            (&[("origin", "null")], false),
            (&[("origin", "http://v.example")], false),
            (&[("origin", "https://evil.example")], false),
            (&[("origin", "https://v.example.evil.example")], false),
            (&[("origin", "https://v.example@evil.example")], false),
            (&[("referer", "https://evil.example/")], false),
            (&[("referer", "https://evil.example/https://v.example/")], false),
            (&[("referer", "nonsense")], false),
            (&[("referer", "")], false),
            (&[(SITE, "cross-site")], false),
            (&[(SITE, "cross-site"), ("origin", "https://v.example")], false),
            (&[(SITE, "same-site"), ("origin", "https://other.example")], false),
            (&[(SITE, "same-origin"), ("origin", "https://evil.example")], false),
            (&[(SITE, ""), ("origin", "https://v.example")], false),
        ] {
            assert_eq!((is_accepted(false, headers), is_accepted(true, headers)), (allowed, allowed), "{headers:?}");
        }
    }

    #[test]
    fn a_host_counts_as_own_only_without_a_configured_base_url() {
        for headers in [
            &[("origin", "https://alias.example")] as &[(&'static str, &str)],
            &[("sec-fetch-site", "same-origin"), ("origin", "http://alias.example")],
            &[("referer", "https://alias.example/e/x")],
        ] {
            assert_eq!((is_accepted(false, headers), is_accepted(true, headers)), (false, true), "{headers:?}");
        }
    }
}
