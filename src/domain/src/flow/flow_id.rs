//! The id of a flow: `documentId`, `transactionId`, `eStampId` or `uniqueIdentifier`, depending on the kind.
//! It has the layout of a transaction id.

use crate::ids::uuid_id;

uuid_id!(
    /// Id of a flow, for its client and its upstream.
    FlowId
);
