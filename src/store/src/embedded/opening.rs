//! Opening a transaction: the debit, the ledger entry, the row and the idempotency record, all or
//! none of them.

use rusqlite::params;
use sakshi_domain::credits::EntryKind;
use sakshi_domain::ids::{AppId, ClientId, TxnId};
use sakshi_domain::time::Timestamp;

use super::fault::unreadable;
use super::job::Session;
use super::ledger::{self, Reference};
use crate::transition::{IdempotencyScope, IdempotentAnswer, OpenOutcome};
use crate::vault::Sealed;

/// A transaction to be opened, ready for its row.
pub(super) struct Opening {
    pub(super) id: TxnId,
    pub(super) client: ClientId,
    pub(super) app: AppId,
    pub(super) opened_at: Timestamp,
    pub(super) expires_at: Timestamp,
    pub(super) terms: Vec<u8>,
    pub(super) origin: Option<String>,
    pub(super) cost: u64,
    pub(super) idempotency: Option<IdempotentAnswer>,
}

const KNOWN: &str = "SELECT 1 FROM transactions WHERE id = ?1";
const INSERT: &str = "INSERT INTO transactions (id, client, app, opened_at, expires_at, origin, terms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
const ANSWERED: &str = "SELECT txn, request, answer, until FROM idempotency WHERE scope = ?1 AND until > ?2";
const KEEP: &str = "INSERT OR REPLACE INTO idempotency (scope, request, txn, until, answer) VALUES (?1, ?2, ?3, ?4, ?5)";

pub(super) fn open(session: &Session<'_>, opening: &Opening) -> rusqlite::Result<OpenOutcome> {
    let account = ledger::account(session, &opening.client)?;
    let opened = || OpenOutcome::Opened { balance: account.as_ref().map_or(0, |account| account.balance) };
    if session.first(KNOWN, [opening.id.as_bytes()], |_| Ok(()))?.is_some() {
        return Ok(opened());
    }
    if let Some(asked) = &opening.idempotency
        && let Some((txn, kept)) = answered(session, &asked.scope)?
    {
        return Ok(match kept {
            _ if txn == *opening.id.as_bytes() => opened(),
            kept if kept.request == asked.request => OpenOutcome::Replayed(kept.answer),
            _ => OpenOutcome::KeyReused,
        });
    }
    let Some(account) = &account else { return Ok(OpenOutcome::InsufficientCredits) };
    let Ok(cost) = i64::try_from(opening.cost) else { return Ok(OpenOutcome::InsufficientCredits) };
    let reference = Reference::Transaction(opening.id);
    let Some(entry) = ledger::append(session, account, EntryKind::Debit, cost, &reference)? else {
        return Ok(OpenOutcome::InsufficientCredits);
    };
    let Opening { id, app, opened_at, expires_at, origin, terms, .. } = opening;
    session.change(INSERT, params![id.as_bytes(), account.row, app.as_str(), opened_at.millis(), expires_at.millis(), origin, terms])?;
    if let Some(IdempotentAnswer { scope, request, answer, until }) = &opening.idempotency {
        session.change(KEEP, params![scope.0, request, id.as_bytes(), until.millis(), answer.to_bytes()])?;
    }
    Ok(OpenOutcome::Opened { balance: entry.balance_after })
}

/// The unexpired answer under a scope, and the transaction that it opened.
pub(super) fn answered(session: &Session<'_>, scope: &IdempotencyScope) -> rusqlite::Result<Option<([u8; 16], IdempotentAnswer)>> {
    session.first(ANSWERED, params![scope.0, session.now().millis()], |row| {
        let answer = Sealed::from_bytes(row.get_ref(2)?.as_blob()?).ok_or_else(|| unreadable("a kept answer cannot be read"))?;
        Ok((row.get(0)?, IdempotentAnswer { scope: *scope, request: row.get(1)?, answer, until: Timestamp::from_millis(row.get(3)?) }))
    })
}
