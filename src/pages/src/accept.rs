//! Content negotiation by the `Accept` header (RFC 9110 §12.5.1).
//!
//! At an event's URL an intent costs a credit and a page costs nothing. So the answer is an intent only if the request
//! names its media type and prefers it to a page. Wildcards and prefetches get the page.

use actix_web::HttpRequest;
use actix_web::http::header::{Accept, Header as _, Quality, USER_AGENT};

/// The media type that only the identity app asks for; browsers ask for HTML.
pub(super) const JWT: &str = "application/jwt";
const HTML: &str = "text/html";
const JSON: &str = "application/json";

/// Request headers that announce a prefetch: the current one (Fetch Metadata, `Sec-Purpose`) and those of older
/// browsers.
const PURPOSES: [&str; 4] = ["sec-purpose", "purpose", "x-purpose", "x-moz"];

/// Returns true if the request prefers an intent.
pub(super) fn wants_intent(request: &HttpRequest) -> bool {
    let accept = AcceptHeader::of(request);
    accept.names(JWT)
        && accept.rank(JWT) > accept.rank(HTML)
        && accept.rank(JWT) >= accept.rank(JSON)
        && !is_prefetch(request)
}

/// Returns true if a browser's request does not name its site (before Fetch Metadata): a page of another site may have
/// sent it.
pub(super) fn may_be_of_another_site(request: &HttpRequest) -> bool {
    let headers = request.headers();
    let is_browser = headers
        .get(USER_AGENT)
        .and_then(|agent| agent.to_str().ok())
        .is_some_and(|agent| agent.starts_with("Mozilla/"));
    is_browser && !headers.contains_key("sec-fetch-site")
}

/// Returns true if the request prefers the JSON bodies of errors to a page.
pub(super) fn wants_json(request: &HttpRequest) -> bool {
    let accept = AcceptHeader::of(request);
    let reads = |kind| accept.names(kind) && accept.rank(kind) > accept.rank(HTML);
    reads(JSON) || reads(JWT)
}

/// Returns true if a browser prefetches the URL, so that no credit may be spent.
fn is_prefetch(request: &HttpRequest) -> bool {
    let values =
        PURPOSES.iter().flat_map(|name| request.headers().get_all(*name)).filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split([',', ';'])).any(|word| {
        let word = word.trim();
        ["prefetch", "prerender", "preview"].iter().any(|known| word.eq_ignore_ascii_case(known))
    })
}

/// Specificity of a media range; the most specific one decides the quality.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Specificity {
    Nothing,
    Anything,
    Type,
    Name,
}

/// Quality of a media type; of equal ones the more specific range wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    quality: Quality,
    specificity: Specificity,
}

/// The media ranges of a request, without malformed ones.
struct AcceptHeader(Accept);

impl AcceptHeader {
    fn of(request: &HttpRequest) -> Self {
        Self(Accept::parse(request).unwrap_or_else(|_| Accept(Vec::new())))
    }

    /// Returns true if the media type itself is named.
    fn names(&self, kind: &str) -> bool {
        let rank = self.rank(kind);
        rank.specificity == Specificity::Name && rank.quality > Quality::ZERO
    }

    fn rank(&self, kind: &str) -> Rank {
        let nothing = Rank { quality: Quality::ZERO, specificity: Specificity::Nothing };
        let ranges = self.0.iter().map(|entry| {
            let range = &entry.item;
            let specificity = match (range.type_().as_str(), range.subtype().as_str()) {
                _ if range.essence_str() == kind => Specificity::Name,
                ("*", "*") => Specificity::Anything,
                (major, "*") if kind.split('/').next() == Some(major) => Specificity::Type,
                _ => Specificity::Nothing,
            };
            Rank { quality: entry.quality, specificity }
        });
        ranges
            .filter(|rank| rank.specificity > Specificity::Nothing)
            .max_by_key(|rank| (rank.specificity, rank.quality))
            .unwrap_or(nothing)
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn asks(headers: &[(&'static str, &str)]) -> (bool, bool) {
        let request =
            headers.iter().fold(TestRequest::get(), |request, (name, value)| request.append_header((*name, *value)));
        let request = request.to_http_request();
        (wants_intent(&request), wants_json(&request))
    }

    #[test]
    fn an_intent_is_what_is_asked_for_by_name_and_liked_better_than_a_page() {
        for accept in [
            "application/jwt",
            "Application/JWT",
            "application/jwt;q=0.5",
            "application/jwt, */*",
            "application/jwt, */*;q=0.1",
            "application/jwt;q=0.9, text/html;q=0.8",
            "application/jwt, text/html;q=0",
            "application/jwt, application/json",
            "text/plain, application/jwt",
        ] {
            assert!(asks(&[("accept", accept)]).0, "{accept}");
        }
        for accept in [
            "",
            "*/*",
            "application/*",
            "application/jwt;q=0",
            "application/jwt;q=0.000",
            "application/jwt;q=0, text/html",
            "application/jwt;q=0, */*",
            "text/html, application/jwt;q=0.1",
            "text/html, application/jwt",
            "text/*, application/jwt;q=0.9",
            "*/*, application/jwt;q=0.9",
            "application/json, application/jwt;q=0.9",
            "application/jwt;q=2",
            "application/jwt;q=",
            "application/jwt2",
            "\"application/jwt\"",
        ] {
            assert!(!asks(&[("accept", accept)]).0, "{accept}");
        }
        assert!(asks(&[("accept", "text/plain"), ("accept", "application/jwt")]).0, "two headers are one list");
        assert!(!asks(&[("accept", "application/jwt;q=0.9"), ("accept", "text/html")]).0);
    }

    #[test]
    fn nothing_is_handed_to_who_looks_ahead() {
        for (name, value) in [
            ("sec-purpose", "prefetch"),
            ("sec-purpose", "prefetch;prerender"),
            ("sec-purpose", "prefetch; anonymous-client-ip"),
            ("purpose", "Prefetch"),
            ("purpose", "preview"),
            ("x-purpose", "preview"),
            ("x-moz", "prefetch"),
        ] {
            assert!(!asks(&[("accept", JWT), (name, value)]).0, "{name}: {value}");
        }
        assert!(asks(&[("accept", JWT), ("purpose", "verification")]).0);
    }

    #[test]
    fn json_is_for_whom_a_page_is_no_better() {
        for accept in [
            "application/json",
            "application/json, text/plain, */*",
            "application/json, text/html;q=0.5",
            JWT,
            "application/json;q=0.1",
        ] {
            assert!(asks(&[("accept", accept)]).1, "{accept}");
        }
        for accept in
            ["", "*/*", "application/*", "text/html, application/json", "application/json;q=0", "text/html,*/*;q=0.8"]
        {
            assert!(!asks(&[("accept", accept)]).1, "{accept}");
        }
    }
}
