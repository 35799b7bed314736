//! Opening a transaction: the guest's admission, the debit, the ledger entry, the row, the count of
//! the scan and the idempotency record, all or none of them.

use rusqlite::params;
use sakshi_domain::credits::EntryKind;
use sakshi_domain::transaction::Pending;

use crate::embedded::credits::{self, Appended};
use crate::embedded::database::statements::Database;
use crate::embedded::guests::{self, Gate};
use crate::embedded::idempotency::{KeyUse, keep_answer, key_use};
use crate::transactions::{OpenOutcome, OpenTransaction};

const KNOWN: &str = "SELECT 1 FROM transactions WHERE id = ?1";
const INSERT: &str =
    "INSERT INTO transactions (id, client, app, opened_at, expires_at, origin, terms, event) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

pub(crate) fn open(db: &Database, open: &OpenTransaction, sealed: &[u8]) -> rusqlite::Result<OpenOutcome> {
    let OpenTransaction { pending, cost, idempotency } = open;
    let Pending { id, client, app, opened_at, expires_at, terms, event } = &**pending;
    let account = credits::account(db, client)?;
    let opened = || OpenOutcome::Opened { balance: account.as_ref().map_or(0, |account| account.balance) };
    if db.any(KNOWN, [id.as_bytes()])? {
        return Ok(opened());
    }
    match key_use(db, idempotency.as_ref())? {
        KeyUse::Unused => {}
        KeyUse::SameBody(answer) => return Ok(OpenOutcome::Replayed(answer)),
        KeyUse::OtherBody => return Ok(OpenOutcome::KeyReused),
    }
    let now = db.now();
    let gate = event.map(|event| Gate::of_client(db, event, client, app)).transpose()?;
    let event = match gate {
        None => None,
        Some(None) => return Ok(OpenOutcome::EventNotFound),
        Some(Some(gate)) => match gate.refusal(now) {
            Some(refusal) => return Ok(OpenOutcome::EventRefused(refusal)),
            None => Some(gate.row),
        },
    };
    let (Some(account), Ok(cost)) = (&account, i64::try_from(*cost)) else { return Ok(OpenOutcome::InsufficientCredits) };
    let debit = credits::append(db, account, EntryKind::Debit, cost, id.as_bytes())?;
    let Some(Appended { balance_after: balance, .. }) = debit else { return Ok(OpenOutcome::InsufficientCredits) };
    let origin = terms.webhook_url.as_ref().map(|url| url.origin());
    let row = params![id.as_bytes(), account.row, app.as_str(), opened_at.millis(), expires_at.millis(), origin, sealed, event];
    db.change(INSERT, row)?;
    if let Some(event) = event {
        guests::scanned(db, event, now, *expires_at)?;
    }
    keep_answer(db, id.as_bytes(), idempotency.as_ref())?;
    Ok(OpenOutcome::Opened { balance })
}
