//! Flows, which an upstream carries out and whose outcome is sent to the client once: eSign, document
//! locker, e-stamp and the three wealth-data streams (specification, "Events").
//!
//! A connector's body becomes a [`report::Report`]. The flow *admits* the report by checking it against the
//! opening terms. The [`transition::Transition`] then holds the state to store and the [`dedup::DedupKey`] of
//! a due webhook. The wire crate defines the bodies; each flow reads them through a trait.

pub mod api_type;
pub mod consent_given;
pub mod dates;
pub mod dedup;
pub mod doclocker;
pub mod esign;
pub mod estamp;
pub mod file;
pub mod flow_id;
pub mod flow_state;
pub mod header;
pub mod report;
pub mod report_kind;
pub mod statuses;
pub mod text;
pub mod transition;
pub mod wealth_consent;
pub mod wealth_data;
pub mod wealth_historical;
pub mod webhook_target;
