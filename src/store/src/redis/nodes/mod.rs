//! The other nodes: heartbeats, taking over from dead nodes, notices between nodes, and the thread
//! that does all of this.

pub(crate) mod background;
pub(crate) mod heartbeats;
pub(crate) mod membership;
pub(crate) mod notices;
