//! Positions in the outbox: a delivery's number is its stream's position with the partition in
//! between, so that numbers are in the order of time over all partitions and name their partition.
//!
//! Milliseconds since 1970 in the 44 upper bits, 6 bits of partition, 14 bits within the
//! millisecond.

use sakshi_domain::delivery::DeliveryId;
use sakshi_domain::ids::Partition;

const NUMBER_BITS: u32 = 14;
const PARTITION_BITS: u32 = 6;
const LOWER: u32 = NUMBER_BITS + PARTITION_BITS;

/// The delivery at a stream's position such as `1800000000000-0`.
pub(super) fn delivery(partition: Partition, position: &[u8]) -> Option<DeliveryId> {
    let (millis, number) = std::str::from_utf8(position).ok()?.split_once('-')?;
    let (millis, number): (u64, u64) = (millis.parse().ok()?, number.parse().ok()?);
    let fits = millis < 1 << (u64::BITS - LOWER) && number < 1 << NUMBER_BITS;
    fits.then(|| DeliveryId(millis << LOWER | u64::from(partition.number()) << NUMBER_BITS | number))
}

/// A delivery's position in the stream of its partition.
pub(super) fn of(id: DeliveryId) -> String {
    format!("{}-{}", id.0 >> LOWER, id.0 & ((1 << NUMBER_BITS) - 1))
}

/// The last position of a partition's stream that is not after a delivery of any partition.
pub(super) fn until(partition: Partition, id: DeliveryId) -> String {
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
        fn a_number_is_the_position_and_the_partition_in_the_order_of_time(
            (millis, number, of_partition) in (0..1_u64 << 44, 0..1_u64 << 14, 0..64_usize),
            (later, other, of_other) in (0..1_u64 << 44, 0..1_u64 << 14, 0..64_usize),
        ) {
            let id = delivery(partition(of_partition), format!("{millis}-{number}").as_bytes()).unwrap();
            prop_assert_eq!(of(id), format!("{millis}-{number}"));
            let second = delivery(partition(of_other), format!("{later}-{other}").as_bytes()).unwrap();
            prop_assert_eq!(id.cmp(&second), (millis, of_partition, number).cmp(&(later, of_other, other)));
            // A stream read after `until` has every delivery after the other and none before it.
            let bound = until(partition(of_other), id);
            let (bound_millis, bound_number) = bound.split_once('-').unwrap();
            let after = (later, other) > (bound_millis.parse().unwrap(), bound_number.parse().unwrap());
            if bound != "0-0" {
                prop_assert_eq!(after, second > id);
            }
        }
    }

    #[test]
    fn what_is_no_position_or_does_not_fit_has_no_number() {
        for text in ["", "-", "1", "a-1", "1-b", "1-16384", "17592186044416-0", "-1-0"] {
            assert_eq!(delivery(partition(0), text.as_bytes()), None, "{text}");
        }
        assert_eq!(of(DeliveryId(u64::MAX)), "17592186044415-16383");
    }
}
