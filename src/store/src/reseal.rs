//! Resealing values that are sealed under an old key, a bounded number of values at a time.
//!
//! A pass goes over every sealed value of the store. A value is replaced only if it is unchanged since it was read,
//! because a concurrent change reseals it anyway. A value that is copied between records during a pass may land behind
//! the cursor, so only a pass that finds no old key proves that none is left.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use zeroize::Zeroizing;

use crate::vault::{EncryptionKeyId, Sealed, Vault};

/// Result of one or more steps of a pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resealed {
    /// Start of the next step; `None` when the pass is over.
    pub next: Option<ResealCursor>,
    /// Number of sealed values checked.
    pub looked_at: u64,
    /// Number of values resealed.
    pub resealed: u64,
    /// Number of values that stay under each old key, because no key of this node opens them or because they have
    /// changed meanwhile.
    pub left: BTreeMap<EncryptionKeyId, u64>,
}

impl Resealed {
    /// Adds the result of the next step.
    pub fn add(&mut self, step: Self) {
        self.next = step.next;
        self.looked_at += step.looked_at;
        self.resealed += step.resealed;
        for (key, values) in step.left {
            *self.left.entry(key).or_default() += values;
        }
    }

    /// Counts a value that is left under its old key.
    pub(crate) fn count_left(&mut self, sealed: &[u8]) {
        let mut key_id = [0; 4];
        // A damaged value may be shorter than a key id.
        key_id.iter_mut().zip(sealed).for_each(|(to, from)| *to = *from);
        *self.left.entry(EncryptionKeyId(key_id)).or_default() += 1;
    }
}

/// Maximum number of hexadecimal digits of a cursor's `name`.
const NAME_DIGITS_MAX: usize = 64;

/// A position in a pass. The default is the beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResealCursor {
    /// Index of the kind of record.
    pub(crate) part: u16,
    /// Position in the engine's scan of the kind.
    pub(crate) number: u64,
    /// Position within one step of that scan, encoded.
    pub(crate) name: Vec<u8>,
}

impl fmt::Display for ResealCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.", self.part, self.number)?;
        self.name.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for ResealCursor {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "must be the cursor of an earlier answer";
        let mut parts = text.splitn(3, '.');
        let mut part = || parts.next().ok_or(WRONG);
        let (kind, number, name) = (part()?, part()?, part()?);
        if name.len() > NAME_DIGITS_MAX || name.len() % 2 > 0 || !name.is_ascii() {
            return Err(WRONG);
        }
        let byte = |index| u8::from_str_radix(&name[index..index + 2], 16).map_err(|_| WRONG);
        Ok(Self {
            part: kind.parse().map_err(|_| WRONG)?,
            number: number.parse().map_err(|_| WRONG)?,
            name: (0..name.len()).step_by(2).map(byte).collect::<Result<_, _>>()?,
        })
    }
}

/// Reseals a value under the sealing key; `None` when no key of the vault opens the value for its owner.
pub(crate) fn reseal_value(vault: &Vault, owner: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
    let plain = vault.open_in_place(owner, Sealed::from_bytes(sealed)?).ok().map(Zeroizing::new)?;
    Some(vault.seal(owner, &plain).into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_parses_from_its_own_text_and_nothing_else() {
        for name in [vec![], vec![0, 0x7f, 0xff], vec![0xab; 32]] {
            let cursor = ResealCursor { part: 3, number: u64::MAX, name };
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
        let too_long = format!("0.0.{}", "ab".repeat(NAME_DIGITS_MAX / 2 + 1));
        for text in ["", "1", "1.2", "1.2.a", "1.2.abc", "1.2.zz", "1.2.é", "x.2.ab", "1.x.ab", "65536.2.", &too_long]
        {
            assert!(text.parse::<ResealCursor>().is_err(), "{text}");
        }
    }
}
