//! Balances, and the ledger that explains them: every entry has the next number of its client and
//! records the balance after it.

use rusqlite::types::ValueRef;
use rusqlite::{Row, ToSql, params};
use sakshi_domain::credits::{CreditMove, EntryKind, LedgerEntry, balance_after};
use sakshi_domain::ids::{ClientId, TxnId};
use sakshi_domain::time::Timestamp;

use super::database::statements::Database;
use super::rows::{parsed, signed, time, unsigned};
use super::store::EmbeddedStore;
use crate::credits::{Audit, CreditOutcome, Credits, is_allowed};
use crate::error::{StoreError, StoreFuture};
use crate::paging::{Page, PageRequest};

/// A client's row, its balance and the length of its ledger.
pub(crate) struct Account {
    pub(crate) row: i64,
    pub(crate) balance: u64,
    pub(crate) entries: u64,
}

/// An entry that was written just now.
pub(crate) struct Appended {
    seq: u64,
    pub(crate) balance_after: u64,
    at: Timestamp,
}

const ACCOUNT: &str = "SELECT row, balance, entries FROM clients WHERE client_id = ?1";
const APPEND: &str = "INSERT INTO ledger (client, seq, kind, amount, balance_after, reference, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
const UPDATE: &str = "UPDATE clients SET balance = ?2, entries = ?3 WHERE row = ?1";
const REFERRED: &str = "SELECT seq, kind, amount, balance_after, reference, at FROM ledger \
     WHERE client = ?1 AND kind = ?2 AND reference = ?3 AND kind <> 1";
const STATEMENT: &str =
    "SELECT seq, kind, amount, balance_after, reference, at FROM ledger WHERE client = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3";
const ACCOUNTS: &str = "SELECT row, client_id, balance, entries FROM clients ORDER BY row";
const ENTRIES: &str = "SELECT seq, kind, amount, balance_after FROM ledger WHERE client = ?1 ORDER BY seq";

impl Credits for EmbeddedStore {
    fn move_credits(&self, client: ClientId, movement: CreditMove) -> StoreFuture<CreditOutcome> {
        self.write(0, move |db| move_credits(db, &client, &movement))
    }

    fn balance(&self, client: ClientId) -> StoreFuture<Option<u64>> {
        self.read(move |db| Ok(account(db, &client)?.map(|account| account.balance)))
    }

    /// Numbers have no gaps, so a page is found by its first number.
    fn statement(&self, client: ClientId, page: PageRequest) -> StoreFuture<Page<LedgerEntry>> {
        self.read(move |db| {
            let Some(account) = account(db, &client)? else { return Ok(Page::empty()) };
            let items = db.all(STATEMENT, params![account.row, signed(page.offset()), page.page_size], entry)?;
            Ok(Page { items, total: account.entries })
        })
    }

    fn audit(&self) -> StoreFuture<Vec<Audit>> {
        self.read(audit)
    }
}

const fn kind_number(kind: EntryKind) -> i64 {
    match kind {
        EntryKind::Grant => 0,
        EntryKind::Debit => 1,
        EntryKind::Adjust => 2,
    }
}

fn kind(row: &Row<'_>, index: usize) -> rusqlite::Result<EntryKind> {
    match row.get::<_, i64>(index)? {
        0 => Ok(EntryKind::Grant),
        1 => Ok(EntryKind::Debit),
        2 => Ok(EntryKind::Adjust),
        _ => Err(StoreError::unreadable("a ledger entry").into()),
    }
}

/// What an entry refers to: for a debit the sixteen bytes of its transaction's id.
fn reference(row: &Row<'_>, index: usize) -> rusqlite::Result<String> {
    Ok(match row.get_ref(index)? {
        ValueRef::Blob(_) => TxnId::from_bytes(row.get(index)?).to_string(),
        text => text.as_str()?.into(),
    })
}

fn entry(row: &Row<'_>) -> rusqlite::Result<LedgerEntry> {
    Ok(LedgerEntry {
        seq: unsigned(row, 0)?,
        kind: kind(row, 1)?,
        amount: row.get(2)?,
        balance_after: unsigned(row, 3)?,
        reference: reference(row, 4)?,
        at: time(row, 5)?,
    })
}

pub(crate) fn account(db: &Database, client: &ClientId) -> rusqlite::Result<Option<Account>> {
    let read = |row: &Row<'_>| Ok(Account { row: row.get(0)?, balance: unsigned(row, 1)?, entries: unsigned(row, 2)? });
    db.first(ACCOUNT, [client.as_str()], read)
}

/// Moves the balance and writes the entry; `None`, and nothing written, when the balance would
/// leave its range.
pub(crate) fn append(
    db: &Database,
    account: &Account,
    kind: EntryKind,
    amount: i64,
    reference: impl ToSql,
) -> rusqlite::Result<Option<Appended>> {
    let Some(balance_after) = balance_after(account.balance, kind, amount) else { return Ok(None) };
    let (seq, at) = (account.entries + 1, db.now());
    let (balance, number) = (signed(balance_after), signed(seq));
    db.change(APPEND, params![account.row, number, kind_number(kind), amount, balance, reference, at.millis()])?;
    db.change(UPDATE, params![account.row, balance, number])?;
    Ok(Some(Appended { seq, balance_after, at }))
}

fn move_credits(db: &Database, client: &ClientId, movement: &CreditMove) -> rusqlite::Result<CreditOutcome> {
    let Some(account) = account(db, client)? else { return Ok(CreditOutcome::NotFound) };
    if !is_allowed(movement) {
        return Ok(CreditOutcome::OutOfRange);
    }
    let CreditMove { kind, amount, ref reference } = *movement;
    if let Some(known) = db.first(REFERRED, params![account.row, kind_number(kind), reference], entry)? {
        return Ok(if known.amount == amount { CreditOutcome::Moved(known) } else { CreditOutcome::ReferenceReused });
    }
    let moved = append(db, &account, kind, amount, reference)?;
    Ok(moved.map_or(CreditOutcome::OutOfRange, |Appended { seq, balance_after, at }| {
        CreditOutcome::Moved(LedgerEntry { seq, kind, amount, balance_after, reference: reference.clone(), at })
    }))
}

pub(crate) fn audit(db: &Database) -> rusqlite::Result<Vec<Audit>> {
    let accounts = db.all(ACCOUNTS, [], |row| {
        let account = Account { row: row.get(0)?, balance: unsigned(row, 2)?, entries: unsigned(row, 3)? };
        Ok((account, parsed(row, 1)?))
    })?;
    accounts.into_iter().map(|(account, client)| audit_client(db, &account, client)).collect()
}

fn audit_client(db: &Database, account: &Account, client: ClientId) -> rusqlite::Result<Audit> {
    let mut audit = Audit::new(client, account.balance);
    let mut statement = db.statement(ENTRIES)?;
    let mut rows = statement.query([account.row])?;
    while let Some(row) = rows.next()? {
        audit.add(unsigned(row, 0)?, kind(row, 1)?, row.get(2)?, unsigned(row, 3)?);
    }
    Ok(audit.finish(account.entries))
}
