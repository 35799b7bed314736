//! The register of consents of a client, in a list for each week, which expires as a whole.

use std::time::Duration;

use sakshi_domain::ids::ClientId;
use sakshi_domain::time::Timestamp;

use super::{key_in_partition, table};
use crate::engine::Key;
use crate::invariants::is_id;

const WEEK_MS: i64 = 7 * 24 * 3_600 * 1_000;

table! {
    /// A week in which a client asked for consent. Expires together with its entries.
    CONSENT_WEEK = "consent_week", Record Ends(CONSENTS) {
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
    /// The entries of a week, numbered from 1.
    CONSENTS = "consents", List With(CONSENT_WEEK) {
        answered_at: Integer,
        entry: Sealed(Id),
    } always {
        Key(KeyRule::OfClientFirst),
    }
}

/// Returns the number of the week that contains `at`, counted from 1970.
#[must_use]
pub(crate) const fn week_of(at: Timestamp) -> i64 {
    at.millis().div_euclid(WEEK_MS)
}

/// Returns the end of the week that contains `at`.
#[must_use]
pub(crate) fn end_of_week(at: Timestamp) -> Timestamp {
    Timestamp::from_millis(week_of(at).saturating_mul(WEEK_MS)) + Duration::from_millis(WEEK_MS.unsigned_abs())
}

/// Returns the key of the record of a week in which a client asked for consent.
#[must_use]
pub(crate) fn key_of_consent_week(client: &ClientId, week: i64) -> Key {
    key_in_partition(&CONSENT_WEEK, client.partition(), format!("{client}:{week}").into_bytes())
}

/// Returns the key of the list of a client's entries in a week.
#[must_use]
pub(crate) fn key_of_consents(client: &ClientId, week: i64) -> Key {
    key_of_consent_week(client, week).in_table(&CONSENTS)
}
