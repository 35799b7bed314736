//! Sessions of people who sign in, as a user or with an API key.
//!
//! A store keeps a session under the digest of its id, with its other data sealed. The store knows neither the id nor a
//! key, so its content does not allow a sign-in.

use std::fmt;

use sakshi_domain::ids::{AppId, UserId};
use sakshi_domain::tenancy::KeyDigest;
use sakshi_domain::time::Timestamp;
use serde::{Deserialize, Serialize};

/// SHA-256 of the id that the browser holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionDigest(pub [u8; 32]);

impl fmt::Debug for SessionDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionDigest([not shown])")
    }
}

/// The person of a session. Every use of the session checks again that the person may sign in.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionHolder {
    /// A person with an API key.
    Key(KeyDigest),
    /// A user.
    User {
        /// Id of the user.
        id: UserId,
        /// Number of the credential used for the sign-in. With a newer credential the session no longer works.
        epoch: i64,
    },
}

/// A session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRecord {
    /// The digest of the session's id.
    pub digest: SessionDigest,
    /// The person.
    pub holder: SessionHolder,
    /// The app on whose behalf the session acts.
    pub app: AppId,
    /// The time of the sign-in.
    pub opened_at: Timestamp,
    /// The network from which the person signed in.
    pub network: String,
    /// The browser, in words.
    pub browser: String,
    /// Time at which the session ends unless it is used; at most `ends_at`.
    pub idle_until: Timestamp,
    /// Time at which the session ends in any case.
    pub ends_at: Timestamp,
}

/// The part of a session that is stored sealed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SessionGrant {
    pub(crate) holder: SessionHolder,
    pub(crate) app: AppId,
    pub(crate) opened_at: Timestamp,
    pub(crate) network: String,
    pub(crate) browser: String,
}

impl SessionRecord {
    /// Returns the part of the session that is stored sealed.
    pub(crate) fn grant(&self) -> SessionGrant {
        let Self { holder, app, opened_at, network, browser, .. } = self.clone();
        SessionGrant { holder, app, opened_at, network, browser }
    }
}
