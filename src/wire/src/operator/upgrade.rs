//! Finishing an upgrade of the store.

use crate::body::body;

body! { answer
    /// The state of the upgrade.
    #[derive(Clone)]
    pub struct FinishUpgradeResponse {
        /// The schema of the release that answers.
        schema: u32,
        /// `finished`, or `nothing` if it was finished before; `walking` while records are left to change: ask again;
        /// `behind` while nodes of an earlier release run, and nothing was changed.
        state: String,
        /// These nodes.
        behind: Vec<String>,
        /// Records examined so far.
        looked_at: u64,
        /// Records changed so far.
        changed: u64,
    }
}
