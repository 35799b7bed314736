//! Errors of building an HTTP client.

use std::error::Error;

use thiserror::Error as ThisError;

/// Reason why an HTTP client cannot be built.
#[derive(Debug, ThisError)]
pub enum ClientError {
    /// The extra certificate authorities are not a PEM bundle of at least one certificate.
    #[error("outbound.ca_file: must have PEM certificates")]
    ExtraRoots,
    /// The client certificate of this installation or its key is not PEM, or they do not match.
    #[error(
        "outbound.client_cert: must have PEM certificates, and outbound.client_key the PEM private key of the first"
    )]
    Identity,
    /// The token for upstreams contains characters that a header cannot carry.
    #[error("the upstreams' token cannot be sent in a header")]
    Token,
    /// TLS cannot be set up, for example because the system has no trusted certificate authorities.
    #[error("the HTTP client cannot be built: {}", innermost(.0.as_ref()))]
    Tls(#[source] Box<dyn Error + Send + Sync>),
}

impl ClientError {
    pub(crate) fn tls(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Tls(error.into())
    }
}

/// Returns the root cause, which the messages of the libraries leave out.
fn innermost(error: &(dyn Error + Send + Sync + 'static)) -> String {
    let mut reason: &dyn Error = error;
    while let Some(source) = reason.source() {
        reason = source;
    }
    reason.to_string()
}
