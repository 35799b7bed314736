//! Reasons of failures, derived from the errors of libraries and the system. The fault is either with this machine,
//! which ran out of file descriptors, ports or memory, or with the receiver.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::iter::successors;
use std::net::UdpSocket;

use sakshi_domain::delivery::{AttemptPart, DeliveryOutcome, FailureReason};
use tokio_rustls::rustls::{AlertDescription, CertificateError, Error as TlsError};

/// Reason why an attempt has no status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The attempt ended with this result.
    Ended(DeliveryOutcome, FailureReason, AttemptPart),
    /// This machine ran out of a resource for the connection; nothing was sent.
    Local,
    /// The receiver refused the request without processing it; it may accept it later.
    Refused,
    /// The request was not sent, or the receiver closed the connection and reported the request as not processed.
    Unprocessed,
}

impl Failure {
    /// Builds the failure to connect by TCP or TLS: no request was sent.
    pub(crate) fn from_connect_error(error: &(dyn Error + 'static), part: AttemptPart) -> Self {
        match find_reason(error) {
            FailureReason::Local => Self::Local,
            reason => Self::Ended(DeliveryOutcome::Unreachable, reason, part),
        }
    }

    /// Builds the failure of a connection that broke before the receiver's answer.
    pub(crate) fn from_broken_connection(error: &(dyn Error + 'static)) -> Self {
        Self::Ended(DeliveryOutcome::Broken, find_reason(error), AttemptPart::Answer)
    }
}

/// Returns the reason of a failure.
pub(crate) fn find_reason(error: &(dyn Error + 'static)) -> FailureReason {
    if is_exhaustion(error) {
        return FailureReason::Local;
    }
    chain(error).find_map(own_reason).unwrap_or(FailureReason::Unknown)
}

/// Returns the reason that this error names by itself; `None` if an error that it wraps may say more.
fn own_reason(error: &(dyn Error + 'static)) -> Option<FailureReason> {
    if let Some(error) = error.downcast_ref::<TlsError>() {
        return Some(tls_reason(error));
    }
    if let Some(error) = error.downcast_ref::<hyper::Error>() {
        let is_closed = error.is_incomplete_message() || error.is_closed() || error.is_canceled();
        return (is_closed && error.source().is_none()).then_some(FailureReason::Reset);
    }
    match error.downcast_ref::<io::Error>()?.kind() {
        ErrorKind::ConnectionRefused => Some(FailureReason::Refused),
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable | ErrorKind::NetworkDown => {
            Some(FailureReason::NoRoute)
        }
        ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe
        | ErrorKind::UnexpectedEof => Some(FailureReason::Reset),
        ErrorKind::TimedOut => Some(FailureReason::TimedOut),
        _ => None,
    }
}

/// Returns the reason that an error of the TLS library names.
fn tls_reason(error: &TlsError) -> FailureReason {
    use AlertDescription as Alert;
    match error {
        TlsError::InvalidCertificate(error) => certificate_reason(error),
        TlsError::PeerIncompatible(_)
        | TlsError::AlertReceived(Alert::ProtocolVersion | Alert::HandshakeFailure | Alert::InsufficientSecurity) => {
            FailureReason::TlsVersion
        }
        // Alerts of receivers about our certificate.
        TlsError::AlertReceived(
            Alert::CertificateRequired
            | Alert::NoCertificate
            | Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::UnknownCA
            | Alert::AccessDenied,
        ) => FailureReason::TlsClientCertificate,
        _ => FailureReason::Tls,
    }
}

/// Returns the reason why the receiver's certificate was refused.
fn certificate_reason(error: &CertificateError) -> FailureReason {
    use CertificateError as Certificate;
    match error {
        Certificate::Expired
        | Certificate::ExpiredContext { .. }
        | Certificate::NotValidYet
        | Certificate::NotValidYetContext { .. } => FailureReason::TlsExpired,
        Certificate::NotValidForName | Certificate::NotValidForNameContext { .. } => FailureReason::TlsName,
        _ => FailureReason::TlsChain,
    }
}

/// Iterates over an error and the errors that it wraps, outermost first.
fn chain<'error>(error: &'error (dyn Error + 'static)) -> impl Iterator<Item = &'error (dyn Error + 'static)> {
    successors(Some(error), |error: &&'error (dyn Error + 'static)| cause(*error))
}

/// Returns the error that an error wraps.
fn cause<'error>(error: &'error (dyn Error + 'static)) -> Option<&'error (dyn Error + 'static)> {
    // `source()` of an `io::Error` skips the error that it wraps.
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(wrapped) => Some(wrapped),
        None => error.source(),
    }
}

/// System error codes of exhausted resources.
const EXHAUSTION_CODES: [i32; 5] = [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM, libc::EADDRNOTAVAIL];

/// Returns true if an exhausted resource of this machine made resolving or connecting fail.
pub(crate) fn is_exhaustion(error: &(dyn Error + 'static)) -> bool {
    chain(error).any(|error| error.downcast_ref().is_some_and(is_exhaustion_code))
}

/// Returns true if this machine can open no socket now. The system's resolver then reports misleading errors.
pub(crate) fn is_out_of_sockets() -> bool {
    UdpSocket::bind(("127.0.0.1", 0)).is_err_and(|error| is_exhaustion_code(&error))
}

fn is_exhaustion_code(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|code| EXHAUSTION_CODES.contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exhausted_machine_is_distinguished_from_a_fault_of_the_receiver() {
        let wrapped_error = |code| io::Error::other(io::Error::from_raw_os_error(code));
        for code in EXHAUSTION_CODES {
            assert!(is_exhaustion(&wrapped_error(code)), "{code}");
            assert_eq!(find_reason(&wrapped_error(code)), FailureReason::Local, "{code}");
        }
        for (code, expected) in [
            (libc::ECONNREFUSED, FailureReason::Refused),
            (libc::ECONNRESET, FailureReason::Reset),
            (libc::EPIPE, FailureReason::Reset),
            (libc::EHOSTUNREACH, FailureReason::NoRoute),
            (libc::ENETUNREACH, FailureReason::NoRoute),
            (libc::ETIMEDOUT, FailureReason::TimedOut),
            (libc::EIO, FailureReason::Unknown),
        ] {
            let error = wrapped_error(code);
            assert!(!is_exhaustion(&error), "{code}");
            assert_eq!(find_reason(&error), expected, "{code}");
        }
        assert!(!is_out_of_sockets() && !is_exhaustion(&io::Error::other("failed to lookup address information")));
    }

    #[test]
    fn alerts_about_our_certificate_differ_from_errors_of_the_receivers() {
        for (error, expected) in [
            (TlsError::InvalidCertificate(CertificateError::NotValidYet), FailureReason::TlsExpired),
            (TlsError::InvalidCertificate(CertificateError::UnknownIssuer), FailureReason::TlsChain),
            (TlsError::InvalidCertificate(CertificateError::NotValidForName), FailureReason::TlsName),
            (TlsError::AlertReceived(AlertDescription::UnknownCA), FailureReason::TlsClientCertificate),
            (TlsError::AlertReceived(AlertDescription::ProtocolVersion), FailureReason::TlsVersion),
            (TlsError::AlertReceived(AlertDescription::InternalError), FailureReason::Tls),
        ] {
            assert_eq!(find_reason(&io::Error::new(ErrorKind::InvalidData, error.clone())), expected, "{error}");
        }
    }
}
