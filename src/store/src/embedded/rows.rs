//! Columns as the values that they hold.

use std::str::FromStr;

use rusqlite::Row;
use sakshi_domain::time::Timestamp;

use crate::error::StoreError;
use crate::vault::Sealed;

/// A text column as the identifier that it holds.
pub(crate) fn parsed<T: FromStr>(row: &Row<'_>, index: usize) -> rusqlite::Result<T> {
    row.get_ref(index)?.as_str()?.parse().map_err(|_| StoreError::unreadable("an identifier").into())
}

/// A column that is never negative.
pub(crate) fn unsigned(row: &Row<'_>, index: usize) -> rusqlite::Result<u64> {
    u64::try_from(row.get::<_, i64>(index)?).map_err(|_| StoreError::Corrupt("a number is negative".into()).into())
}

/// A number for a column, cut to SQLite's range.
pub(crate) fn signed(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// A column of milliseconds.
pub(crate) fn time(row: &Row<'_>, index: usize) -> rusqlite::Result<Timestamp> {
    row.get(index).map(Timestamp::from_millis)
}

/// A column of milliseconds that may be empty.
pub(crate) fn optional_time(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<Timestamp>> {
    Ok(row.get::<_, Option<i64>>(index)?.map(Timestamp::from_millis))
}

/// A column that stays sealed.
pub(crate) fn sealed(row: &Row<'_>, index: usize) -> rusqlite::Result<Sealed> {
    Sealed::from_bytes(row.get::<_, Vec<u8>>(index)?).ok_or_else(|| StoreError::unreadable("a sealed record").into())
}
