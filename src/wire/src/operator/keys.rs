//! API keys of a client.

use std::fmt;

use sakshi_domain::ids::{ClientId, KeyId};
use sakshi_domain::network::{Networks, parse_network};
use sakshi_domain::profile::Profile;
use sakshi_domain::tenancy::ApiKeyRecord;
use sakshi_domain::time::Timestamp;
use serde::{Deserialize, Serialize, Serializer};

use crate::body::{Field, body, described};
use crate::fields::FieldReader;
use crate::json::Json;
use crate::text::{Label, Whole};

/// The longest overlap of a key and its replacement: a year, in seconds.
pub const OVERLAP_MAX_S: u64 = 366 * 24 * 3_600;
/// The error for a list of networks that is empty or too long.
const NETWORKS_RULE: &str = "must be an array of 1 to 64 addresses or networks; leave it out for all";
/// Pattern of an address or a network: IPv4, or IPv6 with at most one `::`.
const NETWORK_PATTERN: &str = "^((\
    (25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])\\.){3}(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])\
    (/([12]?[0-9]|3[0-2]))?|\
    (([0-9a-f]{1,4}:){7}[0-9a-f]{1,4}|([0-9a-f]{1,4}:){1,6}:|([0-9a-f]{1,4}:){1,4}(:[0-9a-f]{1,4}){1,3})\
    (/([1-9]?[0-9]|1[01][0-9]|12[0-8]))?)$";
/// The error for a list of environments that is empty.
const ENVIRONMENTS_RULE: &str =
    "must be an array that names some of sandbox, stage and production; leave it out for all";

body! { request
    /// The key to issue.
    #[derive(Clone, Default, PartialEq)]
    pub struct IssueKeyRequest {
        /// A description for operators, 1 to 100 characters. Default: empty.
        label: Option<Label>,
        /// The environments in which the key is valid. Default: all.
        environments: Option<Environments>,
        /// The addresses and networks from which the key may be used, at most 64. Default: all.
        networks: Option<KeyNetworks>,
        /// The time of expiry, in the future. Default: never.
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

/// The environments in which a key is valid. An empty list is refused, because it could mean all or none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Environments(pub Vec<Profile>);

impl Field for Environments {
    fn read(value: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
        let items = match value {
            Json::List(items) if !items.is_empty() => items,
            _ => return reader.refuse(ENVIRONMENTS_RULE),
        };
        // An item that is not text is read as the empty text, which names no environment.
        let read = |reader: &mut FieldReader<'_>, item| {
            reader.accept(if let Json::Text(name) = item { name } else { String::new() }.parse())
        };
        reader.items(items, read).map(Self)
    }
}

/// The networks from which a key may be used. An empty list is refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyNetworks(pub Networks);

impl Serialize for KeyNetworks {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.texts())
    }
}

impl Field for KeyNetworks {
    fn read(value: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
        let items = match value {
            Json::List(items) if (1..=Networks::MAX).contains(&items.len()) => items,
            _ => return reader.refuse(NETWORKS_RULE),
        };
        let read = |reader: &mut FieldReader<'_>, item| {
            reader.accept(parse_network(if let Json::Text(text) = &item { text } else { "" }))
        };
        reader.items(items, read).map(|networks| Self(Networks(networks)))
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

body! { response
    /// A key that was issued.
    pub struct IssueKeyResponse {
        /// Identifies the key.
        key_id: KeyId,
        /// The key itself. Store it: it is shown only once.
        api_key: KeyText,
    }
}

/// The text of a key. `Debug` hides it.
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
        /// Seconds for which the old key stays valid. Default: 86400, one day.
        overlap_s: Option<Whole<0, OVERLAP_MAX_S>>,
    }
}

body! { response
    /// The replacement of a key.
    pub struct RotateKeyResponse {
        /// Identifies the new key.
        key_id: KeyId,
        /// The new key itself. Store it: it is shown only once.
        api_key: KeyText,
        /// The old key, which is valid until the overlap ends.
        previous: KeyResponse,
    }
}

body! { response
    /// The keys of a client.
    pub struct KeysResponse {
        /// All keys, including revoked ones.
        keys: Vec<KeyResponse>,
    }
}

body! { response
    /// A key, without its text.
    #[derive(Clone)]
    pub struct KeyResponse {
        /// Identifies the key.
        key_id: KeyId,
        /// The client that owns it.
        client_id: ClientId,
        /// The description for operators.
        label: String,
        /// The environments in which the key is valid; empty means all.
        environments: Vec<Profile>,
        /// The addresses and networks from which the key may be used; empty means all.
        networks: Vec<String>,
        /// The time of issue.
        created_at: Timestamp,
        /// The time of expiry, or null for never.
        expires_at: Option<Timestamp>,
        /// The time of revocation, or null.
        revoked_at: Option<Timestamp>,
        /// The time of the last use, accurate to ten minutes; only in the list of keys.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        last_used_at: Option<Timestamp>,
        /// The steps that remain after a revocation; absent otherwise.
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
