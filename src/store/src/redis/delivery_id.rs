//! Ids of deliveries: the id of the stream entry with the partition in between, so that ids are in
//! the order of time over all partitions and name their partition.
//!
//! The upper 44 bits are milliseconds since 1970, then come 6 bits of partition and 14 bits of
//! sequence number within the millisecond.

use sakshi_domain::delivery::DeliveryId;
use sakshi_domain::ids::Partition;
use sakshi_domain::time::Timestamp;

use crate::error::StoreError;

const NUMBER_BITS: u32 = 14;
const PARTITION_BITS: u32 = 6;
const LOWER: u32 = NUMBER_BITS + PARTITION_BITS;

/// The delivery of a stream entry with an id such as `1800000000000-0`.
pub(crate) fn of_entry(partition: Partition, entry: &[u8]) -> Result<DeliveryId, StoreError> {
    parse(partition, entry).ok_or_else(|| StoreError::unreadable("the id of a delivery"))
}

fn parse(partition: Partition, entry: &[u8]) -> Option<DeliveryId> {
    let (millis, number) = std::str::from_utf8(entry).ok()?.split_once('-')?;
    let (millis, number): (u64, u64) = (millis.parse().ok()?, number.parse().ok()?);
    let fits = millis < 1 << (u64::BITS - LOWER) && number < 1 << NUMBER_BITS;
    fits.then(|| DeliveryId(millis << LOWER | u64::from(partition.number()) << NUMBER_BITS | number))
}

/// The stream entry of a delivery.
pub(crate) fn entry(id: DeliveryId) -> String {
    format!("{}-{}", id.0 >> LOWER, id.0 & ((1 << NUMBER_BITS) - 1))
}

/// When the stream entry with this id was queued.
pub(crate) fn queued_at(entry: &str) -> Result<Timestamp, StoreError> {
    let millis = entry.split_once('-').and_then(|(millis, _)| millis.parse().ok());
    millis.map(Timestamp::from_millis).ok_or_else(|| StoreError::unreadable("the id of a delivery"))
}

/// The last entry id in a partition's stream that is not after a delivery of any partition.
pub(crate) fn entry_not_after(partition: Partition, id: DeliveryId) -> String {
    let (millis, within) = (id.0 >> LOWER, id.0 & ((1 << LOWER) - 1));
    let (other, number) = (within >> NUMBER_BITS, within & ((1 << NUMBER_BITS) - 1));
    match u64::from(partition.number()).cmp(&other) {
        std::cmp::Ordering::Less => format!("{millis}-{}", (1 << NUMBER_BITS) - 1),
        std::cmp::Ordering::Equal => format!("{millis}-{number}"),
        std::cmp::Ordering::Greater if millis == 0 => "0-0".into(),
        std::cmp::Ordering::Greater => format!("{}-{}", millis - 1, (1 << NUMBER_BITS) - 1),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::keys::partitions;
    use super::*;

    fn partition(number: usize) -> Partition {
        partitions().nth(number).unwrap()
    }

    proptest! {
        #[test]
        fn an_id_is_the_entry_and_the_partition_in_the_order_of_time(
            (millis, number, of_partition) in (0..1_u64 << 44, 0..1_u64 << 14, 0..64_usize),
            (later, other, of_other) in (0..1_u64 << 44, 0..1_u64 << 14, 0..64_usize),
        ) {
            let id = parse(partition(of_partition), format!("{millis}-{number}").as_bytes()).unwrap();
            prop_assert_eq!(entry(id), format!("{millis}-{number}"));
            let second = parse(partition(of_other), format!("{later}-{other}").as_bytes()).unwrap();
            prop_assert_eq!(id.cmp(&second), (millis, of_partition, number).cmp(&(later, of_other, other)));
            // A stream read after the bound has every delivery after the other and none before it.
            let bound = entry_not_after(partition(of_other), id);
            let (bound_millis, bound_number) = bound.split_once('-').unwrap();
            let after = (later, other) > (bound_millis.parse().unwrap(), bound_number.parse().unwrap());
            if bound != "0-0" {
                prop_assert_eq!(after, second > id);
            }
        }
    }

    #[test]
    fn nothing_comes_before_the_first_millisecond() {
        let first = parse(partition(3), b"0-1").unwrap();
        assert_eq!([2, 3, 4].map(|of| entry_not_after(partition(of), first)), ["0-16383", "0-1", "0-0"]);
    }

    #[test]
    fn an_invalid_or_too_large_entry_has_no_id() {
        for text in ["", "-", "1", "a-1", "1-b", "1-16384", "17592186044416-0", "-1-0"] {
            assert_eq!(parse(partition(0), text.as_bytes()), None, "{text}");
        }
        assert_eq!(entry(DeliveryId(u64::MAX)), "17592186044415-16383");
    }
}
