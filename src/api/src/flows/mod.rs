//! Flows that an upstream carries out: documents to be signed, locker documents, e-stamps and
//! wealth-data consents (specification, "Other shown endpoints").
//!
//! Each is ordered first and opened with the upstream's answer, so that the client's answer is kept
//! under its `Idempotency-Key` in the step that opens. An order whose flow was never opened concerns
//! nobody: its reports find no flow.

pub mod doclocker;
pub mod esign;
pub mod estamp;
mod file_body;
pub mod wealth;
