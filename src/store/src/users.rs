//! Users of clients, as callers see them.

use std::fmt;

use sakshi_domain::tenancy::{App, Client};
use sakshi_domain::user::User;
use serde::{Deserialize, Serialize};

/// SHA-256 of the secret in a link that invites a user.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct InviteDigest(pub [u8; 32]);

impl fmt::Debug for InviteDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InviteDigest([not shown])")
    }
}

/// The secrets by which a user signs in. They are sealed in the store.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credential {
    /// The salt of the password.
    pub salt: [u8; 16],
    /// Number of iterations of the password hash.
    pub iterations: u32,
    /// The hash of the password.
    pub hash: [u8; 32],
    /// Secret of the one-time codes (TOTP).
    pub totp: [u8; 20],
    /// Digests of the remaining recovery codes.
    pub recovery: Vec<[u8; 32]>,
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential([not shown])")
    }
}

/// The outcome of an invitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InviteOutcome {
    /// The user is invited.
    Invited,
    /// Another user has the address.
    EmailTaken,
    /// The client has too many users.
    TooMany,
    /// No such client.
    NotFound,
}

/// The user who has the email address of a sign-in, before the password is checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignInCandidate {
    /// The user.
    pub user: User,
    /// The credential.
    pub credential: Credential,
    /// Number of the credential. Sessions remember it, and end with it.
    pub epoch: i64,
}

/// The data that decides whether a user's session may act for an app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserGrant {
    /// The user.
    pub user: User,
    /// The number of the credential.
    pub epoch: i64,
    /// The user's client.
    pub client: Client,
    /// The app, if it exists; it may belong to another client.
    pub app: Option<App>,
}
