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
mod audit_log;
mod canary;
mod clock;
mod credits;
pub(crate) mod data_loss;
pub(crate) mod delivery_id;
mod erasure;
mod events;
mod flows;
#[cfg(feature = "fuzzing")]
mod given;
mod idempotency;
mod installation;
mod intent_key;
#[cfg(test)]
mod key_table;
pub(crate) mod keys;
mod link;
#[cfg(test)]
mod lost_replies;
pub(crate) mod nodes;
mod operators;
mod options;
mod outbox;
mod refusals;
pub(crate) mod reply;
mod reseal;
pub(crate) mod script;
mod server_check;
mod sessions;
pub(crate) mod shared;
mod store;
mod tenancy;
#[cfg(test)]
mod tests;
mod transactions;
mod transfers;
mod upkeep;

#[cfg(feature = "fuzzing")]
pub use self::given::{GivenReplies, masters, notice};
pub use self::installation::may_open;
pub use self::link::{BadRedisUrl, CallFigures, LinkFigures, RedisServers, RedisTopology};
pub use self::options::{NodeId, RedisOptions};
pub use self::store::RedisStore;
pub(crate) use self::store::unwatched;
