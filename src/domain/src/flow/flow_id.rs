//! The id of a flow: `documentId`, `transactionId`, `eStampId` or `uniqueIdentifier`, depending on its
//! kind. Its layout is that of a transaction's.

use crate::ids::uuid_id;

uuid_id!(
    /// Id of a flow, for its client and its upstream.
    FlowId
);
