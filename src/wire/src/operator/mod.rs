//! Bodies of the internal listener, for operators, connectors and probes.

pub mod audit_log;
pub mod brand;
pub mod clock;
pub mod consents;
pub mod credits;
pub mod data_loss;
pub mod erasure;
pub mod intent_keys;
pub mod keys;
pub mod log_level;
pub mod nodes;
pub mod operators;
pub mod reseal;
pub mod tenancy;
pub mod transfer;
pub mod upgrade;
pub mod users;
pub mod views;
