//! Movements of credits, and the audit of all ledgers. A client's balance and statement are those of
//! [`crate::credits`].

use sakshi_domain::credits::{CreditMove, EntryKind};
use sakshi_domain::grant_request::{GrantRequest, GrantState};
use sakshi_domain::ids::{ClientId, GrantId};
use sakshi_domain::limits::{CLIENT_REFERENCE_CHARS_MAX, CREDITS_PER_MOVE_MAX};
use sakshi_domain::time::Timestamp;
use serde::Serialize;

use crate::body::{Field, body, described};
use crate::credits::StatementEntry;
use crate::fields::Place;
use crate::json::Json;
use crate::text::Words;

body! { request
    /// A movement of credits.
    #[derive(Clone, PartialEq)]
    pub struct MoveCreditsRequest {
        /// `grant` adds, `adjust` corrects up or down. Default: `grant`.
        kind: Option<MoveKind>,
        /// The number of credits; negative for an adjustment only.
        amount: Amount,
        /// Unique per client and kind: the same movement again changes nothing.
        reference: Words<CLIENT_REFERENCE_CHARS_MAX>,
    }
    check(fields) {
        let is_adjustment = matches!(kind, Some(Some(MoveKind(EntryKind::Adjust))));
        if amount.is_some_and(|amount: Amount| amount.0 < 1 && !is_adjustment) {
            fields.refuse("amount", Amount::sentence());
        }
    }
}

impl MoveCreditsRequest {
    /// Returns the movement.
    #[must_use]
    pub fn movement(self) -> CreditMove {
        let kind = self.kind.map_or(EntryKind::Grant, |kind| kind.0);
        CreditMove { kind, amount: self.amount.0, reference: self.reference.0 }
    }
}

/// A grant or an adjustment: the movements that the operator makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct MoveKind(pub EntryKind);

impl Field for MoveKind {
    fn read(value: Json, place: &mut Place<'_>) -> Option<Self> {
        place.one_of(&value, [("grant", Self(EntryKind::Grant)), ("adjust", Self(EntryKind::Adjust))])
    }
}

described! { MoveKind: { "type": "string", "enum": ["grant", "adjust"], "default": "grant" } }

/// Credits that are moved at once, in either direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Amount(pub i64);

impl Amount {
    fn sentence() -> String {
        format!("must be a whole number from 1 to {CREDITS_PER_MOVE_MAX}, or below zero for an adjustment")
    }
}

impl Field for Amount {
    fn read(value: Json, place: &mut Place<'_>) -> Option<Self> {
        let amount = if let Json::Number(amount) = value { amount.as_i64() } else { None };
        let good = amount.filter(|amount| (1..=CREDITS_PER_MOVE_MAX).contains(&amount.unsigned_abs()));
        place.accept(good.map(Self).ok_or_else(Self::sentence))
    }
}

described! { Amount: { "type": "integer", "format": "int64", "minimum": -CREDITS_PER_MOVE_MAX.cast_signed(),
"maximum": CREDITS_PER_MOVE_MAX } }

body! { answer
    /// The result of a movement.
    pub struct MoveCreditsResponse {
        /// The balance of the client after it.
        balance: u64,
        /// The movement in the client's ledger; null while a second person must confirm it.
        entry: Option<StatementEntry>,
        /// The request that waits for a second person, if the movement is above `admin.second_person_above` of the
        /// settings.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        request: Option<GrantRequestResponse>,
    }
}

body! { answer
    /// A movement of credits above the limit, which a second operator confirms.
    #[derive(Clone)]
    pub struct GrantRequestResponse {
        /// Identifies the request.
        grant_id: GrantId,
        /// The client that gets the credits.
        client_id: ClientId,
        /// `grant` or `adjust`.
        kind: EntryKind,
        /// Credits.
        amount: i64,
        /// The reference, unique per client and kind.
        reference: String,
        /// `pending` until somebody has decided.
        state: GrantState,
        /// The id of the operator who asked: `settings` for the token of the settings.
        asked_by: String,
        /// The name of that operator.
        asked_by_name: String,
        /// The time of the request.
        asked_at: Timestamp,
        /// The end of the request. Nothing is granted after it.
        ends_at: Timestamp,
        /// The id of the operator who has decided.
        decided_by: Option<String>,
        /// The name of that operator.
        decided_by_name: Option<String>,
        /// The time of the decision.
        decided_at: Option<Timestamp>,
    }
}

impl From<GrantRequest> for GrantRequestResponse {
    fn from(request: GrantRequest) -> Self {
        let GrantRequest { id, client, movement, asked_by, asked_at, ends_at, state, decided } = request;
        let (decided_by, decided_at) = decided.unzip();
        let (decided_by, decided_by_name) = decided_by.map(|by| (by.id, by.name)).unzip();
        Self {
            grant_id: id,
            client_id: client,
            kind: movement.kind,
            amount: movement.amount,
            reference: movement.reference,
            state,
            asked_by: asked_by.id,
            asked_by_name: asked_by.name,
            asked_at,
            ends_at,
            decided_by,
            decided_by_name,
            decided_at,
        }
    }
}

described! { GrantState: { "type": "string", "enum": ["pending", "confirmed", "refused"] } }

body! { answer
    /// The movements that wait for a second person, and those that were decided within their day.
    pub struct GrantRequestsResponse {
        /// Oldest first.
        requests: Vec<GrantRequestResponse>,
    }
}

body! { answer
    /// The result of the audit of all ledgers.
    pub struct AuditResponse {
        /// True if every ledger adds up.
        clean: bool,
        /// One entry for each client.
        clients: Vec<AuditedClient>,
    }
}

body! { answer
    /// The result of the audit of one ledger.
    #[derive(Clone)]
    pub struct AuditedClient {
        /// The client of the ledger.
        client_id: ClientId,
        /// The stored balance.
        balance: u64,
        /// The sum of all entries.
        sum: i64,
        /// The number of entries.
        entries: u64,
        /// Entries whose number, balance or sign does not follow from the one before.
        faults: u64,
        /// True if it adds up.
        clean: bool,
    }
}
