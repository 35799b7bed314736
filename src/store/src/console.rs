//! The operators' console: parameters and results of its operations.

use sakshi_domain::credits::CreditMove;
use sakshi_domain::grant_request::{DecisionRefusal, GrantRequest, GrantState};
use sakshi_domain::ids::{ClientId, GrantId};
use sakshi_domain::operator::{SignIn, Signatory};
use sakshi_domain::time::Timestamp;

use crate::sessions::SessionDigest;

/// A session of the console.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsoleSession {
    /// The digest of the session's id.
    pub digest: SessionDigest,
    /// The sign-in of its operator.
    pub sign_in: SignIn,
    /// Time at which the session ends unless it is used; at most `ends_at`.
    pub idle_until: Timestamp,
    /// Time at which the session ends in any case.
    pub ends_at: Timestamp,
}

/// Requests a grant that a second person must confirm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestGrant {
    /// Id derived from client, kind and reference, by which a retry finds the same request.
    pub id: GrantId,
    /// The client.
    pub client: ClientId,
    /// The movement of credits.
    pub movement: CreditMove,
    /// The operator who requests it.
    pub by: Signatory,
}

/// The outcome of [`RequestGrant`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestGrantOutcome {
    /// The request, made by this call or an earlier one.
    Requested(GrantRequest),
    /// The reference was used for another amount.
    ReferenceReused,
}

/// A second operator's decision about a requested grant of credits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecideGrant {
    /// The requested grant.
    pub id: GrantId,
    /// The operator who decides.
    pub by: Signatory,
    /// Confirmed or refused.
    pub decision: GrantState,
}

/// The outcome of [`DecideGrant`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecideGrantOutcome {
    /// The decision stands, made by this call or an earlier one.
    Decided(GrantRequest),
    /// The decision is not allowed.
    Refused(DecisionRefusal),
    /// The request does not exist, or no longer exists.
    NotFound,
}
