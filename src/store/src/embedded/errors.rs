//! What SQLite's errors mean for a caller, and the memory of damage, from which there is no recovery.
//!
//! Messages contain SQLite's own text for a result code and never a statement or a value.

use std::sync::OnceLock;

use rusqlite::types::Type;
use rusqlite::{Error, ErrorCode};

use crate::error::StoreError;

/// Whether the file has shown damage. Once it has, every call fails with it.
#[derive(Debug, Default)]
pub(crate) struct Health(OnceLock<StoreError>);

impl Health {
    /// The damage seen before, if any.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        self.0.get().map_or(Ok(()), |damage| Err(damage.clone()))
    }

    /// Translates an error, and remembers it when the file itself is damaged.
    pub(crate) fn judge(&self, error: &Error) -> StoreError {
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

/// The error of the store that an error of SQLite means.
pub(crate) fn translate(error: &Error) -> StoreError {
    match error {
        Error::SqliteFailure(failure, _) => {
            let text = rusqlite::ffi::code_to_str(failure.extended_code);
            match failure.code {
                ErrorCode::DiskFull | ErrorCode::OutOfMemory => StoreError::Full,
                ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => StoreError::Corrupt(text.into()),
                _ => unavailable(text),
            }
        }
        Error::FromSqlConversionFailure(_, _, reason) => {
            reason.downcast_ref().cloned().unwrap_or_else(|| StoreError::Corrupt(reason.to_string()))
        }
        Error::InvalidColumnType(..) | Error::IntegralValueOutOfRange(..) => StoreError::Corrupt("a record cannot be read".into()),
        _ => unavailable("a statement was refused"),
    }
}

/// A store that cannot answer now.
pub(crate) fn unavailable(why: impl Into<String>) -> StoreError {
    StoreError::Unavailable(why.into())
}

/// An error for a value that the vault cannot seal or open within an operation.
pub(crate) fn not_sealed(error: StoreError) -> Error {
    Error::FromSqlConversionFailure(0, Type::Blob, error.into())
}

/// A row that breaks what the schema promises.
pub(crate) fn unreadable(what: &'static str) -> Error {
    Error::FromSqlConversionFailure(0, Type::Blob, what.into())
}
