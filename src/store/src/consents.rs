//! The register of consents, as callers see it.

use sakshi_domain::consent::Consent;
use sakshi_domain::ids::ClientId;
use sakshi_domain::time::Timestamp;

/// A query of the register of a client's consents.
#[derive(Clone, Debug)]
pub struct ConsentQuery {
    /// The client that asked for the consents.
    pub client: ClientId,
    /// Earliest time at which a person was asked, inclusive.
    pub from: Timestamp,
    /// Latest time at which a person was asked, exclusive.
    pub to: Timestamp,
    /// Position after which the page starts.
    pub after: ConsentPosition,
    /// Maximum number of entries.
    pub limit: u32,
}

/// A position in the register of a client: a week, and a number in the week.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConsentPosition {
    /// The week, counted from 1970.
    pub week: i64,
    /// The number of an entry; 0 before the first.
    pub number: u64,
}

/// An entry of the register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredConsent {
    /// The entry.
    pub consent: Consent,
    /// The time of the answer.
    pub answered_at: Timestamp,
}

/// Entries with their positions, by week and, within a week, by the time of the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConsentPage {
    /// The entries.
    pub entries: Vec<(ConsentPosition, StoredConsent)>,
    /// Position after which the next page starts; `None` at the end.
    pub next: Option<ConsentPosition>,
}
