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
    pub(crate) fn judge(&self, error: Error) -> StoreError {
        let damaged = matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase));
        let verdict = StoreError::from(error);
        if damaged {
            tracing::error!(error = %verdict, "the store has stopped: its file is damaged");
            return self.0.get_or_init(|| verdict).clone();
        }
        verdict
    }
}

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        match error {
            Error::SqliteFailure(failure, _) => {
                let text = rusqlite::ffi::code_to_str(failure.extended_code);
                match failure.code {
                    ErrorCode::DiskFull | ErrorCode::OutOfMemory => Self::Full,
                    ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Self::Corrupt(text.into()),
                    _ => Self::unavailable(text),
                }
            }
            Error::FromSqlConversionFailure(_, _, reason) => {
                reason.downcast::<Self>().map_or_else(|reason| Self::Corrupt(reason.to_string()), |error| *error)
            }
            Error::InvalidColumnType(..) | Error::IntegralValueOutOfRange(..) => Self::unreadable("a record"),
            _ => Self::unavailable("a statement was refused"),
        }
    }
}

/// For what is sealed, opened or read within an operation and is not what it must be.
impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::FromSqlConversionFailure(0, Type::Blob, error.into())
    }
}
