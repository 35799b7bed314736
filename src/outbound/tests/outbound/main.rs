//! Tests of webhooks, orders and checks with receivers and upstreams on real sockets.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "an error here is a failed test")]

mod attempts;
mod authority;
mod check;
mod few_descriptors;
mod frames;
mod http2;
mod interface;
mod orders;
mod parsed;
mod proxy;
mod reasons;
mod receiver;
mod sender;
mod storm;
mod tls;
mod unprocessed;
