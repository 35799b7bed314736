//! Balances, and the ledger that explains them: every entry has the next number of its client and
//! records the balance after it.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Row, ToSql, params};
use sakshi_domain::credits::{CreditMove, EntryKind, LedgerEntry, balance_after};
use sakshi_domain::ids::{ClientId, TxnId};

use super::database::statements::Database;
use super::errors::unreadable;
use super::rows::{parsed, signed, time, unsigned};
use super::store::EmbeddedStore;
use crate::credits::{Audit, CreditOutcome, Credits, is_allowed};
use crate::error::StoreFuture;
use crate::paging::{Page, PageRequest};

/// A client's row, its balance and the length of its ledger.
pub(crate) struct Account {
    pub(crate) row: i64,
    pub(crate) balance: u64,
    pub(crate) entries: u64,
}

/// What an entry refers to: for a debit the sixteen bytes of its transaction's id.
pub(crate) enum Reference {
    Transaction(TxnId),
    Text(String),
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
        self.write(0, move |db| move_credits(db, &client, &movement), |outcome, _| Ok(outcome))
    }

    fn balance(&self, client: ClientId) -> StoreFuture<Option<u64>> {
        self.read(move |db| account(db, &client), |account, _| Ok(account.map(|account| account.balance)))
    }

    /// Numbers have no gaps, so a page is found by its first number.
    fn statement(&self, client: ClientId, page: PageRequest) -> StoreFuture<Page<LedgerEntry>> {
        let statement = move |db: &Database<'_>| {
            let Some(account) = account(db, &client)? else { return Ok(Page::empty()) };
            let items = db.all(STATEMENT, params![account.row, signed(page.offset()), page.page_size], entry)?;
            Ok(Page { items, total: account.entries })
        };
        self.read(statement, |page, _| Ok(page))
    }

    fn audit(&self) -> StoreFuture<Vec<Audit>> {
        self.read(audit, |audits, _| Ok(audits))
    }
}

impl Reference {
    fn text(&self) -> String {
        match self {
            Self::Transaction(id) => id.to_string(),
            Self::Text(text) => text.clone(),
        }
    }

    fn read(value: ValueRef<'_>) -> rusqlite::Result<Self> {
        let unreadable = |_| unreadable("a reference cannot be read");
        match value {
            ValueRef::Blob(bytes) => Ok(Self::Transaction(TxnId::from_bytes(bytes.try_into().map_err(unreadable)?))),
            value => Ok(Self::Text(value.as_str()?.into())),
        }
    }
}

impl ToSql for Reference {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Transaction(id) => ToSqlOutput::Borrowed(ValueRef::Blob(id.as_bytes())),
            Self::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
        })
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
        _ => Err(unreadable("a ledger entry is of no known kind")),
    }
}

fn entry(row: &Row<'_>) -> rusqlite::Result<LedgerEntry> {
    Ok(LedgerEntry {
        seq: unsigned(row, 0)?,
        kind: kind(row, 1)?,
        amount: row.get(2)?,
        balance_after: unsigned(row, 3)?,
        reference: Reference::read(row.get_ref(4)?)?.text(),
        at: time(row, 5)?,
    })
}

pub(crate) fn account(db: &Database<'_>, client: &ClientId) -> rusqlite::Result<Option<Account>> {
    let read = |row: &Row<'_>| Ok(Account { row: row.get(0)?, balance: unsigned(row, 1)?, entries: unsigned(row, 2)? });
    db.first(ACCOUNT, [client.as_str()], read)
}

/// Moves the balance and writes the entry; `None`, and nothing written, when the balance would
/// leave its range.
pub(crate) fn append(
    db: &Database<'_>,
    account: &Account,
    kind: EntryKind,
    amount: i64,
    reference: &Reference,
) -> rusqlite::Result<Option<LedgerEntry>> {
    let Some(after) = balance_after(account.balance, kind, amount) else { return Ok(None) };
    let (seq, at) = (account.entries + 1, db.now());
    let (balance, number) = (signed(after), signed(seq));
    db.change(APPEND, params![account.row, number, kind_number(kind), amount, balance, reference, at.millis()])?;
    db.change(UPDATE, params![account.row, balance, number])?;
    Ok(Some(LedgerEntry { seq, kind, amount, balance_after: after, reference: reference.text(), at }))
}

fn move_credits(db: &Database<'_>, client: &ClientId, movement: &CreditMove) -> rusqlite::Result<CreditOutcome> {
    let Some(account) = account(db, client)? else { return Ok(CreditOutcome::NotFound) };
    if !is_allowed(movement) {
        return Ok(CreditOutcome::OutOfRange);
    }
    let reference = Reference::Text(movement.reference.clone());
    if let Some(known) = db.first(REFERRED, params![account.row, kind_number(movement.kind), reference], entry)? {
        return Ok(if known.amount == movement.amount { CreditOutcome::Moved(known) } else { CreditOutcome::ReferenceReused });
    }
    let moved = append(db, &account, movement.kind, movement.amount, &reference)?;
    Ok(moved.map_or(CreditOutcome::OutOfRange, CreditOutcome::Moved))
}

fn audit(db: &Database<'_>) -> rusqlite::Result<Vec<Audit>> {
    let accounts = db.all(ACCOUNTS, [], |row| {
        let account = Account { row: row.get(0)?, balance: unsigned(row, 2)?, entries: unsigned(row, 3)? };
        Ok((account, parsed(row, 1)?))
    })?;
    accounts.into_iter().map(|(account, client)| audit_client(db, &account, client)).collect()
}

fn audit_client(db: &Database<'_>, account: &Account, client: ClientId) -> rusqlite::Result<Audit> {
    let mut audit = Audit::new(client, account.balance);
    let mut statement = db.statement(ENTRIES)?;
    let mut rows = statement.query([account.row])?;
    while let Some(row) = rows.next()? {
        audit.add(unsigned(row, 0)?, kind(row, 1)?, row.get(2)?, unsigned(row, 3)?);
    }
    Ok(audit.finish(account.entries))
}
