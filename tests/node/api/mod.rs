//! The API of client backends.

mod credits;
mod events;
mod flows;
mod openapi;
mod pan;
mod polls;
