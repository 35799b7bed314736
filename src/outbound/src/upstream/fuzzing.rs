//! Answers of upstreams as bytes, for the fuzzer.

use sakshi_domain::checks::{CheckQuery, CheckResult};
use sakshi_wire::PageUrl;
use sakshi_wire::esign::EsignOutcome;

use super::answer::Answer;
use super::wealth::AskedConsent;
use super::{UpstreamError, check, doclocker, esign, wealth};

/// The answer to a question to a source.
///
/// # Errors
/// It is not what was asked for.
pub fn checked(body: &[u8], query: &CheckQuery) -> Result<CheckResult, UpstreamError> {
    check::result(Answer::read(body)?, query)
}

/// The answer to an order of documents.
///
/// # Errors
/// It is not what was asked for.
pub fn locker_page(body: &[u8]) -> Result<PageUrl, UpstreamError> {
    doclocker::page(Answer::read(body)?)
}

/// The answer to an order of signatures.
///
/// # Errors
/// It is not what was asked for.
pub fn signing_pages(body: &[u8], latest: &EsignOutcome) -> Result<Vec<PageUrl>, UpstreamError> {
    esign::pages(Answer::read(body)?, latest)
}

/// The answer to an order of a consent.
///
/// # Errors
/// It is not what was asked for.
pub fn asked_consent(body: &[u8]) -> Result<AskedConsent, UpstreamError> {
    wealth::asked(Answer::read(body)?)
}
