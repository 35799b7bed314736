//! What an actor must tell to live on a shard.

use std::fmt::{Debug, Display};
use std::hash::Hash;

use actix::{Actor, Context, Handler, Message, Supervised};

/// An actor that lives on a shard.
pub trait ShardActor: Actor<Context = Context<Self>> + Supervised + Handler<Deadline> + Unpin {
    /// What it is known by.
    type Id: Copy + Eq + Hash + Debug + Display + Send + Unpin + 'static;
    /// What all of them use.
    type Shared: Clone + Send + Sync + Unpin + 'static;
    /// Its name in logs and metrics.
    const KIND: &'static str;

    /// A byte of the id that is as good as random.
    fn random_byte(id: &Self::Id) -> u8;

    /// The byte that chooses the shard: of N shards, number `byte % N` serves the id.
    fn shard_byte(id: &Self::Id) -> u8;

    /// The time by which deadlines are judged, in milliseconds since the Unix epoch.
    fn now_millis(shared: &Self::Shared) -> i64;
}

/// The moment for which an actor's timer was set has come.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub struct Deadline;
