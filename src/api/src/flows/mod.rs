//! Flows that an upstream (an external provider) carries out: documents to be signed, locker documents, e-stamps and
//! wealth-data consents (specification, "Other shown endpoints" and "Polling fallbacks").

pub(crate) mod doclocker;
pub(crate) mod esign;
pub(crate) mod estamp;
mod file_body;
pub(crate) mod wealth;
