//! The shape of a run: its kinds of faults, and the deployment of its nodes and store.

/// The contents of a run. A failed run is easier to read with fewer verifications and faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Verifications of each client; `None` for a random number.
    pub verifications: Option<u64>,
    /// Kinds of faults to leave out, one bit each in the order of [`Shape::FAULTS`].
    pub without: u32,
}

impl Shape {
    /// The kinds of faults and of changes by operators and organisers. The first [`Shape::DISTURBING_COUNT`] can
    /// prevent an answer.
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

    /// A run with all faults and a random number of verifications.
    pub const WHOLE: Self = Self { verifications: None, without: 0 };

    /// Number of the first [`Shape::FAULTS`], which can prevent an answer. A key rotation is one, as it kills nodes.
    pub(crate) const DISTURBING_COUNT: usize = 12;

    /// Returns true if runs of this shape have the fault.
    pub(crate) fn includes(self, fault: &str) -> bool {
        self.without & (1 << Self::fault_index(fault)) == 0
    }

    /// Returns the index of a kind of faults in [`Shape::FAULTS`].
    pub(crate) fn fault_index(fault: &str) -> usize {
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
    /// Returns the deployment of a seed: eight seeds in a row have each deployment once or twice.
    pub(crate) const fn from_seed(seed: u64) -> Self {
        match seed % 8 {
            0 | 1 => Self::Alone,
            2 | 3 => Self::Shared,
            4 => Self::Cluster,
            5 | 6 => Self::Replicated,
            _ => Self::LossyReplica,
        }
    }

    /// Returns true if the store answers a write only once the replica has it.
    pub(crate) const fn waits_for_replica(self) -> bool {
        matches!(self, Self::Replicated | Self::Cluster)
    }

    /// Returns true if there is a replica.
    pub(crate) const fn has_replica(self) -> bool {
        self.waits_for_replica() || matches!(self, Self::LossyReplica)
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
