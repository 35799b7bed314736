//! Apps, API keys, and the logos of clients and events.

use crate::invariants::is_id;
use crate::tenancy::{parse_environments, parse_networks};
use sakshi_domain::brand::LogoId;
use sakshi_domain::ids::{AppId, ClientId, KeyId};
use sakshi_domain::tenancy::KeyDigest;

use super::{key_in_partition, key_outside_partitions, table};
use crate::engine::Key;

table! {
    /// An app. `record` and the registered `urls` are sealed because URLs can contain secrets.
    APP = "app", Record Stays {
        client: Text,
        record: Sealed(Id),
        urls: Sealed(Id),
    } always {
        Needed(&["client", "record"]),
        Word("client", is_id),
        Fixed(&["client"]),
        New,
        Key(KeyRule::AloneNamed),
    }
}

table! {
    /// A logo of a client or an event, or a picture, by its id. `file` is a JPEG, PNG or SVG file.
    LOGO = "logo", Record Stays {
        file: Bytes,
    } always {
        Needed(&["file"]),
        Key(KeyRule::Alone { id_bytes: 16 }),
    }
}

table! {
    /// The apps of a client by creation time.
    APPS = "apps", Index Stays {} always {
        Key(KeyRule::OfClient),
    }
}

table! {
    /// An API key, by its digest. `environments` and `networks` are lists of words. `used_at` may lag by some minutes.
    API_KEY = "key", Record Stays {
        key_id: Text,
        client: Text,
        label: Text,
        environments: Text,
        networks: Text,
        created_at: Integer,
        expires_at: Integer,
        revoked_at: Integer,
        used_at: Integer,
    } always {
        Needed(&["key_id", "client", "label", "environments", "networks", "created_at"]),
        Word("key_id", is_id),
        Word("client", is_id),
        Word("environments", |word| parse_environments(word).is_ok()),
        Word("networks", |word| parse_networks(word).is_ok()),
        Fixed(&["key_id", "client", "created_at"]),
        Once(&["revoked_at"]),
        New,
        Key(KeyRule::Alone { id_bytes: 32 }),
    }
}

table! {
    /// The digest of an API key, by its id.
    API_KEY_ID = "key_id", Record Stays {
        digest: Bytes,
    } always {
        Needed(&["digest"]),
        Sized("digest", 32, 32),
        Fixed(&["digest"]),
        New,
        Key(KeyRule::AloneNamed),
    }
}

table! {
    /// The ids of a client's API keys by creation time.
    API_KEYS = "keys", Index Stays {} always {
        Key(KeyRule::OfClient),
    }
}

/// Returns the key of the record of an app.
#[must_use]
pub(crate) fn key_of_app(id: &AppId) -> Key {
    key_outside_partitions(&APP, id.as_str().as_bytes().to_vec())
}

/// Returns the key of the record of a logo.
#[must_use]
pub(crate) fn key_of_logo(id: LogoId) -> Key {
    key_outside_partitions(&LOGO, id.0.to_vec())
}

/// Returns the key of the list of a client's apps.
#[must_use]
pub(crate) fn key_of_apps(client: &ClientId) -> Key {
    key_in_partition(&APPS, client.partition(), client.as_str().as_bytes().to_vec())
}

/// Returns the key of the record of an API key.
#[must_use]
pub(crate) fn key_of_api_key(digest: &KeyDigest) -> Key {
    key_outside_partitions(&API_KEY, digest.0.to_vec())
}

/// Returns the key of the record that finds an API key's digest by its id.
#[must_use]
pub(crate) fn key_of_api_key_id(id: &KeyId) -> Key {
    key_outside_partitions(&API_KEY_ID, id.as_str().as_bytes().to_vec())
}

/// Returns the key of the list of a client's API keys.
#[must_use]
pub(crate) fn key_of_api_keys(client: &ClientId) -> Key {
    key_in_partition(&API_KEYS, client.partition(), client.as_str().as_bytes().to_vec())
}
