//! The threads of the store and the jobs that they execute.

pub(crate) mod checkpoint;
pub(crate) mod job;
pub(crate) mod readers;
pub(crate) mod writer;
