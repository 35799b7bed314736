//! The parts of a request that pages read, for the fuzzer.

use actix_web::HttpRequest;
use sakshi_domain::ids::TxnId;

use crate::accept::{wants_intent, wants_json};
use crate::event::visits_in_cookies;
use crate::language::PageLanguage;
use crate::platform::Platform;

/// Returns the visits that the cookies of a request name, with the value of each.
#[must_use]
pub fn visits(request: &HttpRequest) -> Vec<(TxnId, String)> {
    visits_in_cookies(request).collect()
}

/// Returns two flags: the request prefers an intent, and it prefers JSON.
#[must_use]
pub fn wants(request: &HttpRequest) -> (bool, bool) {
    (wants_intent(request), wants_json(request))
}

/// Returns an own address in the language that the request chooses, and that language's tag.
#[must_use]
pub fn address(request: &HttpRequest, path: &str) -> (String, &'static str) {
    let language = PageLanguage::of(request, None);
    (language.at(path), language.texts.tag)
}

/// Returns true if the request comes from a phone.
#[must_use]
pub fn is_phone(request: &HttpRequest) -> bool {
    Platform::of(request) != Platform::Other
}
