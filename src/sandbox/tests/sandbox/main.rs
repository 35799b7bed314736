//! Tests of the stand-ins for the identity app, the upstreams and a webhook receiver, through their interfaces.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "an error here is a failed test")]

mod app;
mod credentials;
mod receiver;
mod scene;
mod upstreams;
