//! Erasure of personal data before its time.

use sakshi_domain::erasure::ErasureKind;

use crate::body::body;
use crate::text::Words;

body! { request
    /// The data to erase.
    #[derive(Clone, PartialEq)]
    pub struct EraseRequest {
        /// The kind of data: of one record, or of all of an app or client.
        kind: ErasureKind,
        /// Its id.
        id: Words<64>,
    }
}

body! { answer
    /// The numbers of erased records. Records that were erased before are not counted again.
    #[derive(Clone, PartialEq, Eq)]
    pub struct EraseResponse {
        /// Transactions.
        transactions: u64,
        /// Data of guests that events kept; their places stay taken.
        registrations: u64,
        /// Events.
        events: u64,
        /// Flows.
        flows: u64,
        /// Responses that were stored under idempotency keys.
        answers: u64,
        /// Refused requests.
        refusals: u64,
        /// Users of the portal.
        users: u64,
    }
}
