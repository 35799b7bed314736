//! The link to Redis: a call goes in, and an answer or an error comes out within a time limit.
//!
//! Every call is repeatable, so the link repeats it while its reply is lost: through a time-out, a reset, a restart, a
//! failover. It ends with an answer, or with [`crate::StoreError::Unavailable`] when its time is up; at once if the
//! server has been down for longer than that. At most `max_waiting` calls are in flight, and nothing else queues. The
//! link does not know the purpose of the scripts.
//!
//! [`api`] ─▶ [`call_limit`] ─▶ [`directory`]: the node ─▶ [`health`]: permission ─▶ [`node`]: a connection ─▶ answer,
//! or a [`failure`] that decides the next step.

mod api;
mod call_limit;
mod calls;
mod connect;
mod connect_error;
mod counters;
mod directory;
pub(super) mod failure;
mod health;
mod listening;
mod node;
mod reads;
mod request;
mod retry;
mod slot_ranges;
#[cfg(test)]
mod tests;
mod topology;

pub(crate) use self::api::{Link, LinkOptions};
pub use self::counters::{CallFigures, LinkFigures};
pub(crate) use self::listening::{Channels, Shard};
pub(crate) use self::retry::{Backoff, Until};
#[cfg(feature = "fuzzing")]
pub(crate) use self::slot_ranges::parse_masters;
pub(crate) use self::topology::Address;
pub use self::topology::{BadCertificates, BadRedisUrl, RedisServers, RedisTopology};
