//! The state of a transaction for its page: the outcome and the reason of a failure, never the shared claims.

use std::sync::Arc;

use sakshi_actors::View;
use sakshi_domain::ids::TxnId;
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::{Failure, Outcome, Pending};
use sakshi_service::Service;
use sakshi_web::error::ApiError;

/// A transaction as its page shows it.
#[derive(Debug)]
pub(super) enum PageState {
    /// Waiting for the person.
    Waiting(Arc<Pending>),
    /// Verified at this time.
    Verified(Pending, Timestamp),
    /// Not verified.
    NotVerified(Pending, Failure),
    /// Expired without an outcome.
    Expired(Arc<Pending>),
    /// Unknown, or deleted after its retention.
    Unknown,
}

impl PageState {
    /// Loads the state of a transaction.
    ///
    /// # Errors
    /// Any error of the store.
    pub(super) async fn load(service: &Service, id: Option<TxnId>) -> Result<Self, ApiError> {
        match id {
            Some(id) => Self::from_view(service, service.transactions.get(id).await?),
            None => Ok(Self::Unknown),
        }
    }

    /// Converts the view of the transaction. The outcome is unsealed only for the reason of a failure.
    ///
    /// # Errors
    /// An internal error when the outcome cannot be unsealed.
    pub(super) fn from_view(service: &Service, view: View) -> Result<Self, ApiError> {
        Ok(match view {
            View::Pending(pending) => Self::Waiting(pending),
            View::Completed(record) if record.passed => Self::Verified(record.opened, record.verified_at),
            View::Completed(record) => {
                let verified_at = record.verified_at;
                let completed = service.transactions.reveal(*record).map_err(ApiError::internal)?;
                match completed.outcome {
                    Outcome::Verified(_) => Self::Verified(completed.opened, verified_at),
                    Outcome::NotVerified(failure) => Self::NotVerified(completed.opened, failure),
                }
            }
            View::Expired(opened) => Self::Expired(opened),
            View::Unknown => Self::Unknown,
        })
    }

    /// Returns the name of the state in responses.
    pub(super) const fn as_str(&self) -> &'static str {
        match self {
            Self::Waiting(_) => "waiting",
            Self::Verified(..) => "verified",
            Self::NotVerified(..) => "not_verified",
            Self::Expired(_) => "expired",
            Self::Unknown => "unknown",
        }
    }

    /// Returns the transaction as it was opened.
    pub(super) fn opened(&self) -> Option<&Pending> {
        match self {
            Self::Waiting(opened) | Self::Expired(opened) => Some(opened),
            Self::Verified(opened, _) | Self::NotVerified(opened, _) => Some(opened),
            Self::Unknown => None,
        }
    }

    /// Returns the URL to which the requester wants the person to return, once the transaction has ended.
    pub(super) fn redirect_url(&self) -> Option<&str> {
        if matches!(self, Self::Waiting(_)) {
            return None;
        }
        self.opened()?.terms.redirect_url()
    }
}
