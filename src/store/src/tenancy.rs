//! Clients, their apps, their API keys, and the webhook URLs that an app has registered.

use sakshi_domain::network::{Networks, parse_network};
use sakshi_domain::profile::Profile;
use sakshi_domain::tenancy::{ApiKeyRecord, App, Client};
use sakshi_domain::time::Timestamp;

use crate::error::StoreError;

/// The data that decides whether an API key may act for an app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyGrant {
    /// The key.
    pub key: ApiKeyRecord,
    /// Time of the last recorded use.
    pub used_at: Option<Timestamp>,
    /// The client that owns the key.
    pub client: Client,
    /// The app, if it exists; it may belong to another client.
    pub app: Option<App>,
}

/// The end of an API key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyEnd {
    /// It is revoked at this time. The first revocation stands.
    Revoked(Timestamp),
    /// It expires at this time. The earlier of two times stands.
    Expires(Timestamp),
}

/// Formats the environments of a key for storage, with one word for each.
pub(crate) fn join_environments(environments: &[Profile]) -> String {
    environments.iter().map(|profile| profile.as_str()).collect::<Vec<_>>().join(" ")
}

/// Parses the environments in a stored text.
pub(crate) fn parse_environments(text: &str) -> Result<Vec<Profile>, StoreError> {
    let environments = text.split_terminator(' ').map(|word| word.parse().ok()).collect::<Option<_>>();
    environments.ok_or_else(|| StoreError::unreadable("the environments of a key"))
}

/// Parses the networks in a stored text.
pub(crate) fn parse_networks(text: &str) -> Result<Networks, StoreError> {
    let networks = text.split_terminator(' ').map(|word| parse_network(word).ok()).collect::<Option<_>>();
    networks.map(Networks).ok_or_else(|| StoreError::unreadable("the networks of a key"))
}
