//! The store of many nodes: Redis 7 or later, as one server, under Sentinel or as a cluster.
//!
//! ```text
//! open, complete, claim … ──▶ one Lua script each ──▶ one slot: everything of one client
//! load, list …            ──▶ read-only scripts and commands, each routed by its key
//! ```
//!
//! Each trait of [`crate::Store`] is implemented in the file of its name; the scripts are in `lua/`,
//! the names of the keys in `keys`. Scripts take the time from the server, so no node's clock decides
//! anything, and recognise what they did before, so a command whose reply was lost is sent again.
//! Records expire by their time to live, so there is nothing to sweep. `link` sends commands to the
//! servers; `nodes` watches the other nodes and takes over from those that have died.

pub(crate) mod arguments;
mod canary;
mod check;
mod clock;
pub(crate) mod data_loss;
#[cfg(feature = "fuzzing")]
mod given;
mod installation;
#[cfg(test)]
mod key_table;
pub(crate) mod keys;
mod link;
#[cfg(test)]
mod lost_replies;
pub(crate) mod nodes;
mod options;
pub(crate) mod reply;
pub(crate) mod script;
mod server_check;
pub(crate) mod shared;
mod store;
#[cfg(test)]
mod tests;

#[cfg(feature = "fuzzing")]
pub use self::given::{GivenReplies, masters, notice};
pub use self::installation::may_open;
pub use self::link::{BadRedisUrl, CallFigures, LinkFigures, RedisServers, RedisTopology};
pub use self::options::{NodeId, RedisOptions};
pub use self::store::RedisStore;
