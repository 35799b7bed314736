//! The database file: its directory and lock, its connections, its schema, and the check that this
//! node has the keys it was written under.

pub(crate) mod canary;
pub(crate) mod check;
pub(crate) mod connection;
pub(crate) mod files;
pub(crate) mod installation;
pub(crate) mod log;
pub(crate) mod pages;
pub(crate) mod schema;
pub(crate) mod statements;
