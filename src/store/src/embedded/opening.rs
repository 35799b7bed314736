//! Opening a transaction: the guest's admission, the debit, the ledger entry, the row, the count of
//! the scan and the idempotency record, all or none of them.

use std::sync::Arc;

use rusqlite::params;
use sakshi_domain::credits::EntryKind;
use sakshi_domain::transaction::Pending;

use super::guests::{self, Gate};
use super::idempotency::{Repetition, keep, repetition};
use super::job::Session;
use super::ledger::{self, Reference};
use crate::transition::{IdempotentAnswer, OpenOutcome};

/// A transaction to be opened, ready for its row.
pub(super) struct Opening {
    pub(super) pending: Arc<Pending>,
    pub(super) terms: Vec<u8>,
    pub(super) origin: Option<String>,
    pub(super) cost: u64,
    pub(super) idempotency: Option<IdempotentAnswer>,
}

const KNOWN: &str = "SELECT 1 FROM transactions WHERE id = ?1";
const INSERT: &str =
    "INSERT INTO transactions (id, client, app, opened_at, expires_at, origin, terms, event) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

pub(super) fn open(session: &Session<'_>, opening: &Opening) -> rusqlite::Result<OpenOutcome> {
    let Opening { pending, origin, terms, idempotency, .. } = opening;
    let Pending { id, client, app, opened_at, expires_at, .. } = &**pending;
    let account = ledger::account(session, client)?;
    let opened = || OpenOutcome::Opened { balance: account.as_ref().map_or(0, |account| account.balance) };
    if session.first(KNOWN, [id.as_bytes()], |_| Ok(()))?.is_some() {
        return Ok(opened());
    }
    match repetition(session, id.as_bytes(), idempotency.as_ref())? {
        Repetition::None => {}
        Repetition::OfThis => return Ok(opened()),
        Repetition::OfAnother(answer) => return Ok(OpenOutcome::Replayed(answer)),
        Repetition::WithAnotherBody => return Ok(OpenOutcome::KeyReused),
    }
    let now = session.now();
    let gate = pending.event.map(|event| Gate::of_client(session, event, client, app)).transpose()?;
    let event = match gate {
        None => None,
        Some(None) => return Ok(OpenOutcome::EventNotFound),
        Some(Some(gate)) => match gate.refusal(now) {
            Some(refusal) => return Ok(OpenOutcome::EventRefused(refusal)),
            None => Some(gate.row),
        },
    };
    let Some(account) = &account else { return Ok(OpenOutcome::InsufficientCredits) };
    let Ok(cost) = i64::try_from(opening.cost) else { return Ok(OpenOutcome::InsufficientCredits) };
    let reference = Reference::Transaction(*id);
    let Some(entry) = ledger::append(session, account, EntryKind::Debit, cost, &reference)? else {
        return Ok(OpenOutcome::InsufficientCredits);
    };
    let row = params![id.as_bytes(), account.row, app.as_str(), opened_at.millis(), expires_at.millis(), origin, terms, event];
    session.change(INSERT, row)?;
    if let Some(event) = event {
        guests::scanned(session, event, now, *expires_at)?;
    }
    keep(session, id.as_bytes(), idempotency.as_ref())?;
    Ok(OpenOutcome::Opened { balance: entry.balance_after })
}
