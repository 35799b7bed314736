//! The parts of a request that pages read, for the fuzzer.

use actix_web::HttpRequest;
use sakshi_domain::ids::TxnId;

use crate::accept::{wants_intent, wants_json};
use crate::event::visit_cookies;
use crate::language::PageLanguage;
use crate::platform::Platform;

/// Returns the transactions and the values of a request's visit cookies.
#[must_use]
pub fn read_visit_cookies(request: &HttpRequest) -> Vec<(TxnId, String)> {
    visit_cookies(request).collect()
}

/// Returns two flags: the request prefers an intent; the request prefers JSON.
#[must_use]
pub fn wants_intent_and_json(request: &HttpRequest) -> (bool, bool) {
    (wants_intent(request), wants_json(request))
}

/// Returns a path of this service with the language that the request chooses, and the language's tag.
#[must_use]
pub fn localise(request: &HttpRequest, path: &str) -> (String, &'static str) {
    let language = PageLanguage::from_request(request, None);
    (language.localise(path), language.texts.tag)
}

/// Returns true if the request comes from a phone.
#[must_use]
pub fn is_phone(request: &HttpRequest) -> bool {
    Platform::from_request(request) != Platform::Other
}
