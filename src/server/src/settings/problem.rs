//! What is wrong with the settings: one sentence for each key, all of them together.

use std::fmt;

/// One key and what would be accepted there. Never holds the value: it may be a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct Problem {
    /// The key's path, for example `server.public_addr`, or the name of the file that cannot be read.
    pub key: String,
    /// One sentence for the operator.
    pub message: String,
}

/// Every problem that was found, in the order of the settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
pub struct Problems(pub Vec<Problem>);

impl Problem {
    /// Returns whether it belongs to this section or key, or to an item of its list.
    #[must_use]
    pub fn is_within(&self, part: &str) -> bool {
        self.key.strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    }
}

impl Problems {
    /// Notes a problem.
    pub fn add(&mut self, key: impl Into<String>, message: impl Into<String>) {
        self.0.push(Problem { key: key.into(), message: message.into() });
    }

    /// Notes a problem unless `holds`, or something is wrong with the key already.
    pub fn require(&mut self, holds: bool, key: &str, message: &str) {
        if !holds && !self.has(key) {
            self.add(key, message);
        }
    }

    /// Whether something is wrong with this key, or with an item of its list, already.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.0.iter().any(|problem| problem.is_within(key))
    }

    /// A single problem.
    #[must_use]
    pub fn one(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self(vec![Problem { key: key.into(), message: message.into() }])
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    }
}
