//! `sakshi admin credits`: balances and ledgers.

use clap::Subcommand;
use sakshi_client::{Call, internal};
use sakshi_wire::operator::credits::MoveCreditsResponse;
use serde_json::{Value, json};

use super::admin::{Paging, View, send_call};
use super::api::Api;
use super::error::CliError;

/// Columns of a ledger.
pub(super) const ENTRY: &[&str] = &["seq", "kind", "amount", "balance_after", "reference", "at"];
/// Columns of the audit of all ledgers.
pub(super) const AUDIT: &[&str] = &["client_id", "balance", "sum", "entries", "faults", "clean"];
/// Columns of a grant request.
pub(super) const GRANT_REQUEST: &[&str] = &[
    "grant_id",
    "client_id",
    "kind",
    "amount",
    "reference",
    "state",
    "asked_by_name",
    "asked_at",
    "ends_at",
    "decided_by_name",
];

#[derive(Debug, Subcommand)]
pub(super) enum Credits {
    /// Add credits; the same reference again changes nothing. A large grant may wait for a second operator.
    Grant {
        /// Id of the client.
        client_id: String,
        /// Number of credits.
        amount: i64,
        /// Your reference, such as an invoice number.
        #[arg(long)]
        reference: String,
    },
    /// Correct the balance, up or down.
    Adjust {
        /// Id of the client.
        client_id: String,
        /// Number of credits.
        #[arg(allow_negative_numbers = true)]
        amount: i64,
        /// Your reference, such as an invoice number.
        #[arg(long)]
        reference: String,
    },
    /// List grants that wait for a second operator.
    Requests,
    /// Confirm a grant that another operator requested.
    Confirm {
        /// Id of the request.
        grant_id: String,
    },
    /// Refuse a pending grant, or withdraw your own.
    Refuse {
        /// Id of the request.
        grant_id: String,
    },
    /// Show the balance.
    Balance {
        /// Id of the client.
        client_id: String,
    },
    /// Show the ledger, oldest entry first.
    Statement {
        /// Id of the client.
        client_id: String,
        #[command(flatten)]
        paging: Paging,
    },
    /// Recompute every ledger; exit code 1 when one does not add up.
    Audit,
}

impl Credits {
    /// Sends the command's request to the service.
    pub(super) async fn send(&self, api: &Api) -> Result<(Value, View), CliError> {
        match self {
            Self::Grant { client_id, amount, reference } => {
                send_call(api, movement(client_id, "grant", *amount, reference), View::Pairs).await
            }
            Self::Adjust { client_id, amount, reference } => {
                send_call(api, movement(client_id, "adjust", *amount, reference), View::Pairs).await
            }
            Self::Requests => send_call(api, internal::grant_requests(), View::Rows("requests", GRANT_REQUEST)).await,
            Self::Confirm { grant_id } => send_call(api, internal::confirm_grant(grant_id), View::Pairs).await,
            Self::Refuse { grant_id } => send_call(api, internal::refuse_grant(grant_id), View::Pairs).await,
            Self::Balance { client_id } => send_call(api, internal::balance(client_id), View::Pairs).await,
            Self::Statement { client_id, paging } => {
                send_call(api, internal::statement(client_id, paging.page()), View::Rows("entries", ENTRY)).await
            }
            Self::Audit => send_call(api, internal::audit(), View::Rows("clients", AUDIT)).await,
        }
    }
}

/// Builds the call that moves credits; `kind` is `grant` or `adjust`.
fn movement(client: &str, kind: &str, amount: i64, reference: &str) -> Call<MoveCreditsResponse> {
    internal::move_credits(client, &json!({ "kind": kind, "amount": amount, "reference": reference }))
}
