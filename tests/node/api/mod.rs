//! The API of client backends.

mod credits;
mod openapi;
mod orders;
mod polls;
mod rules;
