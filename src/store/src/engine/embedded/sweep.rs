//! Removal of expired records, a bounded number at a time.

use rusqlite::params;
use sakshi_domain::time::Timestamp;

use super::sql_integer;
use super::statements::{Statement, can_end, sql_for};
use crate::embedded::database::statements::Database;
use crate::engine::Table;

/// Removes at most `limit` expired records of each kind, and as many of their entries and members. A record stays in
/// its table, where no read finds it, until its last entry and member are removed. Returns the numbers removed of each
/// kind.
pub(super) fn sweep(
    db: &Database,
    tables: &[&'static Table],
    now: Timestamp,
    limit: usize,
) -> rusqlite::Result<Vec<(&'static Table, u64)>> {
    let mut swept = Vec::new();
    for table in tables.iter().copied().filter(|table| can_end(table)) {
        let limits = params![now.millis(), sql_integer(limit)];
        let ended: Vec<Vec<u8>> = db.all(&sql_for(table, Statement::Ended), limits, |row| row.get(0))?;
        let mut children: Vec<(&'static Table, u64)> = table.children().iter().map(|child| (*child, 0)).collect();
        let mut records = 0;
        for id in ended {
            let mut is_empty = true;
            for (child, removed) in &mut children {
                let allowance = (limit as u64).saturating_sub(*removed);
                let removed_now =
                    db.change(&sql_for(child, Statement::Shorten), params![id, sql_integer(allowance)])?;
                *removed += removed_now;
                is_empty &= removed_now < allowance;
            }
            if is_empty {
                records += db.change(&sql_for(table, Statement::Remove), [id])?;
            }
        }
        swept.push((table, records));
        swept.extend(children);
    }
    swept.retain(|(_, number)| *number > 0);
    Ok(swept)
}
