//! Readers of upstreams' answers as bytes, for the fuzzer.

use sakshi_domain::checks::{CheckQuery, CheckResult};
use sakshi_wire::PageUrl;
use sakshi_wire::esign::EsignOutcome;

use super::answer::Answer;
use super::wealth::AskedConsent;
use super::{UpstreamError, check, doclocker, esign, wealth};

/// Reads the answer to a question to a source.
///
/// # Errors
/// The answer is not of the expected form.
pub fn checked(body: &[u8], query: &CheckQuery) -> Result<CheckResult, UpstreamError> {
    check::result(Answer::read(body)?, query)
}

/// Reads the answer to an order of documents.
///
/// # Errors
/// The answer is not of the expected form.
pub fn locker_page(body: &[u8]) -> Result<PageUrl, UpstreamError> {
    doclocker::page(Answer::read(body)?)
}

/// Reads the answer to an order of signatures.
///
/// # Errors
/// The answer is not of the expected form.
pub fn signing_pages(body: &[u8], latest: &EsignOutcome) -> Result<Vec<PageUrl>, UpstreamError> {
    esign::pages(Answer::read(body)?, latest)
}

/// Reads the answer to an order of a consent.
///
/// # Errors
/// The answer is not of the expected form.
pub fn asked_consent(body: &[u8]) -> Result<AskedConsent, UpstreamError> {
    wealth::asked(Answer::read(body)?)
}
