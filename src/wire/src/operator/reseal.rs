//! Re-encryption of values that are sealed under an old key.

use crate::body::body;
use crate::text::Words;

body! { request
    /// A step of a pass over all sealed values.
    #[derive(Clone, PartialEq)]
    pub struct ResealRequest {
        /// The `next` of the previous step. Default: the start of a new pass.
        from: Option<Words<200>>,
    }
}

body! { response
    /// The result of a step. When every step of a whole pass has `resealed` 0 and an empty `left`, no value is sealed
    /// under an old key any more.
    #[derive(Clone)]
    pub struct ResealResponse {
        /// The id of the key with which the responding node seals: the first four bytes of its SHA-256.
        sealing_key: String,
        /// The `from` of the next step; null after the last step.
        next: Option<String>,
        /// The number of examined values.
        looked_at: u64,
        /// The number of values that this step sealed with the new key.
        resealed: u64,
        /// The values that are still sealed under another key.
        left: Vec<LeftUnderKey>,
    }
}

body! { response
    /// Values that a step left under an old key: the node has no key for them, they are damaged, or they changed during
    /// the step.
    #[derive(Clone)]
    pub struct LeftUnderKey {
        /// The id of the old key.
        key_id: String,
        /// The number of values under the old key.
        values: u64,
    }
}
