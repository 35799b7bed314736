//! The contents of a run: its kinds of faults, and the arrangement of its nodes and store.

/// The contents of a run. A broken promise is easier to read with fewer of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Verifications of each client; `None` for a random number.
    pub verifications: Option<u64>,
    /// Kinds of faults to leave out, one bit each in the order of [`Shape::FAULTS`].
    pub without: u32,
}

impl Shape {
    /// The kinds of faults, and changes by operators and organisers. Those that can prevent an answer come first; nodes
    /// are also killed for a new encryption key.
    pub const FAULTS: [&'static str; 26] = [
        "kills",
        "outages",
        "full-disks",
        "failovers",
        "former-primaries",
        "lost-calls",
        "lost-answers",
        "panics",
        "actor-panics",
        "hangs",
        "hung-arbiters",
        "key-rotations",
        "repeated-steps",
        "lost-notices",
        "mistaken-deaths",
        "drift",
        "clock-jumps",
        "store-clock",
        "bad-receivers",
        "lost-requests",
        "bad-upstreams",
        "event-changes",
        "key-changes",
        "suspensions",
        "erasures",
        "flows",
    ];

    /// A run with everything.
    pub const WHOLE: Self = Self { verifications: None, without: 0 };

    /// Number of [`Shape::FAULTS`] that can prevent an answer.
    pub(crate) const DISTURBING: usize = 12;

    pub(crate) fn has(self, fault: &str) -> bool {
        self.without & (1 << Self::number(fault)) == 0
    }

    pub(crate) fn number(fault: &str) -> usize {
        Self::FAULTS.iter().position(|known| *known == fault).expect("a kind of faults")
    }
}

/// The arrangement of a run's nodes and store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deployment {
    /// One node with a store of its own.
    Alone,
    /// Nodes that share a store.
    Shared,
    /// Nodes that share a store with a replica that lags. An answer waits for the replica.
    Replicated,
    /// As [`Deployment::Replicated`], in shards that fail over separately.
    Cluster,
    /// As [`Deployment::Replicated`], without waiting: a failover may lose acknowledged writes.
    LossyReplica,
}

impl Deployment {
    pub(crate) const fn from_seed(seed: u64) -> Self {
        match seed % 8 {
            0 | 1 => Self::Alone,
            2 | 3 => Self::Shared,
            4 => Self::Cluster,
            5 | 6 => Self::Replicated,
            _ => Self::LossyReplica,
        }
    }

    /// Returns true if answers wait for the replica.
    pub(crate) const fn waits(self) -> bool {
        matches!(self, Self::Replicated | Self::Cluster)
    }

    /// Returns true if there is a replica.
    pub(crate) const fn has_replica(self) -> bool {
        self.waits() || matches!(self, Self::LossyReplica)
    }

    /// Returns true if runs of this deployment can have the fault.
    pub(crate) fn allows(self, fault: &str) -> bool {
        match fault {
            "failovers" => self.has_replica(),
            "former-primaries" => self == Self::Replicated,
            "clock-jumps" | "drift" | "lost-notices" | "mistaken-deaths" => self != Self::Alone,
            // A failover that may lose acknowledged writes may also restore records under the old key.
            "key-rotations" => self != Self::LossyReplica,
            _ => true,
        }
    }
}
