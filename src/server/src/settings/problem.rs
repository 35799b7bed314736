//! Problems of the settings: one sentence per key, reported together.

use std::fmt;

/// A problem with the value of a key. It never contains the value, which may be a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct Problem {
    /// Path of the key, such as `server.public_addr`, or the name of the unreadable file.
    pub key: String,
    /// Sentence for the operator.
    pub message: String,
}

/// All problems, in the order of the settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
pub struct Problems(pub Vec<Problem>);

impl Problem {
    /// Returns true if the problem belongs to this section or key, or to an item of this list.
    #[must_use]
    pub fn is_within(&self, name: &str) -> bool {
        self.key.strip_prefix(name).is_some_and(|suffix| suffix.is_empty() || suffix.starts_with(['.', '[']))
    }
}

impl Problems {
    /// Adds a problem.
    pub fn add(&mut self, key: impl Into<String>, message: impl Into<String>) {
        self.0.push(Problem { key: key.into(), message: message.into() });
    }

    /// Adds a problem unless `holds` is true or the key already has a problem.
    pub fn require(&mut self, holds: bool, key: &str, message: &str) {
        if !holds && !self.has(key) {
            self.add(key, message);
        }
    }

    /// Returns true if this key, or an item of its list, has a problem.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.0.iter().any(|problem| problem.is_within(key))
    }

    /// Builds a list with a single problem.
    #[must_use]
    pub fn single(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self(vec![Problem { key: key.into(), message: message.into() }])
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    }
}
