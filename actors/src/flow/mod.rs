//! The flow actor, what it can be asked, and the sweeper that looks for what has lapsed.

mod actor;
mod message;
mod sweeper;

pub(crate) use actor::{FlowActor, FlowGround, LAPSES_AT_ONCE};
pub(crate) use message::{FlowAnswer, FlowQuestion, OpenIt, TakeIn};
pub(crate) use sweeper::FlowSweeper;

#[cfg(test)]
pub(crate) use actor::Detonate;
