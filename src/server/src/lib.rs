//! The server around the actors: settings, HTTP, the operator's API and command line, telemetry.
//!
//! Nothing here decides a rule of the service; the domain does, and the actors carry it out.

pub mod agreement;
pub mod allocator;
pub mod budget;
pub mod cli;
pub mod demo;
pub mod descriptors;
pub mod drain;
pub mod first_client;
pub mod health;
pub mod http;
pub mod internal;
pub mod listener;
pub mod material;
pub mod node;
pub mod pages;
pub mod portal;
pub mod public;
pub mod sandbox;
pub mod serve;
pub mod service;
pub mod settings;
pub mod storage;
pub mod store_path;
pub mod telemetry;
pub mod timeline;
pub mod upstreams;

#[cfg(test)]
mod flow_fixture;
#[cfg(test)]
mod live;
#[cfg(test)]
mod universe;
