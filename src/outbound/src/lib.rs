//! The HTTP clients for webhooks and for upstreams. Each request is sent once, with limits on time, memory and
//! connections.
//!
//! [`client`] sends webhooks over HTTP/1.1 (`http1`) or HTTP/2 (`http2`), whose connections `pool` holds. `egress` has
//! the forward proxy, and `tunnel` connects through it. [`guard`] judges addresses; `resolver`, which calls
//! `getaddrinfo`, returns only permitted addresses. [`upstream`] sends the orders that open flows. [`audit`] sends the
//! operators' audit log. The actors decide when to send, and record the result.

mod activity;
pub mod audit;
pub mod client;
mod connect;
pub mod document;
mod egress;
mod error;
mod exchange;
mod failure;
mod getaddrinfo;
pub mod guard;
mod http1;
mod http2;
mod pinned;
mod pool;
pub mod recent;
mod resolver;
mod tls;
mod tls_runtime;
mod tunnel;
pub mod upstream;

pub use egress::{Egress, EgressOptions};
pub use error::ClientError;
