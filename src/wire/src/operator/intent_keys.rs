//! The keys that sign intents, and which of them does.

use sakshi_domain::time::Timestamp;

use crate::body::body;
use crate::text::Words;

body! { request
    /// Which intent key is to sign from now on.
    #[derive(Clone, PartialEq)]
    pub struct UseIntentKeyRequest {
        /// Its id; null or left out: the one that the settings say.
        kid: Option<Words<200>>,
    }
}

body! { answer
    /// The intent keys of the node that answers. All of them are published.
    #[derive(Clone)]
    pub struct IntentKeysResponse {
        /// In the order of the settings.
        keys: Vec<IntentKeyResponse>,
        /// The key that operators have chosen, whether this node has it or not; null when the settings decide.
        chosen: Option<String>,
        /// When it was chosen.
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
        /// From when on it signs by the settings; null for the first key, and for one that is only published.
        signs_from: Option<Timestamp>,
        /// Whether it signs now.
        signs: bool,
    }
}
