//! API keys of a client.

use std::fmt;

use sakshi_domain::ids::{ClientId, KeyId};
use sakshi_domain::network::{Networks, parse_network};
use sakshi_domain::profile::Profile;
use sakshi_domain::tenancy::ApiKeyRecord;
use sakshi_domain::time::Timestamp;
use serde::{Deserialize, Serialize, Serializer};

use crate::body::{Field, body, described};
use crate::fields::Place;
use crate::json::Json;
use crate::text::{Label, Whole};

/// The longest overlap of two keys: a year, in seconds.
pub const OVERLAP_MAX_S: u64 = 366 * 24 * 3_600;
/// The refusal of a list of networks that is empty or too long.
const SOME_NETWORKS: &str = "must be an array of 1 to 64 addresses or networks; leave it out for all";
/// The usual forms of an address or a network: IPv4, and IPv6 in whole or with one gap.
const NETWORK_PATTERN: &str = "^((\
    (25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])\\.){3}(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])\
    (/([12]?[0-9]|3[0-2]))?|\
    (([0-9a-f]{1,4}:){7}[0-9a-f]{1,4}|([0-9a-f]{1,4}:){1,6}:|([0-9a-f]{1,4}:){1,4}(:[0-9a-f]{1,4}){1,3})\
    (/([1-9]?[0-9]|1[01][0-9]|12[0-8]))?)$";
/// The refusal of a list of environments that names none.
const SOME_ENVIRONMENTS: &str =
    "must be an array that names some of sandbox, stage and production; leave it out for all";

body! { request
    /// A key to be issued.
    #[derive(Clone, Default, PartialEq)]
    pub struct IssueKeyRequest {
        /// The operator's name for it.
        label: Option<Label>,
        /// The environments in which it works. Default: all.
        environments: Option<Environments>,
        /// The addresses and networks from which it may be used. Default: all.
        networks: Option<KeyNetworks>,
        /// The time of its expiry.
        expires_at: Option<Timestamp>,
    }
    check(fields) {
        if let (Some(Some(end)), Some(context)) = (expires_at, fields.context())
            && end <= context.now
        {
            fields.refuse("expires_at", "must be in the future");
        }
    }
}

/// Environments in which a key works. An empty list is refused: its reader could take it for all, and its writer for
/// none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Environments(pub Vec<Profile>);

impl Field for Environments {
    fn read(value: Json, place: &mut Place<'_>) -> Option<Self> {
        let items = match value {
            Json::List(items) if !items.is_empty() => items,
            _ => return place.refuse(SOME_ENVIRONMENTS),
        };
        // An item that is not text is read as the empty one, which names no environment.
        let read = |place: &mut Place<'_>, item| {
            place.accept(if let Json::Text(word) = item { word } else { String::new() }.parse())
        };
        place.items(items, read).map(Self)
    }
}

/// Networks from which a key may be used. An empty list is refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyNetworks(pub Networks);

impl Serialize for KeyNetworks {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.texts())
    }
}

impl Field for KeyNetworks {
    fn read(value: Json, place: &mut Place<'_>) -> Option<Self> {
        let items = match value {
            Json::List(items) if (1..=Networks::MAX).contains(&items.len()) => items,
            _ => return place.refuse(SOME_NETWORKS),
        };
        let read = |place: &mut Place<'_>, item| {
            place.accept(parse_network(if let Json::Text(text) = &item { text } else { "" }))
        };
        place.items(items, read).map(|networks| Self(Networks(networks)))
    }
}

described! {
    KeyNetworks: { "type": "array", "minItems": 1, "maxItems": 64, "items": { "type": "string",
        "pattern": NETWORK_PATTERN } }
}

described! {
    Environments: { "type": "array", "minItems": 1, "items": Profile::schema() }
    Profile: { "type": "string", "enum": [Profile::Sandbox.as_str(), Profile::Stage.as_str(),
        Profile::Production.as_str()] }
}

body! { answer
    /// A key that was issued.
    pub struct IssueKeyResponse {
        /// Identifies the key.
        key_id: KeyId,
        /// The key itself. It is shown only once.
        api_key: KeyText,
    }
}

/// A key as its client sends it. Its `Debug` does not show it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyText(pub String);

impl fmt::Debug for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyText(redacted)")
    }
}

described! { KeyText: { "type": "string" } }

body! { request
    /// The rotation of a key.
    #[derive(Clone, Default, PartialEq)]
    pub struct RotateKeyRequest {
        /// Seconds for which the old key still works. Default: one day.
        overlap_s: Option<Whole<0, OVERLAP_MAX_S>>,
    }
}

body! { answer
    /// The successor of a key.
    pub struct RotateKeyResponse {
        /// Identifies the key.
        key_id: KeyId,
        /// The key itself. It is shown only once.
        api_key: KeyText,
        /// The old key, which works until the overlap ends.
        previous: KeyResponse,
    }
}

body! { answer
    /// The keys of a client.
    pub struct KeysResponse {
        /// All of them, revoked ones included.
        keys: Vec<KeyResponse>,
    }
}

body! { answer
    /// A key without its text.
    #[derive(Clone)]
    pub struct KeyResponse {
        /// Identifies the key.
        key_id: KeyId,
        /// The client that owns it.
        client_id: ClientId,
        /// The operator's name for it.
        label: String,
        /// The environments in which it works; empty for all.
        environments: Vec<Profile>,
        /// The addresses and networks from which it may be used; empty for all.
        networks: Vec<String>,
        /// The time of its issue.
        created_at: Timestamp,
        /// The time of its expiry.
        expires_at: Option<Timestamp>,
        /// The time of its revocation.
        revoked_at: Option<Timestamp>,
        /// The last use, to within ten minutes; listed only.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        last_used_at: Option<Timestamp>,
        /// The remaining steps after a revocation.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        note: Option<String>,
    }
}

impl From<ApiKeyRecord> for KeyResponse {
    fn from(key: ApiKeyRecord) -> Self {
        let ApiKeyRecord { key_id, client_id, label, environments, networks, created_at, expires_at, revoked_at } = key;
        let networks = networks.texts().collect();
        Self {
            key_id,
            client_id,
            label,
            environments,
            networks,
            created_at,
            expires_at,
            revoked_at,
            last_used_at: None,
            note: None,
        }
    }
}
