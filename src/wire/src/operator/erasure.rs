//! The erasure of personal data before its retention ends.

use sakshi_domain::erasure::ErasureKind;

use crate::body::body;
use crate::text::Words;

body! { request
    /// The data to erase.
    #[derive(Clone, PartialEq)]
    pub struct EraseRequest {
        /// The kind of record: a single record, or all records of an app or client.
        kind: ErasureKind,
        /// The id of the record, app or client.
        id: Words<64>,
    }
}

body! { response
    /// The numbers of erased records. A record that was erased before is not counted again.
    #[derive(Clone, PartialEq, Eq)]
    pub struct EraseResponse {
        /// Erased transactions.
        transactions: u64,
        /// Registered guests whose data was erased. Their places at the event stay taken.
        registrations: u64,
        /// Erased events.
        events: u64,
        /// Erased flows.
        flows: u64,
        /// Erased responses under idempotency keys.
        answers: u64,
        /// Erased records of refused requests.
        refusals: u64,
        /// Erased users of the portal.
        users: u64,
    }
}
