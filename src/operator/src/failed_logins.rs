//! Failed logins: refused, limited by address, logged, counted, and written to the audit log.
//!
//! A valid token is never refused because of failures from its address: a proxy or a forgotten script would lock
//! operators and connectors out, and nobody guesses 32 characters. The audit log keeps its entries for ever, so it gets
//! the first failure of an address at once, and then one entry a minute with the number of failures. Beyond
//! [`ADDRESSES_MAX`] addresses, all others share one entry.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix_web::rt::time::sleep;
use actix_web::web::Data;
use actix_web::{HttpRequest, rt};
use sakshi_web::error::ApiError;
use sakshi_web::rate_limit::{RateLimit, host, subscriber};
use serde_json::json;

use super::InternalDeps;

/// Interval between two entries of one address.
const INTERVAL: Duration = Duration::from_secs(60);
/// Maximum number of addresses with separate entries at one time.
const ADDRESSES_MAX: usize = 10;

/// The expected kind of token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Login {
    Operator,
    Connector,
}

/// The failed logins of a node, on all its listeners.
#[derive(Clone)]
pub struct FailedLogins {
    limit: RateLimit<IpAddr>,
    /// Failures not yet in the audit log, by source. A source is forgotten after an interval without failures.
    pending: Arc<Mutex<BTreeMap<Source, u64>>>,
}

/// Source of failures. Addresses beyond [`ADDRESSES_MAX`] share the source without an address.
type Source = (Login, Option<IpAddr>);

impl Login {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Connector => "connector",
        }
    }
}

impl FailedLogins {
    /// Limits the failures of an address: after `per_minute` responses with 401 it gets 429. 0 means no limit.
    #[must_use]
    pub fn per_minute(per_minute: u32) -> Self {
        Self { limit: RateLimit::per_minute("sign_ins", per_minute), pending: Arc::default() }
    }

    fn pending(&self) -> MutexGuard<'_, BTreeMap<Source, u64>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a failure. Returns its source if the source has no entry within the interval.
    fn add(&self, login: Login, address: IpAddr) -> Option<Source> {
        let mut pending = self.pending();
        let separate = (login, Some(address));
        let source =
            if pending.contains_key(&separate) || pending.len() < ADDRESSES_MAX { separate } else { (login, None) };
        let is_new = !pending.contains_key(&source);
        *pending.entry(source).or_default() += 1;
        is_new.then_some(source)
    }

    /// Takes the failures of a source that are not yet in the audit log; forgets a source without any.
    fn take(&self, source: &Source) -> Option<u64> {
        let mut pending = self.pending();
        let count = pending.get_mut(source).map(std::mem::take).filter(|count| *count > 0);
        if count.is_none() {
            pending.remove(source);
        }
        count
    }
}

/// Records an invalid token, and returns the refusal.
pub(super) fn refuse(deps: &Data<InternalDeps>, request: &HttpRequest, login: Login) -> ApiError {
    let address = host(request, &deps.trusted_proxies);
    metrics::counter!("sakshi_operator_logins_failed_total", "token" => login.as_str()).increment(1);
    if let Some(source) = deps.failed_logins.add(login, subscriber(address)) {
        rt::spawn(write_entries(deps.clone(), source));
    }
    if let Err(limited) = deps.failed_logins.limit.take(&subscriber(address)) {
        return limited;
    }
    tracing::warn!(client.address = %address, login.token = login.as_str(), "a login failed: the token is wrong, \
        revoked or expired");
    ApiError::BearerUnauthorized
}

/// Writes an entry for a source now, and one per interval while failures continue.
async fn write_entries(deps: Data<InternalDeps>, source: Source) {
    let (login, address) = source;
    while let Some(count) = deps.failed_logins.take(&source) {
        let entry = json!({
            "at": deps.clock.now(),
            "operation": "login",
            "stage": "refused",
            "token": login.as_str(),
            "from": address,
            "count": count,
        });
        if let Err(error) = deps.store.append_audit(entry.to_string()).await {
            tracing::warn!(%error, count, "failed logins could not be written to the audit log; the write is retried");
            *deps.failed_logins.pending().entry(source).or_default() += count;
        }
        sleep(INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_one_entry_per_interval_and_further_addresses_share_one() {
        let failed = FailedLogins::per_minute(0);
        let address = |last: u8| IpAddr::from([192, 0, 2, last]);
        let first = (Login::Operator, Some(address(0)));
        assert_eq!(failed.add(Login::Operator, address(0)), Some(first));
        assert_eq!(failed.add(Login::Operator, address(0)), None);
        assert_eq!(failed.take(&first), Some(2));
        assert_eq!(failed.add(Login::Operator, address(0)), None, "the interval has not ended");
        assert_eq!((failed.take(&first), failed.take(&first)), (Some(1), None));
        assert_eq!(failed.add(Login::Operator, address(0)), Some(first), "after an interval without a failure");

        let sources = (1..100).filter_map(|last| failed.add(Login::Connector, address(last))).collect::<Vec<_>>();
        assert_eq!(sources.len(), ADDRESSES_MAX, "nine with an address, and all others");
        assert_eq!(sources.last(), Some(&(Login::Connector, None)));
        assert_eq!(failed.take(&(Login::Connector, None)), Some(90));
    }
}
