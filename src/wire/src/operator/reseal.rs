//! Sealing again what is sealed under an old encryption key.

use crate::body::body;
use crate::text::Words;

body! { request
    /// A step of a pass over everything that is sealed.
    #[derive(Clone, PartialEq)]
    pub struct ResealRequest {
        /// The `next` of the step before; without it a pass begins.
        from: Option<Words<200>>,
    }
}

body! { answer
    /// The result of a step. No value is sealed under an old key any more once every step of a whole pass has
    /// `resealed` 0 and nothing `left`.
    #[derive(Clone)]
    pub struct ResealResponse {
        /// The id of the key with which this node seals: the first four bytes of its SHA-256.
        sealing_key: String,
        /// The start of the next step; null when the pass is over.
        next: Option<String>,
        /// Values that were examined.
        looked_at: u64,
        /// Values that are sealed with the new key now.
        resealed: u64,
        /// Values that are still under another key.
        left: Vec<LeftUnderKey>,
    }
}

body! { answer
    /// Values under a key that no longer seals. No key of the node opens them, they are damaged, or they changed at the
    /// same time.
    #[derive(Clone)]
    pub struct LeftUnderKey {
        /// The key's id.
        key_id: String,
        /// The number of values.
        values: u64,
    }
}
