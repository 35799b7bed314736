//! Identifiers, each with its own type.
//!
//! A transaction id is a UUID (version 4). The first six bits are the store partition of the client, and the second
//! byte picks the shard. Three bytes are an approximate time, so that ids of the same time share pages of an index. The
//! other 84 bits are random: an id is also the path of a public page, so it must be unguessable.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::clock::{Clock as _, SystemClock};
use crate::limits::PARTITIONS;

/// Returns the system time in units of 64 ms. Ids contain it only to be adjacent in an index; no rule
/// depends on it.
#[must_use]
pub fn coarse_time() -> u64 {
    u64::try_from(SystemClock.now().millis()).unwrap_or(0) >> 6
}

/// The store partition that holds all data of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition(u8);

impl Partition {
    /// Returns the number of the partition, below [`PARTITIONS`].
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Returns every partition, by number.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..PARTITIONS).map(Self)
    }

    /// Returns the partition for a name (FNV-1a hash).
    #[must_use]
    pub fn of_name(name: &str) -> Self {
        let hash = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        let folded = (hash ^ (hash >> 16)) % u32::from(PARTITIONS);
        Self(u8::try_from(folded).unwrap_or(0))
    }

    /// Returns the partition in the first byte of an id.
    pub(crate) const fn from_byte(first: u8) -> Self {
        Self(first >> 2)
    }
}

/// Declares an id with the layout that the module describes.
macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::serde::Serialize, ::serde::Deserialize)]
        #[serde(transparent)]
        pub struct $name(::uuid::Uuid);

        impl $name {
            /// Generates a new id in the client's partition.
            #[must_use]
            pub fn generate(partition: $crate::ids::Partition, shard_byte: u8) -> Self {
                Self($crate::ids::partitioned_uuid(partition, shard_byte))
            }

            /// Returns the id with these bytes.
            #[must_use]
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(::uuid::Uuid::from_bytes(bytes))
            }

            /// Returns the sixteen bytes of the id.
            #[must_use]
            pub const fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }

            /// Returns the partition of the owning client.
            #[must_use]
            pub const fn partition(&self) -> $crate::ids::Partition {
                $crate::ids::Partition::from_byte(self.as_bytes()[0])
            }

            /// Returns the byte that picks the shard: a node with N shards serves the id on shard `shard_byte % N`.
            #[must_use]
            pub const fn shard_byte(&self) -> u8 {
                self.as_bytes()[1]
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = &'static str;
            /// Accepts the hyphenated form only, in either case.
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let refusal = "must be a UUID such as 3f0f6c0e-9a3e-4c55-8d2a-0b8c5e0e7f11";
                if text.len() != 36 {
                    return Err(refusal);
                }
                ::uuid::Uuid::try_parse(text).map(Self).map_err(|_| refusal)
            }
        }
    };
}
pub(crate) use uuid_id;

uuid_id!(
    /// Id of a transaction.
    TxnId
);

/// Generates a random UUID that carries a partition, a shard byte and the approximate time.
pub(crate) fn partitioned_uuid(partition: Partition, shard_byte: u8) -> Uuid {
    let mut bytes = *Uuid::new_v4().as_bytes();
    bytes[0] = (partition.0 << 2) | (bytes[0] & 0b11);
    bytes[1] = shard_byte;
    // 24 bits of 64 ms wrap around after twelve days.
    bytes[2..5].copy_from_slice(&coarse_time().to_be_bytes()[5..]);
    Uuid::from_bytes(bytes)
}

/// Id of an event: twelve bytes as seventeen base62 characters. Six bits are the partition, the second byte
/// picks the shard, and 82 bits are random.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventId([u8; 12]);

const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Characters of an event id: 62^17 is the first power above 2^96.
pub const EVENT_ID_CHARS: usize = 17;

impl EventId {
    /// Generates a new id in the client's partition.
    #[must_use]
    pub fn generate(partition: Partition, shard_byte: u8) -> Self {
        let random = *Uuid::new_v4().as_bytes();
        let mut bytes = [0; 12];
        // Bytes 6 and 8 of a UUID hold its version and variant; these are random.
        bytes[..6].copy_from_slice(&random[..6]);
        bytes[6..].copy_from_slice(&random[10..]);
        bytes[0] = (partition.0 << 2) | (bytes[0] & 0b11);
        bytes[1] = shard_byte;
        Self(bytes)
    }

    /// Returns the twelve bytes of the id.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 12] {
        &self.0
    }

    /// Returns the id with these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 12]) -> Self {
        Self(bytes)
    }

    /// Returns the partition of the owning client.
    #[must_use]
    pub const fn partition(&self) -> Partition {
        Partition::from_byte(self.0[0])
    }

    /// Returns the byte that picks the shard, as for a transaction.
    #[must_use]
    pub const fn shard_byte(&self) -> u8 {
        self.0[1]
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut number = self.0.iter().fold(0_u128, |number, byte| (number << 8) | u128::from(*byte));
        let mut text = [b'0'; EVENT_ID_CHARS];
        for digit in text.iter_mut().rev() {
            *digit = BASE62[usize::try_from(number % 62).unwrap_or(0)];
            number /= 62;
        }
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

impl fmt::Debug for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EventId({self})")
    }
}

impl FromStr for EventId {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refusal = "must be an event id of 17 letters and digits";
        if text.len() != EVENT_ID_CHARS {
            return Err(refusal);
        }
        let mut number = 0_u128;
        for character in text.bytes() {
            let digit = BASE62.iter().position(|known| *known == character).ok_or(refusal)?;
            number = number * 62 + digit as u128;
        }
        if number >> 96 != 0 {
            return Err(refusal);
        }
        let mut bytes = [0; 12];
        bytes.copy_from_slice(&number.to_be_bytes()[4..]);
        Ok(Self(bytes))
    }
}

impl Serialize for EventId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for EventId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Declares an opaque text identifier with its prefix.
macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Generates a new random id.
            #[must_use]
            pub fn generate() -> Self {
                Self(format!(concat!($prefix, "{}"), Uuid::new_v4().simple()).into())
            }

            /// Returns the id as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = &'static str;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
                if text.is_empty() || text.len() > 64 || !text.bytes().all(is_allowed) {
                    return Err("must be 1 to 64 letters, digits, hyphens or underscores");
                }
                Ok(Self(text.into()))
            }
        }
    };
}

text_id!(
    /// Id of a client, which pays with credits.
    ClientId,
    "cl_"
);
text_id!(
    /// Id of an application of a client, sent as `X-API-APP-ID`.
    AppId,
    "app_"
);
text_id!(
    /// Id of an API key. It is not the key itself.
    KeyId,
    "key_"
);
text_id!(
    /// Id of an operator of the service.
    OperatorId,
    "op_"
);
text_id!(
    /// Id of a portal user of a client.
    UserId,
    "usr_"
);
text_id!(
    /// Id of a grant request, which needs a second operator.
    GrantId,
    "gr_"
);

impl ClientId {
    /// Returns the partition that holds the client's records.
    #[must_use]
    pub fn partition(&self) -> Partition {
        Partition::of_name(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_id_is_a_uuid_that_carries_partition_and_shard_byte() {
        for _ in 0..1_000 {
            let client = ClientId::generate();
            let id = TxnId::generate(client.partition(), 0xA7);
            assert_eq!(id.0.get_version_num(), 4);
            assert_eq!(id.partition(), client.partition());
            assert_eq!(id.shard_byte(), 0xA7);
            assert_eq!(id.to_string().parse(), Ok(id));
        }
    }

    #[test]
    fn transaction_ids_of_the_same_time_are_adjacent_and_distinct() {
        let partition = ClientId::generate().partition();
        let (mut ids, before) = (Vec::new(), coarse_time());
        while ids.len() < 1_000 {
            ids.push(TxnId::generate(partition, 7));
        }
        let times: std::collections::BTreeSet<_> = ids.iter().map(|id| id.as_bytes()[2..5].to_vec()).collect();
        assert!(times.len() as u64 <= coarse_time() - before + 1, "{times:?}");
        for byte in 5..16 {
            let seen: std::collections::HashSet<u8> = ids.iter().map(|id| id.as_bytes()[byte]).collect();
            assert!(seen.len() >= 16, "byte {byte}: {seen:?}");
        }
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 1_000);
    }

    #[test]
    fn an_event_id_is_url_safe_and_carries_partition_and_shard_byte() {
        for _ in 0..1_000 {
            let client = ClientId::generate();
            let id = EventId::generate(client.partition(), 0x5C);
            let text = id.to_string();
            assert!(text.len() == 17 && text.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{text}");
            assert_eq!((text.parse(), id.partition(), id.shard_byte()), (Ok(id), client.partition(), 0x5C));
        }
        for text in ["", "short", "zzzzzzzzzzzzzzzzz", "0000000000000000-", "00000000000000000x"] {
            assert!(text.parse::<EventId>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_time_in_ids_is_the_system_time() {
        let units = || u64::try_from(SystemClock.now().millis()).unwrap() / 64;
        let (before, between, after) = (units(), coarse_time(), units());
        assert!((before..=after).contains(&between), "{before} {between} {after}");
    }

    /// The store finds data by its partition, so partitions must never change.
    #[test]
    fn the_partition_of_a_client_never_changes() {
        for (client, partition) in [("cl_1", 52), ("cl_2", 9), ("cl_3f0f6c0e9a3e4c558d2a0b8c5e0e7f11", 34), ("a", 32)] {
            assert_eq!(client.parse::<ClientId>().unwrap().partition().number(), partition, "{client}");
        }
    }

    #[test]
    fn clients_spread_over_all_partitions() {
        let seen: std::collections::HashSet<u8> =
            (0..5_000).map(|_| ClientId::generate().partition().number()).collect();
        assert_eq!(seen.len(), usize::from(PARTITIONS));
    }

    #[test]
    fn malformed_ids_are_refused() {
        for text in ["", "a b", "x/y", "é", &"x".repeat(65)] {
            assert!(text.parse::<AppId>().is_err(), "{text}");
        }
        for text in ["", "3f0f6c0e9a3e4c558d2a0b8c5e0e7f11", "{3f0f6c0e-9a3e-4c55-8d2a-0b8c5e0e7f}", "x"] {
            assert!(text.parse::<TxnId>().is_err(), "{text}");
        }
    }
}
