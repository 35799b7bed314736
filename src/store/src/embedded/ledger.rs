//! Balances and the ledger that explains them: every entry has the next number of its client and
//! says the balance after it.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Row, ToSql, params};
use sakshi_domain::credits::{CreditMove, EntryKind, LedgerEntry, balance_after};
use sakshi_domain::ids::{ClientId, TxnId};
use sakshi_domain::time::Timestamp;

use super::fault::unreadable;
use super::job::Session;
use super::terms::parsed;
use crate::transition::{Audit, CreditOutcome, Page, PageRequest};

/// A client's row and where its ledger stands.
pub(super) struct Account {
    pub(super) row: i64,
    pub(super) balance: u64,
    pub(super) entries: u64,
}

/// What an entry refers to: a debit keeps the sixteen bytes of its transaction's id.
pub(super) enum Reference {
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

impl Reference {
    fn text(&self) -> String {
        match self {
            Self::Transaction(id) => id.to_string(),
            Self::Text(text) => text.clone(),
        }
    }

    fn read(value: ValueRef<'_>) -> rusqlite::Result<Self> {
        let uuid = |bytes: &[u8]| uuid::Uuid::from_slice(bytes).map_err(|_| unreadable("a reference cannot be read"));
        match value {
            ValueRef::Blob(bytes) => Ok(Self::Transaction(TxnId::from_uuid(uuid(bytes)?))),
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

/// A column that is never negative.
pub(super) fn unsigned(row: &Row<'_>, index: usize) -> rusqlite::Result<u64> {
    u64::try_from(row.get::<_, i64>(index)?).map_err(|_| unreadable("a number is negative"))
}

/// A number for a column; beyond what SQLite counts there is nothing.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
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
        at: Timestamp::from_millis(row.get(5)?),
    })
}

pub(super) fn account(session: &Session<'_>, client: &ClientId) -> rusqlite::Result<Option<Account>> {
    let read = |row: &Row<'_>| Ok(Account { row: row.get(0)?, balance: unsigned(row, 1)?, entries: unsigned(row, 2)? });
    session.first(ACCOUNT, [client.as_str()], read)
}

/// Moves the balance and writes the entry; `None`, and nothing written, when the balance would
/// leave its range.
pub(super) fn append(
    session: &Session<'_>,
    account: &Account,
    kind: EntryKind,
    amount: i64,
    reference: &Reference,
) -> rusqlite::Result<Option<LedgerEntry>> {
    let Some(after) = balance_after(account.balance, kind, amount) else { return Ok(None) };
    let (seq, at) = (account.entries + 1, session.now());
    let (balance, number) = (signed(after), signed(seq));
    session.change(APPEND, params![account.row, number, kind_number(kind), amount, balance, reference, at.millis()])?;
    session.change(UPDATE, params![account.row, balance, number])?;
    Ok(Some(LedgerEntry { seq, kind, amount, balance_after: after, reference: reference.text(), at }))
}

pub(super) fn move_credits(session: &Session<'_>, client: &ClientId, movement: &CreditMove) -> rusqlite::Result<CreditOutcome> {
    let Some(account) = account(session, client)? else { return Ok(CreditOutcome::NotFound) };
    let reference = Reference::Text(movement.reference.clone());
    let sensible = match movement.kind {
        EntryKind::Grant => movement.amount > 0,
        EntryKind::Adjust => true,
        EntryKind::Debit => false,
    };
    if !sensible {
        return Ok(CreditOutcome::OutOfRange);
    }
    if let Some(known) = session.first(REFERRED, params![account.row, kind_number(movement.kind), reference], entry)? {
        return Ok(if known.amount == movement.amount { CreditOutcome::Moved(known) } else { CreditOutcome::ReferenceReused });
    }
    let moved = append(session, &account, movement.kind, movement.amount, &reference)?;
    Ok(moved.map_or(CreditOutcome::OutOfRange, CreditOutcome::Moved))
}

pub(super) fn balance(session: &Session<'_>, client: &ClientId) -> rusqlite::Result<Option<u64>> {
    Ok(account(session, client)?.map(|account| account.balance))
}

/// Numbers have no gaps, so a page is found by its first number.
pub(super) fn statement(session: &Session<'_>, client: &ClientId, page: PageRequest) -> rusqlite::Result<Page<LedgerEntry>> {
    let Some(account) = account(session, client)? else { return Ok(Page { items: Vec::new(), total: 0 }) };
    let items = session.all(STATEMENT, params![account.row, offset(page), page.page_size], entry)?;
    Ok(Page { items, total: account.entries })
}

/// Rows before a page.
pub(super) fn offset(page: PageRequest) -> i64 {
    i64::from(page.page.saturating_sub(1)).saturating_mul(i64::from(page.page_size))
}

pub(super) fn audit(session: &Session<'_>) -> rusqlite::Result<Vec<Audit>> {
    let accounts = session.all(ACCOUNTS, [], |row| {
        let account = Account { row: row.get(0)?, balance: unsigned(row, 2)?, entries: unsigned(row, 3)? };
        Ok((account, parsed(row, 1)?))
    })?;
    accounts.into_iter().map(|(account, client)| audit_client(session, &account, client)).collect()
}

fn audit_client(session: &Session<'_>, account: &Account, client: ClientId) -> rusqlite::Result<Audit> {
    let mut audit = Audit { client, balance: account.balance, sum: 0, entries: 0, faults: 0 };
    let mut statement = session.statement(ENTRIES)?;
    let mut rows = statement.query([account.row])?;
    while let Some(row) = rows.next()? {
        let (seq, kind, amount, after) = (unsigned(row, 0)?, kind(row, 1)?, row.get::<_, i64>(2)?, unsigned(row, 3)?);
        let before = u64::try_from(audit.sum).unwrap_or(0);
        let signed_well = amount >= 0 || kind == EntryKind::Adjust;
        audit.entries += 1;
        audit.sum = audit.sum.saturating_add(kind.signed(amount));
        audit.faults += u64::from(seq != audit.entries || balance_after(before, kind, amount) != Some(after) || !signed_well);
    }
    audit.faults += u64::from(audit.entries != account.entries);
    Ok(audit)
}
