//! What kind of answer a request prefers, by its `Accept` header (RFC 9110 §12.5.1).
//!
//! At an event's address an intent costs a credit, a page costs nothing. So an intent is handed out
//! only where it is asked for by name and liked better than a page; whoever sends wildcards, or
//! looks ahead on somebody's behalf, gets the page.

use actix_web::HttpRequest;
use actix_web::http::header::{Accept, Header as _, Quality};

/// What the identity app asks for, and nothing else; browsers ask for HTML.
pub(super) const JWT: &str = "application/jwt";
const HTML: &str = "text/html";
const JSON: &str = "application/json";

/// Request headers by which a browser says that nobody is looking yet: the current one (Fetch
/// Metadata, `Sec-Purpose`) and those of older browsers.
const PURPOSES: [&str; 4] = ["sec-purpose", "purpose", "x-purpose", "x-moz"];

/// Whether the identity app asks for an intent.
pub(super) fn wants_intent(request: &HttpRequest) -> bool {
    let wishes = Wishes::of(request);
    wishes.names(JWT) && wishes.rank(JWT) > wishes.rank(HTML) && wishes.rank(JWT) >= wishes.rank(JSON) && !looks_ahead(request)
}

/// Whether a program asks that reads the error table's bodies.
pub(super) fn wants_json(request: &HttpRequest) -> bool {
    let wishes = Wishes::of(request);
    let reads = |kind| wishes.names(kind) && wishes.rank(kind) > wishes.rank(HTML);
    reads(JSON) || reads(JWT)
}

/// Whether a browser asks before its user has, so that nothing may be spent.
fn looks_ahead(request: &HttpRequest) -> bool {
    let values = PURPOSES.iter().flat_map(|name| request.headers().get_all(*name)).filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split([',', ';'])).any(|word| {
        let word = word.trim();
        ["prefetch", "prerender", "preview"].iter().any(|known| word.eq_ignore_ascii_case(known))
    })
}

/// How closely a media range describes a kind; the closest one decides its quality.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Closeness {
    Nothing,
    Anything,
    Type,
    Name,
}

/// A kind's quality; where two are equal, what was asked for more closely comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    quality: Quality,
    closeness: Closeness,
}

/// The media ranges of a request; what cannot be read among them is left out.
struct Wishes(Accept);

impl Wishes {
    fn of(request: &HttpRequest) -> Self {
        Self(Accept::parse(request).unwrap_or_else(|_| Accept(Vec::new())))
    }

    /// Whether the kind itself is asked for.
    fn names(&self, kind: &str) -> bool {
        let rank = self.rank(kind);
        rank.closeness == Closeness::Name && rank.quality > Quality::ZERO
    }

    fn rank(&self, kind: &str) -> Rank {
        let nothing = Rank { quality: Quality::ZERO, closeness: Closeness::Nothing };
        let ranges = self.0.iter().map(|wish| {
            let range = &wish.item;
            let closeness = match (range.type_().as_str(), range.subtype().as_str()) {
                _ if range.essence_str() == kind => Closeness::Name,
                ("*", "*") => Closeness::Anything,
                (major, "*") if kind.split('/').next() == Some(major) => Closeness::Type,
                _ => Closeness::Nothing,
            };
            Rank { quality: wish.quality, closeness }
        });
        ranges.filter(|rank| rank.closeness > Closeness::Nothing).max_by_key(|rank| (rank.closeness, rank.quality)).unwrap_or(nothing)
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn asks(headers: &[(&'static str, &str)]) -> (bool, bool) {
        let request = headers.iter().fold(TestRequest::get(), |request, (name, value)| request.append_header((*name, *value)));
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
        for accept in
            ["application/json", "application/json, text/plain, */*", "application/json, text/html;q=0.5", JWT, "application/json;q=0.1"]
        {
            assert!(asks(&[("accept", accept)]).1, "{accept}");
        }
        for accept in ["", "*/*", "application/*", "text/html, application/json", "application/json;q=0", "text/html,*/*;q=0.8"] {
            assert!(!asks(&[("accept", accept)]).1, "{accept}");
        }
    }
}
