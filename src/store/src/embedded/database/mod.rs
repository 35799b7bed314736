//! The database file: its directory and lock, its connections, its schema, and the checks before it is opened.

pub(crate) mod canary;
pub(crate) mod check;
pub(crate) mod connection;
pub(crate) mod files;
pub(crate) mod installation;
pub(crate) mod log;
pub(crate) mod pages;
pub(crate) mod schema;
pub(crate) mod statements;
