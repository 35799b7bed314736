//! Opening a transaction: the guest's admission, the debit, the ledger entry, the row, the count of
//! the scan and the idempotency record, all or none of them.

use std::sync::Arc;

use rusqlite::params;
use sakshi_domain::credits::EntryKind;
use sakshi_domain::transaction::Pending;

use crate::embedded::credits::{self, Reference};
use crate::embedded::database::statements::Database;
use crate::embedded::guests::{self, Gate};
use crate::embedded::idempotency::{KeyUse, keep_answer, key_use};
use crate::error::StoreError;
use crate::idempotency::{self, IdempotentAnswer};
use crate::sealing::seal_terms;
use crate::transactions::{OpenOutcome, OpenTransaction};
use crate::vault::Vault;

/// A transaction to be opened, its terms sealed.
pub(crate) struct Opening {
    pending: Arc<Pending>,
    terms: Vec<u8>,
    origin: Option<String>,
    cost: u64,
    idempotency: Option<IdempotentAnswer>,
}

impl Opening {
    pub(crate) fn sealed(vault: &Vault, open: OpenTransaction) -> Result<Self, StoreError> {
        let OpenTransaction { pending, cost, idempotency } = open;
        let origin = pending.terms.webhook_url.as_ref().map(|url| url.origin());
        let terms = seal_terms(vault, pending.id, &pending.terms)?;
        Ok(Self { pending, terms, origin, cost, idempotency })
    }

    /// Bytes to be written, roughly.
    pub(crate) fn weight(&self) -> usize {
        self.terms.len() + idempotency::weight(self.idempotency.as_ref())
    }
}

const KNOWN: &str = "SELECT 1 FROM transactions WHERE id = ?1";
const INSERT: &str =
    "INSERT INTO transactions (id, client, app, opened_at, expires_at, origin, terms, event) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

pub(crate) fn open(db: &Database<'_>, opening: &Opening) -> rusqlite::Result<OpenOutcome> {
    let Opening { pending, origin, terms, idempotency, .. } = opening;
    let Pending { id, client, app, opened_at, expires_at, .. } = &**pending;
    let account = credits::account(db, client)?;
    let opened = || OpenOutcome::Opened { balance: account.as_ref().map_or(0, |account| account.balance) };
    if db.any(KNOWN, [id.as_bytes()])? {
        return Ok(opened());
    }
    match key_use(db, id.as_bytes(), idempotency.as_ref())? {
        KeyUse::Unused => {}
        KeyUse::SameSubject => return Ok(opened()),
        KeyUse::SameBody(answer) => return Ok(OpenOutcome::Replayed(answer)),
        KeyUse::OtherBody => return Ok(OpenOutcome::KeyReused),
    }
    let now = db.now();
    let gate = pending.event.map(|event| Gate::of_client(db, event, client, app)).transpose()?;
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
    let Some(entry) = credits::append(db, account, EntryKind::Debit, cost, &reference)? else {
        return Ok(OpenOutcome::InsufficientCredits);
    };
    let row = params![id.as_bytes(), account.row, app.as_str(), opened_at.millis(), expires_at.millis(), origin, terms, event];
    db.change(INSERT, row)?;
    if let Some(event) = event {
        guests::scanned(db, event, now, *expires_at)?;
    }
    keep_answer(db, id.as_bytes(), idempotency.as_ref())?;
    Ok(OpenOutcome::Opened { balance: entry.balance_after })
}
