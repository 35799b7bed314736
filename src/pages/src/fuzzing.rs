//! What pages read of a request, for the fuzzer.

use actix_web::HttpRequest;
use sakshi_domain::ids::TxnId;

use crate::accept::{wants_intent, wants_json};
use crate::event::visits_in_cookies;
use crate::language::PageLanguage;
use crate::platform::Platform;

/// The visits that the cookies of a request name, with the value of each.
#[must_use]
pub fn visits(request: &HttpRequest) -> Vec<(TxnId, String)> {
    visits_in_cookies(request).collect()
}

/// Whether it prefers an intent, and whether it prefers JSON.
#[must_use]
pub fn wants(request: &HttpRequest) -> (bool, bool) {
    (wants_intent(request), wants_json(request))
}

/// An address of ours in the language that it chooses, and that language's tag.
#[must_use]
pub fn address(request: &HttpRequest, path: &str) -> (String, &'static str) {
    let language = PageLanguage::of(request, None);
    (language.at(path), language.texts.tag)
}

/// Whether it comes from a phone.
#[must_use]
pub fn is_phone(request: &HttpRequest) -> bool {
    Platform::of(request) != Platform::Other
}
