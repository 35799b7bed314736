//! Erasing what is known of people before its time.

use sakshi_domain::erasure::ErasureKind;

use crate::body::body;
use crate::text::Words;

body! { request
    /// What is to be erased.
    #[derive(Clone, PartialEq)]
    pub struct EraseRequest {
        /// What it is.
        kind: ErasureKind,
        /// Its id.
        id: Words<64>,
    }
}

body! { answer
    /// How many records were erased. What was erased before is not counted again.
    #[derive(Clone, PartialEq, Eq)]
    pub struct EraseResponse {
        /// Transactions.
        transactions: u64,
        /// What events kept of guests, whose places stay.
        registrations: u64,
        /// Events.
        events: u64,
        /// Flows.
        flows: u64,
        /// Answers that were kept under idempotency keys.
        answers: u64,
        /// Refused requests.
        refusals: u64,
        /// Users of the portal.
        users: u64,
    }
}
