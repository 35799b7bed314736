//! Bytes by owner, as a tree: the bytes of an owner include those of its inner owners. Owners without bytes are
//! removed.

use std::collections::HashMap;

use sakshi_trace::invariant::{Part, holds};

use super::owner::Owner;

/// Id of a holding in a tree.
pub(super) type HoldingId = u64;

/// Bytes of one permit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Holding {
    pub(super) bytes: usize,
    /// True if the permit can be revoked.
    pub(super) revocable: bool,
}

/// The use of one owner, or of the root above all owners.
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

    /// Returns the number of outermost owners, and the bytes of the largest.
    pub(super) fn outermost(&self) -> (usize, usize) {
        (self.inner.len(), self.inner.values().map(|owner| owner.bytes).max().unwrap_or(0))
    }

    /// Returns the bytes that cannot be revoked: of all owners, and of the outermost owner on the path.
    pub(super) fn pinned_bytes(&self, path: &[Owner]) -> (usize, usize) {
        let pinned = |usage: &Self| usage.bytes - usage.revocable;
        (pinned(self), path.first().and_then(|outer| self.inner.get(outer)).map_or(0, pinned))
    }

    /// Replaces the holding with this id, or removes it if the new one has no bytes.
    pub(super) fn change(&mut self, path: &[Owner], id: HoldingId, old: Holding, new: Holding) {
        let revocable_bytes = |holding: Holding| if holding.revocable { holding.bytes } else { 0 };
        holds(Part::Bounds, "memory of an owner is given back once", self.bytes >= old.bytes);
        holds(Part::Bounds, "memory that can be revoked is given back once", self.revocable >= revocable_bytes(old));
        self.bytes = self.bytes.saturating_sub(old.bytes) + new.bytes;
        self.revocable = self.revocable.saturating_sub(revocable_bytes(old)) + revocable_bytes(new);
        holds(Part::Bounds, "memory that can be revoked is a part of all", self.revocable <= self.bytes);
        match path.split_first() {
            Some((outer, inner_path)) => {
                let owner = self.inner.entry(outer.clone()).or_default();
                owner.change(inner_path, id, old, new);
                if owner.inner.is_empty() && owner.holdings.is_empty() {
                    self.inner.remove(outer);
                }
            }
            None if new.bytes > 0 => drop(self.holdings.insert(id, new)),
            None => drop(self.holdings.remove(&id)),
        }
    }

    /// Chooses the holding to revoke: from the outermost owner inwards the owner that holds most, then its largest
    /// holding. In a tie the newcomer (`path` and `id`) is chosen, so that two owners do not revoke each other's
    /// holdings in turn.
    pub(super) fn choose_to_revoke(&self, path: &[Owner], id: HoldingId) -> Option<HoldingId> {
        let newcomer = path.first();
        let candidates = self.inner.iter().filter(|(_, usage)| usage.revocable > 0);
        let largest_owner = candidates.max_by_key(|(owner, usage)| (usage.bytes, newcomer == Some(*owner)));
        let candidates = self.holdings.iter().filter(|(_, holding)| holding.revocable && holding.bytes > 0);
        let largest_holding = candidates.max_by_key(|(holding_id, holding)| (holding.bytes, **holding_id == id));
        match (largest_owner, largest_holding) {
            (Some((_, usage)), Some((holding_id, holding))) if holding.bytes > usage.bytes => Some(*holding_id),
            (Some((owner, usage)), _) => {
                // The newcomer is not below other owners.
                usage.choose_to_revoke(if newcomer == Some(owner) { &path[1..] } else { &[] }, id)
            }
            (None, largest_holding) => largest_holding.map(|(holding_id, _)| *holding_id),
        }
    }
}

#[cfg(test)]
mod tests {
    use sakshi_trace::invariant::broken_by;

    use super::*;

    #[test]
    fn a_double_release_of_memory_breaks_an_invariant() {
        let holding = |bytes, revocable| Holding { bytes, revocable };
        let mut usage = Usage::default();
        let mut change = |old, new| broken_by(|| usage.change(&[], 1, old, new));
        assert_eq!(change(holding(0, true), holding(5, true)), Vec::<&str>::new());
        let [bytes_invariant, revocable_invariant] =
            ["memory of an owner is given back once", "memory that can be revoked is given back once"];
        assert_eq!(change(holding(6, true), holding(0, true)), [bytes_invariant, revocable_invariant]);
        assert_eq!(change(holding(0, true), holding(5, true)), Vec::<&str>::new());
        assert_eq!(change(holding(5, false), holding(0, true)), ["memory that can be revoked is a part of all"]);
    }
}
