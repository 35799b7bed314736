//! The flow actor and what it can be asked.

mod actor;
mod message;

pub(crate) use actor::{FlowActor, FlowGround, LAPSES_AT_ONCE};
pub(crate) use message::{FlowAnswer, FlowQuestion, OpenIt, TakeIn};

#[cfg(test)]
pub(crate) use actor::Detonate;
