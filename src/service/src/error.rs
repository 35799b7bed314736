//! Errors of use cases, which each API turns into its own responses.

use std::time::Duration;

use sakshi_actors::AskError;
use sakshi_authority::intent::IntentError;
use sakshi_domain::checks::NumberForm;
use sakshi_domain::event::EventRefusal;
use sakshi_domain::flow::transition::ReportRefusal;
use sakshi_domain::invalid::Invalid;
use sakshi_outbound::upstream::UpstreamError;
use sakshi_store::StoreError;
use sakshi_trace::invariant::Broken;

/// Pause before a retry while the signing token is unavailable.
const SIGNER_RETRY: Duration = Duration::from_secs(5);

/// Reason why a use case was refused. Nothing was changed or debited, unless a variant says otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServiceError {
    /// Fields that are missing, unknown or not acceptable.
    Invalid(Invalid),
    /// The caller's key is not, or no longer, valid for the app.
    Unauthorized,
    /// The client's balance does not cover the operation.
    InsufficientCredits,
    /// No such transaction of this app.
    TransactionNotFound,
    /// No such resource; the text names its kind.
    NotFound(&'static str),
    /// The transaction has ended with an answer.
    AlreadyCompleted,
    /// The transaction has expired.
    TransactionExpired,
    /// The event has changed since the version that the change expects.
    EventChanged,
    /// The operation contradicts what is stored.
    Conflict {
        /// A stable code.
        code: &'static str,
        /// A sentence for the caller.
        message: &'static str,
    },
    /// An upstream's report contradicts the state of its flow.
    ReportRefused(ReportRefusal),
    /// The event accepts no guest now.
    EventRefused(EventRefusal),
    /// The idempotency key was used for another request.
    IdempotencyKeyReused,
    /// The value to verify is not a number of this form.
    MalformedNumber(&'static NumberForm),
    /// This installation has no upstream for the request.
    NotOffered,
    /// An upstream did not accept an order.
    Upstream(UpstreamError),
    /// A source did not answer a question. Nothing was opened.
    Source(UpstreamError),
    /// A dependency of the request is unavailable. The request may or may not have been carried out.
    Unavailable {
        /// A stable code for the dependency.
        code: &'static str,
        /// Time after which to retry.
        retry_after: Duration,
    },
    /// The service is overloaded.
    Overloaded,
    /// The guest scanned a code that the kiosk no longer shows, or none.
    CodeExpired,
    /// The guests of an event have spent its credit budget.
    BudgetSpent,
    /// The limit on unanswered scans of an event is reached.
    ScansPending,
    /// An internal error; the text is for the log.
    Internal(String),
}

impl ServiceError {
    /// The client has reached a limit set by the operator.
    pub const LIMIT_REACHED: Self =
        Self::Conflict { code: "limit_reached", message: "The application has reached a limit set by the operator." };

    /// Builds an internal error; the text is for the log.
    pub fn internal(detail: impl std::fmt::Display) -> Self {
        Self::Internal(detail.to_string())
    }
}

impl From<Invalid> for ServiceError {
    fn from(invalid: Invalid) -> Self {
        Self::Invalid(invalid)
    }
}

impl From<EventRefusal> for ServiceError {
    fn from(refusal: EventRefusal) -> Self {
        Self::EventRefused(refusal)
    }
}

impl From<IntentError> for ServiceError {
    fn from(error: IntentError) -> Self {
        match error {
            IntentError::Unavailable => Self::Unavailable { code: "signer_unavailable", retry_after: SIGNER_RETRY },
            IntentError::Serialisation | IntentError::Signature => Self::internal(error),
        }
    }
}

impl From<UpstreamError> for ServiceError {
    fn from(error: UpstreamError) -> Self {
        Self::Upstream(error)
    }
}

impl From<StoreError> for ServiceError {
    fn from(error: StoreError) -> Self {
        let seconds = match error {
            StoreError::Overloaded | StoreError::Unavailable(_) => 1,
            StoreError::Full
            | StoreError::Corrupt(_)
            | StoreError::Broken(_)
            | StoreError::InUse(_)
            | StoreError::WrongKey
            | StoreError::OtherInstallation { .. }
            | StoreError::OtherSchema(_)
            | StoreError::DataLost(_) => 30,
        };
        Self::Unavailable { code: error.code(), retry_after: Duration::from_secs(seconds) }
    }
}

impl From<Broken> for ServiceError {
    fn from(broken: Broken) -> Self {
        Self::internal(broken)
    }
}

impl From<AskError> for ServiceError {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Overloaded => Self::Overloaded,
            AskError::NoAnswer => Self::Unavailable { code: "no_answer", retry_after: Duration::from_secs(1) },
            AskError::Store(error) => error.into(),
        }
    }
}
