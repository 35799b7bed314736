//! The daily figures of an app.

use sakshi_domain::day_figures::Day;
use sakshi_domain::ids::{AppId, Partition};

use super::{key_in_partition, table};
use crate::engine::Key;

table! {
    /// The figures of an app on a day. `took_N` counts the answers that took at most `N` seconds but longer than the
    /// preceding `took_` field.
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
    } always {
        Within("opened", 0, i64::MAX),
        Within("verified", 0, i64::MAX),
        Within("declined", 0, i64::MAX),
        Within("failed", 0, i64::MAX),
        Within("delivered", 0, i64::MAX),
        Within("lost", 0, i64::MAX),
        Within("took_2", 0, i64::MAX),
        Within("took_5", 0, i64::MAX),
        Within("took_10", 0, i64::MAX),
        Within("took_15", 0, i64::MAX),
        Within("took_20", 0, i64::MAX),
        Within("took_30", 0, i64::MAX),
        Within("took_45", 0, i64::MAX),
        Within("took_60", 0, i64::MAX),
        Within("took_90", 0, i64::MAX),
        Within("took_120", 0, i64::MAX),
        Within("took_180", 0, i64::MAX),
        Within("took_300", 0, i64::MAX),
        Within("took_600", 0, i64::MAX),
        Within("took_900", 0, i64::MAX),
        Rises(&[
            "opened",
            "verified",
            "declined",
            "failed",
            "delivered",
            "lost",
        ]),
        New,
        Key(KeyRule::OfAppFirst),
    }
}

/// Returns the key of the figures of an app on a day.
#[must_use]
pub(crate) fn key_of_day(app: &AppId, day: Day) -> Key {
    key_in_partition(&DAY, Partition::of_name(app.as_str()), format!("{app}:{}", day.0).into_bytes())
}
