//! Arrivals at an event: registered guests per interval, as bars.

use sakshi_domain::event::Event;
use sakshi_domain::time::Timestamp;
use sakshi_service::check_ins::for_each_guest;
use sakshi_service::{Service, ServiceError};

/// Most guests for which bars are drawn: each guest is read for them.
const GUESTS_MAX: u32 = 20_000;
/// Fewest bars of a drawing.
const BARS_MIN: i64 = 12;
/// Most bars of a drawing.
const BARS_MAX: i64 = 48;
/// Lengths of an interval in minutes. The shortest length that needs at most [`BARS_MAX`] bars is used.
const INTERVALS_MINUTES: [i64; 10] = [1, 2, 5, 10, 15, 30, 60, 180, 720, 1_440];
const MINUTE_MS: i64 = 60_000;
/// Time within which an arrival is recent.
const RECENT_MS: i64 = 10 * MINUTE_MS;
/// Width of a bar with its gap, in units of the drawing.
const STEP: i64 = 20;
const BAR_WIDTH: i64 = 16;
/// Distance of a bar from the beginning of its step.
const BAR_OFFSET: i64 = 2;
/// Least height of a bar, so that it is visible.
const BAR_HEIGHT_MIN: u64 = 3;
/// Height of the drawing, in its units.
const HEIGHT: u64 = 100;

/// Registered guests by time.
#[derive(Debug)]
pub(super) struct Arrivals {
    /// Number of guests in each interval.
    counts: Vec<u64>,
    /// Length of an interval.
    minutes: i64,
    /// Start of the first interval.
    pub(super) from: Timestamp,
    /// End of the last interval.
    pub(super) to: Timestamp,
    /// Guests of the last ten minutes.
    pub(super) recent: u64,
}

impl Arrivals {
    /// Reads the guests of an event. Returns `None` for more than [`GUESTS_MAX`].
    ///
    /// # Errors
    /// Any error of the store.
    pub(super) async fn load(service: &Service, event: &Event) -> Result<Option<Self>, ServiceError> {
        if event.counts.registrations > GUESTS_MAX {
            return Ok(None);
        }
        let mut times = Vec::with_capacity(event.counts.registrations as usize);
        for_each_guest(&service.store, event.id, |guest| times.push(guest.verified_at.millis())).await?;
        Ok(Some(Self::from_times(&times, service.clock.now())))
    }

    /// Counts the guests, by their times of registration in milliseconds since 1970.
    fn from_times(times: &[i64], now: Timestamp) -> Self {
        let recent = times.iter().filter(|at| now.millis() - **at < RECENT_MS).count() as u64;
        let (Some(first), Some(last)) = (times.iter().min(), times.iter().max()) else {
            return Self { counts: vec![], minutes: 1, from: now, to: now, recent };
        };
        let bars = |minutes: i64| last.div_euclid(minutes * MINUTE_MS) - first.div_euclid(minutes * MINUTE_MS) + 1;
        let [.., longest] = INTERVALS_MINUTES;
        let minutes = INTERVALS_MINUTES
            .into_iter()
            .find(|minutes| bars(*minutes) <= BARS_MAX)
            .unwrap_or(longest * (bars(longest) / BARS_MAX + 1));
        let interval = minutes * MINUTE_MS;
        let first_interval = first.div_euclid(interval);
        let bars = bars(minutes).max(BARS_MIN);
        let mut counts = vec![0; usize::try_from(bars).unwrap_or_default()];
        for at in times {
            let index = usize::try_from(at.div_euclid(interval) - first_interval).ok();
            if let Some(count) = index.and_then(|index| counts.get_mut(index)) {
                *count += 1;
            }
        }
        let start = |index: i64| Timestamp::from_millis((first_interval + index) * interval);
        Self { minutes, from: start(0), to: start(bars), recent, counts }
    }

    /// Returns true if there are no guests.
    pub(super) fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Returns the number of guests in the busiest interval.
    pub(super) fn busiest(&self) -> u64 {
        self.counts.iter().copied().max().unwrap_or(0)
    }

    /// Returns the length of an interval in words: `5 minutes`.
    pub(super) fn interval(&self) -> String {
        crate::when::format_in_words(std::time::Duration::from_secs(self.minutes.unsigned_abs() * 60))
    }

    pub(super) fn width(&self) -> i64 {
        STEP * i64::try_from(self.counts.len()).unwrap_or_default()
    }

    /// Returns the bars as one path. An interval with any arrival has a visible bar.
    pub(super) fn path(&self) -> String {
        let busiest = self.busiest().max(1);
        let bar = |(index, count): (i64, &u64)| {
            let height = (count * HEIGHT / busiest).max(BAR_HEIGHT_MIN);
            let x = index * STEP + BAR_OFFSET;
            format!("M{x} {}h{BAR_WIDTH}v{height}h-{BAR_WIDTH}z", HEIGHT - height)
        };
        (0..).zip(&self.counts).filter(|(_, count)| **count > 0).map(bar).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals_at(minutes: &[i64], now: i64) -> Arrivals {
        let times: Vec<i64> = minutes.iter().map(|minute| minute * MINUTE_MS).collect();
        Arrivals::from_times(&times, Timestamp::from_millis(now * MINUTE_MS))
    }

    #[test]
    fn each_guest_is_in_one_bar_and_the_number_of_bars_is_bounded() {
        for (last, minutes) in [(0, 1), (47, 1), (48, 2), (500, 15), (60 * 24 * 30, 1_440), (60 * 24 * 300, 1_440 * 7)]
        {
            let arrivals = arrivals_at(&[0, last / 2, last], last);
            assert_eq!((arrivals.minutes, arrivals.counts.iter().sum::<u64>()), (minutes, 3), "{last}");
            assert!(
                arrivals.counts.len() <= BARS_MAX as usize
                    && arrivals.from.millis() <= 0
                    && arrivals.to.millis() > last * MINUTE_MS,
                "{arrivals:?}"
            );
        }
        assert!(arrivals_at(&[], 5).is_empty());
    }

    #[test]
    fn guests_of_the_last_ten_minutes_are_recent() {
        assert_eq!(arrivals_at(&[0, 1, 5, 10, 11], 11).recent, 3);
    }

    #[test]
    fn the_height_of_a_bar_is_proportional_to_its_guests() {
        let arrivals = arrivals_at(&[0, 0, 0, 0, 2], 3);
        assert_eq!(arrivals.path(), "M2 0h16v100h-16zM42 75h16v25h-16z");
        assert_eq!((arrivals.busiest(), arrivals.interval(), arrivals.width()), (4, "1 minute".to_owned(), 240));
    }
}
