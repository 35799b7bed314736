//! The keys that sign intents, and the choice of the signing key.

use sakshi_domain::time::Timestamp;

use crate::body::body;
use crate::text::Words;

body! { request
    /// The choice of the intent key that signs from now on.
    #[derive(Clone, PartialEq)]
    pub struct UseIntentKeyRequest {
        /// The id of the key. Default, also for null: the key that the settings choose.
        kid: Option<Words<200>>,
    }
}

body! { response
    /// The intent keys of the responding node. All of them are published in its JWKS.
    #[derive(Clone)]
    pub struct IntentKeysResponse {
        /// The keys in the order of the settings.
        keys: Vec<IntentKeyResponse>,
        /// The id of the key that an operator chose, even if this node does not have it; null if the settings decide.
        chosen: Option<String>,
        /// The time of the operator's choice; null if the settings decide.
        chosen_at: Option<Timestamp>,
    }
}

body! { response
    /// An intent key.
    #[derive(Clone)]
    pub struct IntentKeyResponse {
        /// The id of the key at the authority.
        kid: String,
        /// The JWS algorithm, such as `RS256`.
        algorithm: String,
        /// The setting that configures the key.
        setting: String,
        /// The time from which the key signs by the settings; null for the first key, and for a published key that
        /// never signs.
        signs_from: Option<Timestamp>,
        /// True if the key signs now.
        signs: bool,
    }
}
