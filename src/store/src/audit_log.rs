//! The audit log of operators' changes: entries are appended, sealed, and never changed or removed.
//!
//! The entries form a chain: the hash of an entry is the SHA-256 of the previous hash and of its own text. A reader who
//! keeps the newest hash elsewhere can later detect an entry that was changed, moved or left out.

use std::fmt;
use std::str::FromStr;

use aws_lc_rs::digest::{Context, SHA256};

/// The hash of an entry, which also covers all entries before it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct AuditHash(pub [u8; 32]);

impl AuditHash {
    /// The hash before the first entry.
    pub const NONE: Self = Self([0; 32]);

    /// Returns the hash of the next entry, which has this text.
    #[must_use]
    pub fn hash_of_next(&self, entry: &str) -> Self {
        let mut context = Context::new(&SHA256);
        context.update(&self.0);
        context.update(entry.as_bytes());
        let mut hash = [0; 32];
        hash.copy_from_slice(context.finish().as_ref());
        Self(hash)
    }
}

impl fmt::Display for AuditHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for AuditHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AuditHash({self})")
    }
}

impl FromStr for AuditHash {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "a hash is 64 hexadecimal digits";
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(WRONG);
        }
        let mut hash = [0; 32];
        for (byte, index) in hash.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(&text[index..index + 2], 16).map_err(|_| WRONG)?;
        }
        Ok(Self(hash))
    }
}

/// An entry and its index in the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRecord {
    /// Number in the chain, from 1, without gaps.
    pub number: u64,
    /// Hash of the previous entry.
    pub previous: AuditHash,
    /// Hash of this entry.
    pub hash: AuditHash,
    /// Text of the entry.
    pub entry: String,
}

/// The entries that the receiver of the log does not have yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsentAudit {
    /// Number of entries that the receiver does not have.
    pub waiting: u64,
    /// The entries to send now, oldest first, with the newest entry before them; `None` while another node sends, and
    /// when the receiver has all entries.
    pub next: Option<(AuditHead, Vec<AuditRecord>)>,
}

/// The number and the hash of the newest entry of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditHead {
    /// Number of entries.
    pub number: u64,
    /// Hash of the newest entry.
    pub hash: AuditHash,
}

impl AuditHead {
    /// The head of a log without entries.
    pub const NONE: Self = Self { number: 0, hash: AuditHash::NONE };

    /// Verifies that a record follows this head and was not changed. Returns the head after the record.
    ///
    /// # Errors
    /// A description of the fault.
    pub fn verify_next(self, record: &AuditRecord) -> Result<Self, String> {
        let expected = self.next_record(record.entry.clone());
        let next = expected.number;
        if record.number != next {
            return Err(format!("entry {next} is missing"));
        }
        if record.previous != expected.previous {
            return Err(format!("entry {next} does not follow from the one before"));
        }
        if record.hash != expected.hash {
            return Err(format!("entry {next} was changed"));
        }
        Ok(Self { number: next, hash: record.hash })
    }

    /// Returns the head after these entries, without verifying them.
    #[must_use]
    pub fn after(self, entries: &[AuditRecord]) -> Self {
        entries.last().map_or(self, |last| Self { number: last.number, hash: last.hash })
    }

    /// Returns the record of the next entry, which has this text.
    pub(crate) fn next_record(self, entry: String) -> AuditRecord {
        AuditRecord { number: self.number + 1, previous: self.hash, hash: self.hash.hash_of_next(&entry), entry }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_64_hexadecimal_digits() {
        let text = "0f".repeat(32);
        assert_eq!(text.parse::<AuditHash>().unwrap().to_string(), text);
        for wrong in [&text[1..], &format!("{text}0"), &"+f".repeat(32), &"0g".repeat(32), "é"] {
            assert!(wrong.parse::<AuditHash>().is_err(), "{wrong}");
        }
    }
}
