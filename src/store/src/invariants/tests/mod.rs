//! Every invariant is broken once, and its name is seen.

mod kinds;
mod recorded;
mod stopped;
mod words;
