//! Sealing again what is sealed under an old key: a table after the other, in the order of their rows. Reading, sealing and
//! writing are three steps, so that the writer's thread only writes.

use rusqlite::params;
use rusqlite::types::ValueRef;

use super::database::statements::Database;
use super::rows::{signed, unsigned};
use super::store::EmbeddedStore;
use crate::error::StoreFuture;
use crate::reseal::{Reseal, ResealCursor, Resealed, sealed_anew};
use crate::vault::EncryptionKeyId;

/// Bytes that one step reads, but for its last value.
const STEP_BYTES: usize = 4 * 1_024 * 1_024;

/// A column of sealed values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SealedColumn {
    pub(crate) table: &'static str,
    pub(crate) column: &'static str,
    /// The integer that begins its rows' key; 0 when there is none.
    row: &'static str,
    /// The blob that ends it; empty when there is none.
    name: &'static str,
    /// For whom a value is sealed.
    owner: &'static str,
    /// The table with those that know the owner.
    from: &'static str,
}

const fn column(table: &'static str, column: &'static str, row: &'static str, owner: &'static str) -> SealedColumn {
    SealedColumn { table, column, row, name: "x''", owner, from: table }
}

/// Every column of sealed values. Events come before the deliveries that copy their addresses.
pub(crate) const COLUMNS: [SealedColumn; 17] = [
    column("canary", "box", "row", "CAST('sakshi store canary 1' AS BLOB)"),
    column("operators", "box", "rowid", "CAST(operator_id AS BLOB)"),
    column("apps", "record", "row", "CAST(app_id AS BLOB)"),
    column("apps", "urls", "row", "CAST(app_id AS BLOB)"),
    column("events", "terms", "row", "id"),
    column("events", "webhook", "row", "id"),
    column("transactions", "terms", "row", "id"),
    SealedColumn { from: "results JOIN transactions t ON t.row = results.txn", ..column("results", "outcome", "txn", "t.id") },
    column("registrations", "outcome", "row", "txn"),
    column("idempotency", "answer", "row", "scope"),
    column("flows", "standing", "row", "id"),
    SealedColumn { name: "name", from: "fetches JOIN flows f ON f.row = fetches.flow", ..column("fetches", "standing", "flow", "f.id") },
    column("reports", "payload", "row", "CAST(flow || name AS BLOB)"),
    SealedColumn {
        from: "deliveries LEFT JOIN reports p ON p.row = deliveries.report LEFT JOIN transactions t ON t.row = deliveries.txn \
               LEFT JOIN events e ON e.row = t.event",
        ..column("deliveries", "address", "id", "coalesce(p.flow, e.id)")
    },
    SealedColumn { name: "digest", ..column("sessions", "box", "0", "digest") },
    column("refusals", "box", "row", "CAST(app AS BLOB)"),
    column("audit_log", "box", "number", "CAST('audit:' || number AS BLOB)"),
];

impl SealedColumn {
    fn has_row(&self) -> bool {
        self.row != "0"
    }

    fn has_name(&self) -> bool {
        self.name != "x''"
    }

    /// The key of a row in comparison with one that is given.
    fn key(&self, comparison: &str, row: &str, name: &str) -> String {
        let Self { table, row: of_row, name: of_name, .. } = self;
        match (self.has_row(), self.has_name()) {
            (true, true) => format!("({table}.{of_row}, {table}.{of_name}) {comparison} ({row}, {name})"),
            (true, false) => format!("{table}.{of_row} {comparison} {row} AND {name} IS NOT NULL"),
            (false, _) => format!("{table}.{of_name} {comparison} {name} AND {row} IS NOT NULL"),
        }
    }

    /// Selects values after a key, in its order.
    pub(crate) fn select(&self) -> String {
        let Self { table, column, row, name, owner, from } = self;
        let row = if self.has_row() { format!("{table}.{row}") } else { (*row).to_owned() };
        let name = if self.has_name() { format!("{table}.{name}") } else { (*name).to_owned() };
        let order = if self.has_row() && self.has_name() {
            format!("{row}, {name}")
        } else if self.has_row() {
            row.clone()
        } else {
            name.clone()
        };
        let after = self.key(">", "?1", "?2");
        format!("SELECT {row}, {name}, {owner}, {table}.{column} FROM {from} WHERE {after} ORDER BY {order} LIMIT ?3")
    }

    /// Replaces a value that is still what was read.
    pub(crate) fn replace(&self) -> String {
        let Self { table, column, .. } = self;
        let is = self.key("=", "?1", "?2");
        format!("UPDATE {table} SET {column} = ?4 WHERE {is} AND {column} = ?3")
    }
}

/// A value under an old key.
struct Old {
    row: i64,
    name: Vec<u8>,
    owner: Vec<u8>,
    sealed: Vec<u8>,
}

/// A value under the key that seals, and the one that it replaces.
struct Replacement {
    old: Old,
    fresh: Vec<u8>,
}

impl Reseal for EmbeddedStore {
    fn reseal(&self, from: ResealCursor, limit: usize) -> StoreFuture<Resealed> {
        let store = self.clone();
        Box::pin(async move {
            let Some(column) = COLUMNS.get(usize::from(from.part)).copied() else { return Ok(Resealed::default()) };
            let (mut step, old) = store.read(move |db| look(db, column, &from, limit)).await?;
            if old.is_empty() {
                return Ok(step);
            }
            let vault = store.vault().clone();
            let work = move || {
                let mut ready = Vec::with_capacity(old.len());
                for old in old {
                    match sealed_anew(&vault, &old.owner, &old.sealed) {
                        Some(fresh) => ready.push(Replacement { old, fresh }),
                        None => step.leave(&old.sealed),
                    }
                }
                (step, ready)
            };
            let (mut step, ready) = store.apart(work).await?;
            let weight = ready.iter().map(|replacement| replacement.fresh.len()).sum();
            step.resealed = store.write(weight, move |db| replace(db, column, &ready)).await?;
            Ok(step)
        })
    }

    fn sealing_key(&self) -> EncryptionKeyId {
        self.vault().sealing_key()
    }
}

/// Some values after a place, of which those under an old key are returned.
fn look(db: &Database, column: SealedColumn, from: &ResealCursor, limit: usize) -> rusqlite::Result<(Resealed, Vec<Old>)> {
    let (mut step, mut old, mut last) = (Resealed::default(), Vec::new(), from.clone());
    let (mut rows_read, mut room) = (0, STEP_BYTES);
    let mut statement = db.statement(&column.select())?;
    let mut rows = statement.query(params![signed(from.number), from.name, signed(limit)])?;
    let mut is_over = true;
    while let Some(row) = rows.next()? {
        rows_read += 1;
        last = ResealCursor { number: unsigned(row, 0)?, name: row.get(1)?, ..last };
        // A value that is not there, or that is kept elsewhere, is not sealed.
        if let ValueRef::Blob(sealed) = row.get_ref(3)?
            && !sealed.is_empty()
        {
            step.looked_at += 1;
            room = room.saturating_sub(sealed.len());
            if !db.vault.seals_like(sealed) {
                let owner = row.get::<_, Option<Vec<u8>>>(2)?.unwrap_or_default();
                old.push(Old { row: signed(last.number), name: last.name.clone(), owner, sealed: sealed.to_vec() });
            }
        }
        if room == 0 {
            is_over = false;
            break;
        }
    }
    is_over &= rows_read < limit;
    let after = ResealCursor { part: from.part + 1, ..ResealCursor::default() };
    let next = if is_over { Some(after).filter(|next| usize::from(next.part) < COLUMNS.len()) } else { Some(last) };
    step.next = next;
    Ok((step, old))
}

/// Writes the replacements and returns how many. A value that has changed meanwhile is under the key that seals.
fn replace(db: &Database, column: SealedColumn, ready: &[Replacement]) -> rusqlite::Result<u64> {
    let sql = column.replace();
    let mut replaced = 0;
    for Replacement { old: Old { row, name, sealed, .. }, fresh } in ready {
        replaced += db.change(&sql, params![row, name, sealed, fresh])?;
    }
    Ok(replaced)
}
