//! A guest's visits: a cookie for each verification that a browser started at an event. By the cookie a returning guest
//! continues a pending verification, at no further cost, or sees the registration.
//!
//! A result is kept for a day, an event for months. So the cookie of a registered guest has the sealed time and number
//! of the registration. It has none of the shared data, which is read from the store while it is kept.

use std::sync::Arc;
use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::http::header::COOKIE;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sakshi_actors::View;
use sakshi_authority::claims;
use sakshi_domain::claims::Claim;
use sakshi_domain::event::Event;
use sakshi_domain::ids::{EventId, TxnId};
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::{Outcome, Pending};
use sakshi_service::Service;
use sakshi_store::{CompletedRecord, Sealed};
use sakshi_web::error::ApiError;
use unicode_segmentation::UnicodeSegmentation as _;

/// Prefix of the name of a visit's cookie, before the id of its transaction. Browsers send the cookie to the pages of
/// its event only.
const COOKIE_PREFIX: &str = "sakshi_visit_";
/// Value of a cookie until its guest is registered.
const STARTED: &str = "started";
/// Most visits of a browser that are looked up, newest first. Each may be a query to the store.
const VISITS_MAX: usize = 8;
/// Most words of a name that get initials.
const WORDS_MAX: usize = 4;
/// Most dots after an initial.
const DOTS_MAX: usize = 3;
/// Most code points of an initial: a letter may have any number of combining signs.
const CODE_POINTS_MAX: usize = 8;

/// A registered guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RegisteredGuest {
    pub(crate) txn: TxnId,
    /// Number among the guests of the event.
    pub(crate) number: u64,
    /// Time of the verification.
    pub(crate) at: Timestamp,
    /// Initials of the shared name, which distinguish guests on one phone. Empty if no name was shared, or the result
    /// is no longer kept.
    pub(crate) initials: String,
}

impl RegisteredGuest {
    /// Returns the guest whom a completed transaction registered, if any. A guest whose claims cannot be unsealed has
    /// no initials.
    pub(crate) fn from_record(service: &Service, record: CompletedRecord) -> Option<Self> {
        let (txn, at, number) = (record.opened.id, record.verified_at, record.registration?);
        let claims = if record.opened.terms.claims.contains(Claim::Name) {
            service.transactions.reveal(record).ok()
        } else {
            None
        };
        let name = claims.and_then(|completed| match completed.outcome {
            Outcome::Verified(claims) => claims::shared_name(&claims),
            Outcome::NotVerified(_) => None,
        });
        Some(Self { txn, number, at, initials: name.as_deref().map(initials).unwrap_or_default() })
    }
}

/// Returns the first letter of each word, with dots for the rest: `A••• R••`.
fn initials(name: &str) -> String {
    let abbreviate = |word: &str| {
        let mut letters = word.graphemes(true);
        let first: String = letters.next()?.chars().take(CODE_POINTS_MAX).collect();
        Some(first + &"•".repeat(letters.take(DOTS_MAX).count()))
    };
    name.split_whitespace().take(WORDS_MAX).filter_map(abbreviate).collect::<Vec<_>>().join(" ")
}

/// The visits of this browser to one event: the verifications that it started there.
#[derive(Debug, Default)]
pub(super) struct Visits {
    /// The guest's pending verification.
    pub(super) under_way: Option<Arc<Pending>>,
    /// Registered guests, latest first.
    pub(super) guests: Vec<RegisteredGuest>,
    /// `Set-Cookie` values that add new visits and delete stale ones.
    pub(super) cookies: Vec<String>,
}

/// Returns the value of `Set-Cookie` (RFC 6265 §4.1) for a new transaction.
pub(super) fn started_cookie(service: &Service, event: &Event, txn: TxnId) -> String {
    set_cookie_value(service, event, txn, STARTED, service.rules.window + service.rules.result_ttl)
}

/// Returns the value of `Set-Cookie` for a registered guest, valid as long as the event and its registrations are kept.
pub(crate) fn registered_cookie(service: &Service, event: &Event, guest: &RegisteredGuest) -> String {
    let plain = [guest.at.millis().to_be_bytes(), guest.number.to_be_bytes()].concat();
    let sealed = service.vault.seal(&seal_owner(event.id, guest.txn), &plain);
    let lifetime = (event.terms.expires_at + event.terms.retention.registrations(service.rules.registration_ttl))
        .since(service.clock.now());
    set_cookie_value(service, event, guest.txn, &BASE64_URL_SAFE_NO_PAD.encode(sealed.as_bytes()), lifetime)
}

/// Returns the value of `Set-Cookie` for a visit. A lifetime of zero deletes the cookie.
fn set_cookie_value(service: &Service, event: &Event, txn: TxnId, value: &str, lifetime: Duration) -> String {
    let secure = if service.authority.public_base.starts_with("https:") { "; Secure" } else { "" };
    let seconds = lifetime.as_secs();
    format!("{COOKIE_PREFIX}{txn}={value}; Path=/e/{}; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}", event.id)
}

/// Loads this browser's visits to the event.
///
/// # Errors
/// The store is unavailable.
pub(super) async fn load_visits(service: &Service, request: &HttpRequest, event: &Event) -> Result<Visits, ApiError> {
    let mut visits = Visits::default();
    // Browsers send the oldest first (RFC 6265 §5.4).
    let oldest_first: Vec<_> = visit_cookies(request).collect();
    for (txn, value) in oldest_first.into_iter().rev().take(VISITS_MAX) {
        let cookie_guest = unseal_guest(service, event.id, txn, &value);
        let view = match service.transactions.get(txn).await {
            Ok(view) => view,
            // The sealed cookie proves the registration without the store.
            Err(_) if cookie_guest.is_some() => View::Unknown,
            Err(error) => return Err(error.into()),
        };
        match view {
            View::Pending(pending) if pending.event == Some(event.id) => visits.under_way = Some(pending),
            View::Completed(record) if record.passed && record.opened.event == Some(event.id) => {
                let guest = RegisteredGuest::from_record(service, *record);
                if cookie_guest.is_none() {
                    visits.cookies.extend(guest.as_ref().map(|guest| registered_cookie(service, event, guest)));
                }
                visits.guests.extend(guest);
            }
            _ if cookie_guest.is_some() => visits.guests.extend(cookie_guest),
            _ => visits.cookies.push(set_cookie_value(service, event, txn, "", Duration::ZERO)),
        }
    }
    visits.guests.sort_by_key(|guest| std::cmp::Reverse(guest.at));
    Ok(visits)
}

/// Returns the registered guest in a cookie's value; `None` if the value is not sealed for this visit.
fn unseal_guest(service: &Service, event: EventId, txn: TxnId, value: &str) -> Option<RegisteredGuest> {
    let sealed = Sealed::from_bytes(BASE64_URL_SAFE_NO_PAD.decode(value).ok()?)?;
    let plain = service.vault.open(&seal_owner(event, txn), &sealed).ok()?;
    let (at, number) = plain.split_first_chunk()?;
    let at = Timestamp::from_millis(i64::from_be_bytes(*at));
    Some(RegisteredGuest { txn, number: u64::from_be_bytes(number.try_into().ok()?), at, initials: String::new() })
}

/// Returns the owner for whom the cookie of a visit is sealed: its value opens for this event and transaction only.
fn seal_owner(event: EventId, txn: TxnId) -> Vec<u8> {
    [b"visit".as_slice(), event.as_bytes(), txn.as_bytes()].concat()
}

/// Returns the transactions and the values of a request's cookies.
pub(crate) fn visit_cookies(request: &HttpRequest) -> impl Iterator<Item = (TxnId, String)> {
    let values = request.headers().get_all(COOKIE).filter_map(|value| value.to_str().ok());
    let pairs = values.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter_map(|(name, value)| Some((name.strip_prefix(COOKIE_PREFIX)?.parse().ok()?, value.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn initials_distinguish_guests_and_hide_their_names() {
        for (name, expected) in [
            ("Asha Rao", "A••• R••"),
            ("  Bhimsen  Gururaj Joshi ", "B••• G••• J•••"),
            ("आशा राव", "आ• रा•"),
            ("Li", "L•"),
            ("X", "X"),
            ("a b c d e f", "a b c d"),
            ("", ""),
        ] {
            assert_eq!(initials(name), expected, "{name}");
        }
        let letter_with_signs = |count| format!("A{}", "\u{301}".repeat(count));
        assert_eq!(initials(&letter_with_signs(5_000)), letter_with_signs(CODE_POINTS_MAX - 1));
    }
}
