//! The store of many nodes: Redis 7 or later, as one server, under Sentinel or as a cluster.
//!
//! ```text
//! batches ──▶ one script ──▶ one slot: everything of one client
//! queries ──▶ one read-only script for each slot
//! ```
//!
//! `engine::redis` stores the records, on top of this: `link` sends commands to the servers, `script` has the scripts
//! of `lua/`, `step` changes keys that are not records, and `keys` has their names. Scripts take the time from the
//! server, so no node's clock decides anything. A command whose reply was lost is sent again: the script finds its
//! earlier execution. Records expire by their time to live, so nothing needs sweeping. `data_loss` detects servers that
//! have lost data; `nodes` watches the other nodes and takes over from dead ones.

pub(crate) mod arguments;
mod canary;
mod check;
mod clock;
pub(crate) mod data_loss;
#[cfg(feature = "fuzzing")]
mod fake_replies;
mod installation;
#[cfg(test)]
mod key_table;
pub(crate) mod keys;
mod link;
#[cfg(test)]
mod lost_replies;
pub(crate) mod message_pack;
pub(crate) mod nodes;
mod options;
pub(crate) mod reply;
pub(crate) mod schema;
pub(crate) mod script;
mod server_check;
pub(crate) mod shared;
mod step;
mod store;
#[cfg(test)]
mod tests;

#[cfg(feature = "fuzzing")]
pub use self::fake_replies::{FakeReplies, parse_masters, parse_notice};
pub use self::installation::may_open;
pub(crate) use self::link::Until;
pub use self::link::{BadCertificates, BadRedisUrl, CallFigures, LinkFigures, RedisServers, RedisTopology};
pub use self::options::{NodeId, RedisOptions};
pub use self::schema::{Finish, FinishState};
pub use self::store::RedisStore;
pub(crate) use self::store::build_shared;
