//! The people of a client: invitations, the team, a user's sessions, and the start of a session.

pub(crate) mod account;
pub(crate) mod entry;
pub(crate) mod invite;
pub(crate) mod list;
mod session_origin;
