//! Every invariant is broken once and reported by its name.

mod kinds;
mod recorded;
mod stopped;
mod words;
