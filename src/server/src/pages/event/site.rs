//! Whether a request that spends a credit comes from our own page, or from no page at all.
//!
//! Another site must not be able to empty an organiser's balance through its visitors' browsers.

use actix_web::HttpRequest;
use actix_web::http::header::{HOST, ORIGIN};

use crate::http::error::ApiError;

/// Refuses what a page of another site sends. Browsers say so themselves in `Sec-Fetch-Site` (Fetch
/// Metadata Request Headers §2.3), older ones in `Origin` (RFC 6454 §7); programs say neither.
///
/// # Errors
/// [`ApiError::CrossSite`].
pub(super) fn refuse_other_sites(request: &HttpRequest, public_base: &str) -> Result<(), ApiError> {
    let header = |name: &str| request.headers().get(name).map(|value| value.to_str().unwrap_or("?"));
    let told = header("sec-fetch-site");
    let own = match (told, header(ORIGIN.as_str())) {
        (Some("same-origin" | "none"), None | Some("null")) | (None, None) => true,
        (Some("same-origin" | "none") | None, Some(origin)) => origin == public_base || is_of_host(origin, header(HOST.as_str())),
        (Some(_), _) => false,
    };
    if own { Ok(()) } else { Err(ApiError::CrossSite) }
}

/// Whether an origin is the one that the request was sent to, which may have another name than the
/// public one.
fn is_of_host(origin: &str, host: Option<&str>) -> bool {
    origin.split_once("://").is_some_and(|(_, named)| Some(named) == host)
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn only_our_own_page_or_no_page_may_start() {
        let ours = "https://v.example";
        for (site, origin, allowed) in [
            (None, None, true),
            (Some("same-origin"), Some(ours), true),
            (Some("same-origin"), Some("null"), true),
            (Some("same-origin"), Some("https://alias.example"), true),
            (Some("none"), None, true),
            (None, Some(ours), true),
            (None, Some("null"), false),
            (None, Some("https://evil.example"), false),
            (None, Some("https://v.example.evil.example"), false),
            (Some("cross-site"), None, false),
            (Some("cross-site"), Some(ours), false),
            (Some("same-site"), Some("https://other.example"), false),
            (Some("same-origin"), Some("https://evil.example"), false),
            (Some(""), Some(ours), false),
        ] {
            let mut request = TestRequest::post().insert_header(("host", "alias.example"));
            if let Some(site) = site {
                request = request.insert_header(("sec-fetch-site", site));
            }
            if let Some(origin) = origin {
                request = request.insert_header(("origin", origin));
            }
            let found = refuse_other_sites(&request.to_http_request(), ours);
            assert_eq!(found.is_ok(), allowed, "{site:?} {origin:?}");
        }
    }
}
