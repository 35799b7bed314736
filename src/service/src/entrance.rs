//! The entrance of an event: the addresses of its pages, and the permission to start there.
//!
//! With `entry` set to `kiosk`, a guest scans a code that the kiosk's screen shows for 30 seconds. The code opens the
//! event's page until 30 seconds later. The page starts a verification for some minutes more, so a photographed code
//! soon expires.

use sakshi_authority::capability::Purpose;
use sakshi_domain::event::Event;
use sakshi_domain::ids::EventId;
use sakshi_domain::time::Timestamp;
use sakshi_wire::events::EventAddresses;

use crate::authority::AuthorityContext;

/// Milliseconds for which a code is shown. It is accepted for as long again.
pub const CODE_SHOWN_MS: i64 = 30_000;
/// Minimum number of milliseconds for which a page starts verifications; at most twice as long.
const PASS_MS: i64 = 300_000;

/// Parameters of a code and of a pass in the address of an event's page, and of the key in that of its kiosk.
const CODE: &str = "code";
const PASS: &str = "pass";
const KEY: &str = "key";

/// Permission to start at an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admission(Option<String>);

impl Admission {
    /// Adds the permission to an address of the event.
    #[must_use]
    pub fn address(&self, address: &str) -> String {
        self.0.as_ref().map_or_else(|| address.to_owned(), |pass| format!("{address}?{PASS}={pass}"))
    }
}

impl AuthorityContext {
    /// Builds the addresses of an event's pages for its organiser.
    #[must_use]
    pub fn event_addresses(&self, id: EventId) -> EventAddresses {
        let key = self.callbacks.capabilities().make(Purpose::Kiosk, id.as_bytes());
        let qr_url = self.event_url(id);
        let poster_url = format!("{}/api/v1/nationalid-ovse/events/{id}/poster", self.public_base);
        EventAddresses { kiosk_url: format!("{qr_url}/kiosk?{KEY}={key}"), poster_url, qr_url }
    }

    /// Returns true if a query has the key of the event's kiosk.
    #[must_use]
    pub fn has_kiosk_key(&self, id: EventId, query: &str) -> bool {
        parameter(query, KEY)
            .is_some_and(|key| self.callbacks.capabilities().is_genuine(Purpose::Kiosk, id.as_bytes(), key))
    }

    /// Builds the address in the code that a kiosk shows at `now`.
    #[must_use]
    pub fn code_url(&self, event: &Event, now: Timestamp) -> String {
        let address = self.event_url(event.id);
        if event.terms.entry.is_open() {
            return address;
        }
        format!("{address}?{CODE}={}", self.made(Purpose::EntryCode, event.id, now.millis().div_euclid(CODE_SHOWN_MS)))
    }

    /// Returns the permission to start for this query; where entry is not open, `None` unless a code was scanned a
    /// moment ago.
    #[must_use]
    pub fn admits(&self, event: &Event, query: &str, now: Timestamp) -> Option<Admission> {
        if event.terms.entry.is_open() {
            return Some(Admission(None));
        }
        let has = |name, purpose, length_ms: i64| {
            let step = now.millis().div_euclid(length_ms);
            let subject = |step| subject(event.id, step);
            let is_of = |given: &str, step| self.callbacks.capabilities().is_genuine(purpose, &subject(step), given);
            parameter(query, name).is_some_and(|given| is_of(given, step) || is_of(given, step - 1))
        };
        let has_code = has(CODE, Purpose::EntryCode, CODE_SHOWN_MS);
        if has_code {
            return Some(Admission(Some(self.made(Purpose::EntryPass, event.id, now.millis().div_euclid(PASS_MS)))));
        }
        let has_pass = has(PASS, Purpose::EntryPass, PASS_MS);
        has_pass.then(|| Admission(parameter(query, PASS).map(str::to_owned)))
    }

    fn made(&self, purpose: Purpose, id: EventId, step: i64) -> String {
        self.callbacks.capabilities().make(purpose, &subject(id, step))
    }
}

fn subject(id: EventId, step: i64) -> Vec<u8> {
    [&id.as_bytes()[..], &step.to_be_bytes()].concat()
}

/// Returns the value of a parameter. Capabilities need no decoding.
fn parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}
