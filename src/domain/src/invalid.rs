//! Validation errors: every problem of an input, by field.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A field and its problem.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldError {
    /// The field's path as the caller wrote it, for example `claims[2]`.
    pub field: String,
    /// The requirement, for example `must be web, qr or app`.
    pub message: String,
}

/// Every problem found in an input. As an error it is never empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Invalid(Vec<FieldError>);

impl Invalid {
    /// Creates a list without problems.
    #[must_use]
    pub const fn none() -> Self {
        Self(Vec::new())
    }

    /// Creates a list with one problem.
    #[must_use]
    pub fn one(field: impl Into<String>, message: impl Into<String>) -> Self {
        let mut invalid = Self::none();
        invalid.add(field, message);
        invalid
    }

    /// Adds a problem.
    pub fn add(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.0.push(FieldError { field: field.into(), message: message.into() });
    }

    /// Returns the value of a result, or adds its error under `field` and returns `None`.
    pub fn check<T>(&mut self, field: &str, result: Result<T, impl fmt::Display>) -> Option<T> {
        result.map_err(|problem| self.add(field, problem.to_string())).ok()
    }

    /// Returns the problems in the order of addition.
    #[must_use]
    pub fn fields(&self) -> &[FieldError] {
        &self.0
    }

    /// Returns `Ok` if there are no problems.
    ///
    /// # Errors
    /// The list itself, if it has a problem.
    pub fn or_ok(self) -> Result<(), Self> {
        if self.0.is_empty() { Ok(()) } else { Err(self) }
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{}: {}", problem.field, problem.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for Invalid {}
