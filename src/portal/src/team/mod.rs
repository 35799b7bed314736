//! The people of a client: invitations, the team, the sessions of each, and how a session begins.

pub(crate) mod account;
pub(crate) mod entry;
pub(crate) mod invite;
pub(crate) mod list;
mod sight;
