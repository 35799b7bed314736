//! `sakshi healthcheck`, for container images without other tools.

use std::io::Write;

use sakshi_client::{Call, Credentials};

use super::Healthcheck;
use super::api::Api;
use super::error::CliError;
use crate::settings::{Sources, internal_endpoint};

/// Asks a node whether it is ready, and prints the answer. Returns true if it is.
pub(super) async fn run(options: &Healthcheck, sources: &Sources, out: &mut dyn Write) -> Result<bool, CliError> {
    let (base, certificate) = match &options.url {
        Some(url) => (url.clone(), None),
        None => {
            let internal = internal_endpoint(sources, None)?;
            (internal.url, internal.certificate)
        }
    };
    let egress = options.certificates.egress(certificate.as_deref())?;
    match Api::new(base, Credentials::None, &egress)?.send_and_discard(Call::<()>::get("/readyz")).await {
        Ok(()) => {
            writeln!(out, "ready")?;
            Ok(true)
        }
        Err(CliError::Refused(reason) | CliError::NotFound(reason)) => {
            writeln!(out, "not ready: {reason}")?;
            Ok(false)
        }
        Err(CliError::Unreachable(reason)) => {
            writeln!(out, "not reachable: {reason}")?;
            Ok(false)
        }
        Err(other) => Err(other),
    }
}
