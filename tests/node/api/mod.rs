//! The API of client backends.

mod compatible;
mod credits;
mod ended;
mod manners;
mod openapi;
mod orders;
mod polls;
mod rules;
mod sandbox;
