//! The log of a client, in a list for each month of 30 days, which expires as a whole.

use std::ops::RangeInclusive;

use sakshi_domain::ids::ClientId;
use sakshi_domain::limits::CLIENT_LOG_MONTHS;
use sakshi_domain::time::Timestamp;

use super::{key_in_partition, table};
use crate::engine::Key;
use crate::invariants::is_id;

const MONTH_MS: i64 = 30 * 24 * 3_600 * 1_000;

table! {
    /// A month of a client with log entries. Expires together with the entries.
    CLIENT_LOG_MONTH = "client_log_month", Record Ends(CLIENT_LOG) {
        client: Text,
    } always {
        Needed(&["client"]),
        Word("client", is_id),
        Fixed(&["client"]),
        New,
        Key(KeyRule::OfClientFirst),
    }
}

table! {
    /// The entries of a month, numbered from 1. They are sealed because they contain names.
    CLIENT_LOG = "client_log", List With(CLIENT_LOG_MONTH) {
        entry: Sealed(Id),
    } always {
        Key(KeyRule::OfClientFirst),
    }
}

/// Returns the number of the month that contains `at`, counted from 1970.
#[must_use]
pub(crate) const fn month_of(at: Timestamp) -> i64 {
    at.millis().div_euclid(MONTH_MS)
}

/// Returns the expiry of the entries that are written in the month of `at`.
#[must_use]
pub(crate) const fn log_expiry(at: Timestamp) -> Timestamp {
    Timestamp::from_millis((month_of(at) + 1 + CLIENT_LOG_MONTHS).saturating_mul(MONTH_MS))
}

/// Returns the months that may have entries, including the next month: another node's clock may be ahead.
#[must_use]
pub(crate) const fn months(now: Timestamp) -> RangeInclusive<i64> {
    let month = month_of(now);
    month - CLIENT_LOG_MONTHS - 1..=month + 1
}

/// Returns the key of the record of a month with log entries of a client.
#[must_use]
pub(crate) fn key_of_client_log_month(client: &ClientId, month: i64) -> Key {
    key_in_partition(&CLIENT_LOG_MONTH, client.partition(), format!("{client}:{month}").into_bytes())
}

/// Returns the key of the list of a client's entries in a month.
#[must_use]
pub(crate) fn key_of_client_log(client: &ClientId, month: i64) -> Key {
    key_of_client_log_month(client, month).in_table(&CLIENT_LOG)
}
