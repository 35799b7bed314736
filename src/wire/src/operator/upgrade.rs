//! The end of an upgrade of the store.

use crate::body::body;

body! { response
    /// The state of the upgrade.
    #[derive(Clone)]
    pub struct FinishUpgradeResponse {
        /// The schema version of the responding release.
        schema: u32,
        /// `finished`; `nothing` if the upgrade was finished before; `walking` while records remain to be converted:
        /// repeat the request; `behind` while nodes of an earlier release run: nothing was changed.
        state: String,
        /// The nodes of an earlier release.
        behind: Vec<String>,
        /// The number of records examined so far.
        looked_at: u64,
        /// The number of records converted so far.
        changed: u64,
    }
}
