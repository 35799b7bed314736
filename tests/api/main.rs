//! The public and internal API over a real port. Each test is a sentence of the specification, and has its own process,
//! store and client.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "an error here is a failed test, and the output is for the reader of the test"
)]

mod audit_push;
mod authentication;
mod backup;
mod bank;
mod brand;
mod callback;
mod callback_abuse;
mod callback_bodies;
mod checks;
mod clients;
mod clock;
mod connectors;
mod consents;
mod credential_refusals;
mod credential_status;
mod credentials;
mod credits;
mod descriptors;
mod erasure;
mod event_doors;
mod event_guests;
mod event_input;
mod event_places;
mod event_status;
mod evidence;
mod flow_creation;
mod flow_input;
mod flow_large;
mod flow_polls;
mod flow_report_refusals;
mod flow_reports;
mod flow_sandbox;
mod flow_upstream;
mod hosted_sandbox;
mod idempotency;
mod independent_issuers;
mod init;
mod init_refusals;
mod intent_keys;
mod issuer_keys;
mod key_files;
mod keys_at_rest;
mod kit_checks;
mod lifecycle;
mod limits;
mod logging;
mod metrics;
mod moving;
mod name_servers;
mod operator;
mod overload;
mod pan;
mod portal;
mod portal_commands;
mod portal_refusals;
mod portal_verifications;
mod profiles;
mod protocol;
mod qr_intent;
mod result;
mod test_clock;
mod tokens;
mod traces;
mod transfers;
mod webhook_configuration;
mod webhook_queues;
mod webhooks;
