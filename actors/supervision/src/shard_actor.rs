//! Requirements on an actor that lives on a shard.

use std::fmt::{Debug, Display};
use std::hash::Hash;

use actix::{Actor, Context, Handler, Message, Supervised};

/// An actor that lives on a shard.
pub trait ShardActor: Actor<Context = Context<Self>> + Supervised + Handler<Deadline> + Unpin {
    /// Type of its id.
    type Id: Copy + Eq + Hash + Debug + Display + Send + Unpin + 'static;
    /// Dependencies of all actors of this type.
    type Shared: Clone + Send + Sync + Unpin + 'static;
    /// Name in logs and metrics.
    const KIND: &'static str;

    /// Returns a random byte of the id.
    fn random_byte(id: &Self::Id) -> u8;

    /// Returns the byte that chooses the shard: of N shards, number `byte % N` serves the id.
    fn shard_byte(id: &Self::Id) -> u8;

    /// Returns the current time for deadlines, in milliseconds since the Unix epoch.
    fn now_millis(shared: &Self::Shared) -> i64;
}

/// The time of an actor's timer has come.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub struct Deadline;
