//! The keys that sign intents, and the choice of one.

use sakshi_domain::time::Timestamp;

use crate::body::body;
use crate::text::Words;

body! { request
    /// The intent key that signs from now on.
    #[derive(Clone, PartialEq)]
    pub struct UseIntentKeyRequest {
        /// Its id. Null or left out: the key that the settings choose.
        kid: Option<Words<200>>,
    }
}

body! { answer
    /// The intent keys of the node that answers. All of them are published.
    #[derive(Clone)]
    pub struct IntentKeysResponse {
        /// In the order of the settings.
        keys: Vec<IntentKeyResponse>,
        /// The key that operators have chosen, even if this node does not have it; null when the settings decide.
        chosen: Option<String>,
        /// The time of that choice.
        chosen_at: Option<Timestamp>,
    }
}

body! { answer
    /// An intent key.
    #[derive(Clone)]
    pub struct IntentKeyResponse {
        /// Its id at the authority.
        kid: String,
        /// The JWS algorithm.
        algorithm: String,
        /// The setting that names it.
        setting: String,
        /// The time from which it signs by the settings; null for the first key, and for one that is only published.
        signs_from: Option<Timestamp>,
        /// True if it signs now.
        signs: bool,
    }
}
