//! Removal of expired records, a bounded number at a time.

use rusqlite::params;
use sakshi_domain::time::Timestamp;

use super::bound;
use super::statements::{Statement, can_end, text};
use crate::embedded::database::statements::Database;
use crate::engine::Table;

/// Removes at most `limit` expired records of each kind, and as many of their entries and members. A record stays,
/// unseen, until none of its entries and members is left.
pub(super) fn sweep(
    db: &Database,
    tables: &[&'static Table],
    now: Timestamp,
    limit: usize,
) -> rusqlite::Result<Vec<(&'static Table, u64)>> {
    let mut swept = Vec::new();
    for table in tables.iter().copied().filter(|table| can_end(table)) {
        let limits = params![now.millis(), bound(limit)];
        let ended: Vec<Vec<u8>> = db.all(&text(table, Statement::Ended), limits, |row| row.get(0))?;
        let mut children: Vec<(&'static Table, u64)> = table.children().iter().map(|child| (*child, 0)).collect();
        let mut records = 0;
        for id in ended {
            let mut is_empty = true;
            for (child, removed) in &mut children {
                let left = (limit as u64).saturating_sub(*removed);
                let more = db.change(&text(child, Statement::Shorten), params![id, bound(left)])?;
                *removed += more;
                is_empty &= more < left;
            }
            if is_empty {
                records += db.change(&text(table, Statement::Remove), [id])?;
            }
        }
        swept.push((table, records));
        swept.extend(children);
    }
    swept.retain(|(_, number)| *number > 0);
    Ok(swept)
}
