//! Movements of credits, and the audit of all ledgers. A client's balance and statement are in [`crate::credits`].

use sakshi_domain::credits::{CreditMove, EntryKind};
use sakshi_domain::grant_request::{GrantRequest, GrantState};
use sakshi_domain::ids::{ClientId, GrantId};
use sakshi_domain::limits::{CLIENT_REFERENCE_CHARS_MAX, CREDITS_PER_MOVE_MAX};
use sakshi_domain::time::Timestamp;
use serde::Serialize;

use crate::body::{Field, body, described};
use crate::credits::StatementEntry;
use crate::fields::FieldReader;
use crate::json::Json;
use crate::text::Words;

body! { request
    /// A movement of credits.
    #[derive(Clone, PartialEq)]
    pub struct MoveCreditsRequest {
        /// `grant` adds credits, `adjust` corrects the balance up or down. Default: `grant`.
        kind: Option<MoveKind>,
        /// The number of credits; may be negative for `adjust` only.
        amount: Amount,
        /// The reference, unique per client and kind. A repeated movement changes nothing.
        reference: Words<CLIENT_REFERENCE_CHARS_MAX>,
    }
    check(fields) {
        let is_adjustment = matches!(kind, Some(Some(MoveKind(EntryKind::Adjust))));
        if amount.is_some_and(|amount: Amount| amount.0 < 1 && !is_adjustment) {
            fields.refuse("amount", Amount::refusal());
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

/// The kind of a movement by the operator: a grant or an adjustment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct MoveKind(pub EntryKind);

impl Field for MoveKind {
    fn read(value: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
        reader.one_of(&value, [("grant", Self(EntryKind::Grant)), ("adjust", Self(EntryKind::Adjust))])
    }
}

described! { MoveKind: { "type": "string", "enum": ["grant", "adjust"], "default": "grant" } }

/// The credits of one movement, in either direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Amount(pub i64);

impl Amount {
    /// Returns the error for an amount out of bounds.
    fn refusal() -> String {
        format!("must be a whole number from 1 to {CREDITS_PER_MOVE_MAX}, or below zero for an adjustment")
    }
}

impl Field for Amount {
    fn read(value: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
        let amount = if let Json::Number(amount) = value { amount.as_i64() } else { None };
        let in_bounds = amount.filter(|amount| (1..=CREDITS_PER_MOVE_MAX).contains(&amount.unsigned_abs()));
        reader.accept(in_bounds.map(Self).ok_or_else(Self::refusal))
    }
}

described! { Amount: { "type": "integer", "format": "int64", "minimum": -CREDITS_PER_MOVE_MAX.cast_signed(),
"maximum": CREDITS_PER_MOVE_MAX } }

body! { response
    /// The result of a movement.
    pub struct MoveCreditsResponse {
        /// The balance of the client after the movement.
        balance: u64,
        /// The entry in the client's ledger; null while a second operator must confirm the movement, and after a
        /// refusal.
        entry: Option<StatementEntry>,
        /// The request to a second operator; only if the movement is above the setting
        /// `admin.second_person_above`.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        request: Option<GrantRequestResponse>,
    }
}

body! { response
    /// A movement of credits above the limit, which a second operator must confirm.
    #[derive(Clone)]
    pub struct GrantRequestResponse {
        /// Identifies the request.
        grant_id: GrantId,
        /// The client whose balance changes.
        client_id: ClientId,
        /// `grant` or `adjust`.
        kind: EntryKind,
        /// The number of credits; negative for `adjust` only.
        amount: i64,
        /// The reference, unique per client and kind.
        reference: String,
        /// `pending` until an operator decides, then `confirmed` or `refused`.
        state: GrantState,
        /// The id of the operator who made the request; `settings` for the token of the settings.
        asked_by: String,
        /// The name of the operator who made the request.
        asked_by_name: String,
        /// The time of the request.
        asked_at: Timestamp,
        /// The time at which an undecided request expires.
        ends_at: Timestamp,
        /// The id of the operator who decided, or null.
        decided_by: Option<String>,
        /// The name of the operator who decided, or null.
        decided_by_name: Option<String>,
        /// The time of the decision, or null.
        decided_at: Option<Timestamp>,
    }
}

impl From<GrantRequest> for GrantRequestResponse {
    fn from(request: GrantRequest) -> Self {
        let GrantRequest { id, client, movement, requested_by, requested_at, ends_at, state, decision } = request;
        let (decider, decided_at) = decision.unzip();
        let (decided_by, decided_by_name) = decider.map(|operator| (operator.id, operator.name)).unzip();
        Self {
            grant_id: id,
            client_id: client,
            kind: movement.kind,
            amount: movement.amount,
            reference: movement.reference,
            state,
            asked_by: requested_by.id,
            asked_by_name: requested_by.name,
            asked_at: requested_at,
            ends_at,
            decided_by,
            decided_by_name,
            decided_at,
        }
    }
}

described! { GrantState: { "type": "string", "enum": ["pending", "confirmed", "refused"] } }

body! { response
    /// The pending requests, and decided requests until they would have expired.
    pub struct GrantRequestsResponse {
        /// The requests, oldest first.
        requests: Vec<GrantRequestResponse>,
    }
}

body! { response
    /// The result of the audit of all ledgers.
    pub struct AuditResponse {
        /// True if no ledger has a fault.
        clean: bool,
        /// The result for each client.
        clients: Vec<AuditedClient>,
    }
}

body! { response
    /// The result of the audit of one ledger.
    #[derive(Clone)]
    pub struct AuditedClient {
        /// The client that owns the ledger.
        client_id: ClientId,
        /// The stored balance.
        balance: u64,
        /// The sum of all entries.
        sum: i64,
        /// The number of entries.
        entries: u64,
        /// The number of entries whose position, balance or sign does not follow from the previous entry.
        faults: u64,
        /// True if the ledger has no fault and its sum is the stored balance.
        clean: bool,
    }
}
