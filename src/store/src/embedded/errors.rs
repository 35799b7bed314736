//! Translation of SQLite's errors. Damage of the file is remembered, because the store cannot recover from it.
//!
//! Messages contain SQLite's text for a result code, but never a statement or a value.

use std::sync::OnceLock;

use rusqlite::{Error, ErrorCode};

use crate::error::StoreError;

/// Damage found in the file. Once set, every call fails with this error.
#[derive(Debug, Default)]
pub(crate) struct Health(OnceLock<StoreError>);

impl Health {
    /// Returns the remembered damage as an error, if any.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        self.0.get().map_or(Ok(()), |damage| Err(damage.clone()))
    }

    /// Translates an error, and remembers it if the file is damaged.
    pub(crate) fn translate(&self, error: Error) -> StoreError {
        let is_damage = matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase));
        let translated = StoreError::from(error);
        if is_damage {
            tracing::error!(error = %translated, "the store has stopped: its file is damaged");
            return self.0.get_or_init(|| translated).clone();
        }
        translated
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
            Error::InvalidColumnType(..)
            | Error::IntegralValueOutOfRange(..)
            | Error::Utf8Error(..)
            | Error::FromSqlConversionFailure(..) => Self::unreadable("a record"),
            _ => Self::unavailable("a statement was refused"),
        }
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;
    use rusqlite::types::Type;

    use super::*;

    fn failure(code: i32) -> Error {
        Error::SqliteFailure(ffi::Error::new(code), None)
    }

    #[test]
    fn only_damage_is_remembered() {
        let health = Health::default();
        assert_eq!(health.translate(failure(ffi::SQLITE_FULL)), StoreError::Full);
        assert_eq!(health.check(), Ok(()));
        let damage = health.translate(failure(ffi::SQLITE_CORRUPT));
        assert!(matches!(damage, StoreError::Corrupt(_)));
        assert_eq!(health.translate(failure(ffi::SQLITE_NOTADB)), damage);
        assert_eq!(health.check(), Err(damage));
    }

    #[test]
    fn a_column_of_another_type_makes_the_record_unreadable() {
        let no_text = String::from_utf8(vec![0xff]).unwrap_err().utf8_error();
        let other_type = Error::InvalidColumnType(0, "name".into(), Type::Null);
        for error in [other_type, Error::IntegralValueOutOfRange(0, -1), Error::Utf8Error(0, no_text)] {
            assert_eq!(StoreError::from(error), StoreError::unreadable("a record"));
        }
    }
}
