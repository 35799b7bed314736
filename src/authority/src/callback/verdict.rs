//! The meaning of the authority's error codes for a transaction.

use aws_lc_rs::digest::{Context, SHA256};
use sakshi_domain::ids::TxnId;
use sakshi_domain::transaction::{Answer, AnswerDigest, Failure};

/// The effect of a reported failure on a pending transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The transaction ends as not verified, for this reason.
    Terminal(Failure),
    /// The transaction stays pending: the app has authenticated the person and will send the answer again.
    RetryExpected,
}

/// The authority's code for a failed delivery that the app will retry.
const RETRY_CODE: &str = "308";

/// The meanings of the known codes that end a transaction, for callbacks without a message.
pub const CODE_MEANINGS: [(&str, &str); 7] = [
    ("301", "The user rejected the request"),
    ("302", "The face liveness check failed"),
    ("303", "The user aborted the verification"),
    ("304", "The face did not match"),
    ("305", "The user's biometrics are locked"),
    ("306", "The face authentication service is down"),
    ("307", "The identity app met an HTTP error"),
];

/// Decides the effect of a failure by its code. Its reason is the app's message, or without one the code's meaning.
#[must_use]
pub fn judge_failure(code: &str, message: &str) -> Verdict {
    let code = code.trim();
    if code == RETRY_CODE {
        return Verdict::RetryExpected;
    }
    let meaning = CODE_MEANINGS.iter().find(|(known, _)| *known == code).map_or("", |(_, meaning)| meaning);
    let reason = if message.trim().is_empty() { meaning } else { message };
    Verdict::Terminal(Failure::new(reason, Some(code)))
}

/// Builds the answer that ends a transaction with a failure. The digest covers transaction, code and reason, so a
/// redelivery in another format or with another timestamp has the same digest.
#[must_use]
pub fn failure_answer(txn: TxnId, failure: Failure) -> Answer {
    let code = failure.code.as_deref().unwrap_or_default();
    let mut context = Context::new(&SHA256);
    context.update(b"failure\0");
    context.update(txn.as_bytes());
    context.update(&(code.len() as u64).to_be_bytes());
    context.update(code.as_bytes());
    context.update(failure.message.as_bytes());
    let mut digest = [0; 32];
    digest.copy_from_slice(context.finish().as_ref());
    Answer::Failure { failure, digest: AnswerDigest(digest) }
}
