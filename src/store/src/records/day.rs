//! The figures of an app for each day.

use sakshi_domain::day_figures::Day;
use sakshi_domain::ids::{AppId, Partition};

use super::{in_partition, table};
use crate::engine::Key;

table! {
    /// The figures of an app on a day. `took_…` are the answers that took at most so many seconds, and more than those before.
    DAY = "day", Record Ends {
        opened: Integer,
        verified: Integer,
        declined: Integer,
        failed: Integer,
        delivered: Integer,
        lost: Integer,
        took_2: Integer,
        took_5: Integer,
        took_10: Integer,
        took_15: Integer,
        took_20: Integer,
        took_30: Integer,
        took_45: Integer,
        took_60: Integer,
        took_90: Integer,
        took_120: Integer,
        took_180: Integer,
        took_300: Integer,
        took_600: Integer,
        took_900: Integer,
    }
}

/// The figures of an app on a day.
#[must_use]
pub(crate) fn day(app: &AppId, day: Day) -> Key {
    in_partition(&DAY, Partition::of_name(app.as_str()), format!("{app}:{}", day.0).into_bytes())
}
