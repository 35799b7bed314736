//! The embedded store under its own conditions.
