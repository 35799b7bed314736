//! The Redis store's link to its servers.

#![allow(dead_code, reason = "the store over it comes with the next merge")]

mod link;
mod script;

pub use self::link::{BadRedisUrl, CallFigures, LinkFigures, LinkOptions, RedisServers};

/// How the servers stand to each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedisTopology {
    /// One server.
    Standalone,
    /// Sentinels, which name the master of the service.
    Sentinel {
        /// The name of the service.
        service: String,
    },
    /// A cluster.
    Cluster,
}
