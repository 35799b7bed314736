//! The trait that every store implements: the sum of one trait for each kind of record.

use std::fmt::Debug;

use crate::audit_log::AuditLog;
use crate::credits::Credits;
use crate::erasure::Erasure;
use crate::events::Events;
use crate::flows::Flows;
use crate::idempotency::Idempotency;
use crate::intent_key::IntentKeyChoice;
use crate::operators::Operators;
use crate::outbox::Outbox;
use crate::refusals::Refusals;
use crate::reseal::Reseal;
use crate::sessions::Sessions;
use crate::tenancy::Tenancy;
use crate::transactions::Transactions;
use crate::transfers::Transfers;
use crate::upkeep::Upkeep;

/// Named, atomic, repeatable operations.
///
/// A future that is dropped may or may not have taken effect; one that answers `Ok` is durable.
pub trait Store:
    Transactions
    + Idempotency
    + Events
    + Flows
    + Credits
    + Tenancy
    + Transfers
    + Sessions
    + Refusals
    + AuditLog
    + Operators
    + Erasure
    + Outbox
    + Upkeep
    + Reseal
    + IntentKeyChoice
    + Debug
    + Send
    + Sync
    + 'static
{
}

impl<S> Store for S where
    S: Transactions
        + Idempotency
        + Events
        + Flows
        + Credits
        + Tenancy
        + Transfers
        + Sessions
        + Refusals
        + AuditLog
        + Operators
        + Erasure
        + Outbox
        + Upkeep
        + Reseal
        + IntentKeyChoice
        + Debug
        + Send
        + Sync
        + 'static
{
}
