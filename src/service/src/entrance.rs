//! The entrance of an event: the addresses of its pages, and the permission to start there.
//!
//! With `entry` set to `kiosk`, a guest scans a code that the kiosk's screen shows for 30 seconds. The code opens the
//! event's page for 30 seconds more, and the page can start a verification for some minutes. So a photographed code
//! soon expires.

use sakshi_authority::capability::Purpose;
use sakshi_domain::event::Event;
use sakshi_domain::ids::EventId;
use sakshi_domain::time::Timestamp;
use sakshi_wire::events::EventAddresses;

use crate::authority::AuthorityContext;

/// Milliseconds for which a code is shown. After that, it is accepted for the same time.
pub const CODE_SHOWN_MS: i64 = 30_000;
/// Minimum milliseconds for which a page can start verifications; the maximum is twice as long.
const PASS_MS: i64 = 300_000;

/// Name of the query parameter with a code, in the address of an event's page.
const CODE: &str = "code";
/// Name of the query parameter with a pass, in the address of an event's page.
const PASS: &str = "pass";
/// Name of the query parameter with the key, in the kiosk's address.
const KEY: &str = "key";
/// Longest value that a link repeats; a capability is shorter.
const KEPT_CHARS_MAX: usize = 32;

/// Permission to start at an event: a pass for the query of its pages, or `None` where entry is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admission(Option<String>);

impl Admission {
    /// Adds the permission to an address of the event.
    #[must_use]
    pub fn add_to(&self, address: &str) -> String {
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
        format!(
            "{address}?{CODE}={}",
            self.make_capability(Purpose::EntryCode, event.id, now.millis().div_euclid(CODE_SHOWN_MS))
        )
    }

    /// Returns the permission to start with this query; `None` without one. If entry is not open, the query must have a
    /// recent code or a pass.
    #[must_use]
    pub fn find_admission(&self, event: &Event, query: &str, now: Timestamp) -> Option<Admission> {
        if event.terms.entry.is_open() {
            return Some(Admission(None));
        }
        let has_capability = |name, purpose, period_ms: i64| {
            let period = now.millis().div_euclid(period_ms);
            let matches = |value: &str, period| {
                self.callbacks.capabilities().is_genuine(purpose, &entry_bytes(event.id, period), value)
            };
            parameter(query, name).is_some_and(|value| matches(value, period) || matches(value, period - 1))
        };
        let has_code = has_capability(CODE, Purpose::EntryCode, CODE_SHOWN_MS);
        if has_code {
            return Some(Admission(Some(self.make_capability(
                Purpose::EntryPass,
                event.id,
                now.millis().div_euclid(PASS_MS),
            ))));
        }
        let has_pass = has_capability(PASS, Purpose::EntryPass, PASS_MS);
        has_pass.then(|| Admission(parameter(query, PASS).map(str::to_owned)))
    }

    /// Makes a code or a pass for a period of time.
    fn make_capability(&self, purpose: Purpose, id: EventId, period: i64) -> String {
        self.callbacks.capabilities().make(purpose, &entry_bytes(id, period))
    }
}

/// Returns the bytes from which a code or a pass is made.
fn entry_bytes(id: EventId, period: i64) -> Vec<u8> {
    [&id.as_bytes()[..], &period.to_be_bytes()].concat()
}

/// Returns the code, the pass and the key in a query, with the question mark: `?pass=…`. With them a link leads back to
/// the page that the visitor may open. They may have ended.
#[must_use]
pub fn kept_query(query: &str) -> String {
    let has_form = |value: &&str| {
        value.len() <= KEPT_CHARS_MAX && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    let pair = |name| Some(format!("{name}={}", parameter(query, name).filter(has_form)?));
    let pairs: Vec<_> = [CODE, PASS, KEY].into_iter().filter_map(pair).collect();
    if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
}

/// Returns the value of a query parameter, which needs no decoding for a capability.
fn parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_keeps_code_pass_and_key_and_nothing_else() {
        let long = format!("pass={}", "A".repeat(KEPT_CHARS_MAX + 1));
        for (query, kept) in [
            ("", ""),
            ("lang=ta&another=1&places=1", ""),
            ("lang=ta&pass=A-_9", "?pass=A-_9"),
            ("key=y&code=x", "?code=x&key=y"),
            ("pass=%22%3E&code=\"", ""),
            (long.as_str(), ""),
        ] {
            assert_eq!(kept_query(query), kept, "{query}");
        }
    }
}
