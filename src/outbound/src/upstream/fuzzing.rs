//! Parsers of upstreams' answers, for the fuzzer.

use sakshi_domain::checks::{CheckQuery, CheckResult};
use sakshi_wire::PageUrl;
use sakshi_wire::esign::EsignOutcome;

use super::answer::Answer;
use super::wealth::RequestedConsent;
use super::{UpstreamError, check, doclocker, esign, wealth};

/// Parses a source's answer to a question of a synchronous verification.
///
/// # Errors
/// [`UpstreamError::Unreadable`] when the body is not a valid answer.
pub fn parse_check(body: &[u8], query: &CheckQuery) -> Result<CheckResult, UpstreamError> {
    check::read_result(Answer::read(body)?, query)
}

/// Parses the answer to an order for documents.
///
/// # Errors
/// [`UpstreamError::Unreadable`] when the body is not a valid answer.
pub fn parse_locker_page(body: &[u8]) -> Result<PageUrl, UpstreamError> {
    doclocker::read_page(Answer::read(body)?)
}

/// Parses the answer to an order for signatures.
///
/// # Errors
/// [`UpstreamError::Unreadable`] when the body is not a valid answer.
pub fn parse_signing_pages(body: &[u8], latest: &EsignOutcome) -> Result<Vec<PageUrl>, UpstreamError> {
    esign::read_pages(Answer::read(body)?, latest)
}

/// Parses the answer to an order for a consent.
///
/// # Errors
/// [`UpstreamError::Unreadable`] when the body is not a valid answer.
pub fn parse_consent(body: &[u8]) -> Result<RequestedConsent, UpstreamError> {
    wealth::read_consent(Answer::read(body)?)
}
