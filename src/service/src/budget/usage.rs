//! Bytes by owner, as a tree: an owner holds the sum of what its inner owners hold. Owners that hold nothing are not in
//! it.

use std::collections::HashMap;

use sakshi_trace::invariant::{Part, holds};

use super::owner::Owner;

/// Id of a holding in a tree.
pub(super) type HoldingId = u64;

/// Holding of one permit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Holding {
    pub(super) bytes: usize,
    /// True if it can be revoked.
    pub(super) revocable: bool,
}

/// An owner, or the root above all of them.
#[derive(Debug, Default)]
pub(super) struct Usage {
    bytes: usize,
    /// Bytes that can be revoked.
    revocable: usize,
    inner: HashMap<Owner, Usage>,
    holdings: HashMap<HoldingId, Holding>,
}

impl Usage {
    /// Returns the bytes of all holdings.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the number of outermost owners that hold something, and the most that one of them holds.
    pub(super) fn outermost(&self) -> (usize, usize) {
        (self.inner.len(), self.inner.values().map(|owner| owner.bytes).max().unwrap_or(0))
    }

    /// Returns the bytes that cannot be revoked: of all owners, and of the outermost one on the path.
    pub(super) fn pinned(&self, path: &[Owner]) -> (usize, usize) {
        let of = |usage: &Self| usage.bytes - usage.revocable;
        (of(self), path.first().and_then(|outer| self.inner.get(outer)).map_or(0, of))
    }

    /// Replaces the holding of this id; one without bytes is removed.
    pub(super) fn change(&mut self, path: &[Owner], id: HoldingId, old: Holding, new: Holding) {
        let counts = |holding: Holding| if holding.revocable { holding.bytes } else { 0 };
        holds(Part::Bounds, "memory of an owner is given back once", self.bytes >= old.bytes);
        holds(Part::Bounds, "memory that can be revoked is given back once", self.revocable >= counts(old));
        self.bytes = self.bytes.saturating_sub(old.bytes) + new.bytes;
        self.revocable = self.revocable.saturating_sub(counts(old)) + counts(new);
        holds(Part::Bounds, "memory that can be revoked is a part of all", self.revocable <= self.bytes);
        match path.split_first() {
            Some((outer, rest)) => {
                let owner = self.inner.entry(outer.clone()).or_default();
                owner.change(rest, id, old, new);
                if owner.inner.is_empty() && owner.holdings.is_empty() {
                    self.inner.remove(outer);
                }
            }
            None if new.bytes > 0 => drop(self.holdings.insert(id, new)),
            None => drop(self.holdings.remove(&id)),
        }
    }

    /// Chooses the holding to revoke: from the outermost owner inwards the owner that holds most, then its largest
    /// holding. In a tie the newcomer is chosen, so that two do not revoke each other's in turn.
    pub(super) fn to_revoke(&self, path: &[Owner], id: HoldingId) -> Option<HoldingId> {
        let next = path.first();
        let owner = self.inner.iter().filter(|(_, owner)| owner.revocable > 0);
        let owner = owner.max_by_key(|(name, owner)| (owner.bytes, next == Some(*name)));
        let own = self.holdings.iter().filter(|(_, holding)| holding.revocable && holding.bytes > 0);
        let own = own.max_by_key(|(held, holding)| (holding.bytes, **held == id));
        match (owner, own) {
            (Some((_, owner)), Some((held, holding))) if holding.bytes > owner.bytes => Some(*held),
            (Some((name, owner)), _) => {
                // The newcomer is not below other owners.
                owner.to_revoke(if next == Some(name) { &path[1..] } else { &[] }, id)
            }
            (None, own) => own.map(|(held, _)| *held),
        }
    }
}

#[cfg(test)]
mod tests {
    use sakshi_trace::invariant::broken_by;

    use super::*;

    #[test]
    fn memory_that_is_given_back_twice_is_noticed() {
        let held = |bytes, revocable| Holding { bytes, revocable };
        let mut usage = Usage::default();
        let mut change = |old, new| broken_by(|| usage.change(&[], 1, old, new));
        assert_eq!(change(held(0, true), held(5, true)), Vec::<&str>::new());
        let [once, revoked] =
            ["memory of an owner is given back once", "memory that can be revoked is given back once"];
        assert_eq!(change(held(6, true), held(0, true)), [once, revoked]);
        assert_eq!(change(held(0, true), held(5, true)), Vec::<&str>::new());
        assert_eq!(change(held(5, false), held(0, true)), ["memory that can be revoked is a part of all"]);
    }
}
