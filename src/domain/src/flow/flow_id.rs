//! The id of a flow: `documentId`, `transactionId`, `eStampId` or `uniqueIdentifier`, depending on its
//! kind. Its layout is that of a [`TxnId`].

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::ids::{Partition, TxnId};

/// Identifies a flow to its client and to its upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FlowId(TxnId);

impl FlowId {
    /// A new id in the client's partition.
    #[must_use]
    pub fn generate(partition: Partition, shard_byte: u8) -> Self {
        Self(TxnId::generate(partition, shard_byte))
    }

    /// The id with these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(TxnId::from_bytes(bytes))
    }

    /// The sixteen bytes of the id.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    /// The partition of the client that owns it.
    #[must_use]
    pub const fn partition(&self) -> Partition {
        self.0.partition()
    }

    /// The byte that picks a shard, as of a transaction.
    #[must_use]
    pub const fn shard_byte(&self) -> u8 {
        self.0.shard_byte()
    }
}

impl fmt::Display for FlowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for FlowId {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ClientId;

    #[test]
    fn a_flow_id_is_read_back_from_text_and_bytes_and_tells_its_place() {
        let client = ClientId::generate();
        let id = FlowId::generate(client.partition(), 0xA7);
        assert_eq!((id.partition(), id.shard_byte()), (client.partition(), 0xA7));
        assert_eq!((id.to_string().parse(), FlowId::from_bytes(*id.as_bytes())), (Ok(id), id));
    }
}
