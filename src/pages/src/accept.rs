//! Content negotiation by the `Accept` header (RFC 9110 §12.5.1).
//!
//! At an event's URL an intent costs a credit and a page costs nothing. So the answer is an intent only if the request
//! names its media type and prefers it to a page. Wildcards and prefetches get the page.

use actix_web::HttpRequest;
use actix_web::http::header::{Accept, Header as _, Quality, USER_AGENT};

/// The media type of an intent, which only the identity app prefers; browsers prefer HTML.
pub(super) const JWT: &str = "application/jwt";
const HTML: &str = "text/html";
const JSON: &str = "application/json";

/// Request headers that announce a prefetch: the current one (Fetch Metadata, `Sec-Purpose`) and those of older
/// browsers.
const PREFETCH_HEADERS: [&str; 4] = ["sec-purpose", "purpose", "x-purpose", "x-moz"];

/// Returns true if the request prefers an intent.
pub(super) fn wants_intent(request: &HttpRequest) -> bool {
    let accept = AcceptHeader::from_request(request);
    accept.names(JWT)
        && accept.rank(JWT) > accept.rank(HTML)
        && accept.rank(JWT) >= accept.rank(JSON)
        && !is_prefetch(request)
}

/// Returns true for a browser older than Fetch Metadata, which sends no `Sec-Fetch-Site`. A page of another site may
/// have sent the request.
pub(super) fn may_be_cross_site(request: &HttpRequest) -> bool {
    let headers = request.headers();
    let is_browser = headers
        .get(USER_AGENT)
        .and_then(|agent| agent.to_str().ok())
        .is_some_and(|agent| agent.starts_with("Mozilla/"));
    is_browser && !headers.contains_key("sec-fetch-site")
}

/// Returns true if the request prefers the JSON bodies of errors to a page.
pub(super) fn wants_json(request: &HttpRequest) -> bool {
    let accept = AcceptHeader::from_request(request);
    let prefers = |media_type| accept.names(media_type) && accept.rank(media_type) > accept.rank(HTML);
    prefers(JSON) || prefers(JWT)
}

/// Returns true if a browser prefetches the URL. A prefetch must not cost a credit.
fn is_prefetch(request: &HttpRequest) -> bool {
    let values = PREFETCH_HEADERS
        .iter()
        .flat_map(|name| request.headers().get_all(*name))
        .filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split([',', ';'])).any(|word| {
        let purpose = word.trim();
        ["prefetch", "prerender", "preview"].iter().any(|prefetch| purpose.eq_ignore_ascii_case(prefetch))
    })
}

/// Specificity of a media range; the most specific range decides the quality.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Specificity {
    NoMatch,
    AnyType,
    AnySubtype,
    Exact,
}

/// Quality of a media type; on a tie the more specific range wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    quality: Quality,
    specificity: Specificity,
}

/// The media ranges of a request, without malformed ones.
struct AcceptHeader(Accept);

impl AcceptHeader {
    fn from_request(request: &HttpRequest) -> Self {
        Self(Accept::parse(request).unwrap_or_else(|_| Accept(Vec::new())))
    }

    /// Returns true if the media type itself is named.
    fn names(&self, media_type: &str) -> bool {
        let rank = self.rank(media_type);
        rank.specificity == Specificity::Exact && rank.quality > Quality::ZERO
    }

    /// Returns the rank of a media type by the range that matches it best.
    fn rank(&self, media_type: &str) -> Rank {
        let no_match = Rank { quality: Quality::ZERO, specificity: Specificity::NoMatch };
        let ranges = self.0.iter().map(|entry| {
            let range = &entry.item;
            let specificity = match (range.type_().as_str(), range.subtype().as_str()) {
                _ if range.essence_str() == media_type => Specificity::Exact,
                ("*", "*") => Specificity::AnyType,
                (major, "*") if media_type.split('/').next() == Some(major) => Specificity::AnySubtype,
                _ => Specificity::NoMatch,
            };
            Rank { quality: entry.quality, specificity }
        });
        ranges
            .filter(|rank| rank.specificity > Specificity::NoMatch)
            .max_by_key(|rank| (rank.specificity, rank.quality))
            .unwrap_or(no_match)
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn request_with(headers: &[(&'static str, &str)]) -> HttpRequest {
        let request =
            headers.iter().fold(TestRequest::get(), |request, (name, value)| request.append_header((*name, *value)));
        request.to_http_request()
    }

    fn prefers_intent(headers: &[(&'static str, &str)]) -> bool {
        wants_intent(&request_with(headers))
    }

    fn prefers_json(accept: &str) -> bool {
        wants_json(&request_with(&[("accept", accept)]))
    }

    #[test]
    fn an_intent_is_sent_only_if_named_and_preferred_to_a_page() {
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
            assert!(prefers_intent(&[("accept", accept)]), "{accept}");
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
            assert!(!prefers_intent(&[("accept", accept)]), "{accept}");
        }
        assert!(prefers_intent(&[("accept", "text/plain"), ("accept", "application/jwt")]), "two headers are one list");
        assert!(!prefers_intent(&[("accept", "application/jwt;q=0.9"), ("accept", "text/html")]));
    }

    #[test]
    fn a_prefetch_gets_no_intent() {
        for (name, value) in [
            ("sec-purpose", "prefetch"),
            ("sec-purpose", "prefetch;prerender"),
            ("sec-purpose", "prefetch; anonymous-client-ip"),
            ("purpose", "Prefetch"),
            ("purpose", "preview"),
            ("x-purpose", "preview"),
            ("x-moz", "prefetch"),
        ] {
            assert!(!prefers_intent(&[("accept", JWT), (name, value)]), "{name}: {value}");
        }
        assert!(prefers_intent(&[("accept", JWT), ("purpose", "verification")]));
    }

    #[test]
    fn json_is_sent_only_if_preferred_to_a_page() {
        for accept in [
            "application/json",
            "application/json, text/plain, */*",
            "application/json, text/html;q=0.5",
            JWT,
            "application/json;q=0.1",
        ] {
            assert!(prefers_json(accept), "{accept}");
        }
        for accept in
            ["", "*/*", "application/*", "text/html, application/json", "application/json;q=0", "text/html,*/*;q=0.8"]
        {
            assert!(!prefers_json(accept), "{accept}");
        }
    }
}
