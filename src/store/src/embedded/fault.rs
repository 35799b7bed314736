//! What SQLite's errors mean for a caller, and the memory of an error from which there is no
//! recovery.
//!
//! Messages carry SQLite's own words for a result code and never a statement or a value.

use std::sync::OnceLock;

use rusqlite::types::Type;
use rusqlite::{Error, ErrorCode};

use crate::error::StoreError;

/// Whether the file has shown damage; once it has, every call answers so.
#[derive(Debug, Default)]
pub(super) struct Health(OnceLock<StoreError>);

impl Health {
    /// The damage seen before, if any.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        self.0.get().map_or(Ok(()), |damage| Err(damage.clone()))
    }

    /// Translates an error, and remembers it when the file itself is damaged.
    pub(super) fn judge(&self, error: &Error) -> StoreError {
        let verdict = translate(error);
        if is_damage(error) {
            tracing::error!(error = %verdict, "the store has stopped: its file is damaged");
            return self.0.get_or_init(|| verdict).clone();
        }
        verdict
    }
}

fn is_damage(error: &Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

fn translate(error: &Error) -> StoreError {
    match error {
        Error::SqliteFailure(failure, _) => {
            let words = rusqlite::ffi::code_to_str(failure.extended_code);
            match failure.code {
                ErrorCode::DiskFull | ErrorCode::OutOfMemory => StoreError::Full,
                ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => StoreError::Corrupt(words.into()),
                _ => unavailable(words),
            }
        }
        Error::FromSqlConversionFailure(_, _, reason) => StoreError::Corrupt(reason.to_string()),
        Error::InvalidColumnType(..) | Error::IntegralValueOutOfRange(..) => StoreError::Corrupt("a record cannot be read".into()),
        _ => unavailable("a statement was refused"),
    }
}

/// What an error at the opening of the file means.
pub(super) fn open_error(error: &Error) -> StoreError {
    translate(error)
}

/// A store that cannot answer now.
pub(super) fn unavailable(why: impl Into<String>) -> StoreError {
    StoreError::Unavailable(why.into())
}

/// A row that breaks what the schema promises.
pub(super) fn unreadable(what: &'static str) -> Error {
    Error::FromSqlConversionFailure(0, Type::Blob, what.into())
}
