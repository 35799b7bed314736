//! The intended run. It is determined before the first request.

use std::time::Duration;

use sakshi_domain::event::OnDuplicate;
use sakshi_domain::limits::DOORS_MAX;
use thiserror::Error;

use crate::cli::{Options, Scenario};

/// The intended run.
#[derive(Clone, Debug)]
pub(crate) struct Workload {
    pub(crate) scenario: Scenario,
    /// Arrival model of the guests.
    pub(crate) model: Model,
    pub(crate) guests: u64,
    /// Intended length of the run.
    pub(crate) length: Duration,
    /// Share of guests who leave before they answer.
    pub(crate) abandon: f64,
    /// Share of guests who decline.
    pub(crate) decline: f64,
    /// Number of places of the event.
    pub(crate) max_guests: u64,
    /// Mean time before each step.
    pub(crate) think_time: Duration,
    /// Seed of every random choice.
    pub(crate) seed: u64,
    /// Share of returning guests.
    pub(crate) duplicates: f64,
    /// The event's handling of returning guests.
    pub(crate) on_duplicate: OnDuplicate,
    /// Doors of the event.
    pub(crate) doors: u32,
    /// Share of guests whose tickets are scanned at two doors.
    pub(crate) twice_share: f64,
    /// Time for which the first door has no network.
    pub(crate) door_offline: Duration,
    /// Time between two points of the report.
    pub(crate) slice: Duration,
}

/// Arrival model of the guests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Model {
    /// Arrivals independent of the service: a Poisson process with this rate per second.
    Open { rate: f64 },
    /// Users who start again after they have finished, at the earliest an interval after their previous start.
    Closed { users: u32, interval: Option<Duration> },
}

/// The reason why options are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum WorkloadError {
    #[error("--{0} must be a number {1}")]
    Range(&'static str, &'static str),
    #[error("--abandon and --decline together must not be more than 1")]
    Shares,
    #[error("of --guests, --minutes and --rate at most two can be chosen")]
    Overdetermined,
    #[error("--duplicates, --doors and --door-offline need guests of an event, and --door-offline needs --doors")]
    Doors,
    #[error("--doors needs an event with at most {LISTED_MAX} guests: a door lists no more")]
    TooManyForDoors,
    #[error("a storm lasts one minute: choose --guests only")]
    StormLength,
}

/// Maximum places of an event (the service's limit).
const PLACES_MAX: u64 = 1_000_000;
/// Maximum guests of an event whose doors (check-in pages at its entrances) keep a list (the service's limit).
const LISTED_MAX: u64 = 20_000;
/// Number of points of a plot.
const SLICE_COUNT: u32 = 120;
/// Minutes of the longest planned run: a week.
const MINUTES_MAX: f64 = 10_080.0;

impl Workload {
    /// Determines the run from the options.
    ///
    /// # Errors
    /// [`WorkloadError`] if an option is out of range, or options contradict each other.
    pub(crate) fn from_options(options: &Options) -> Result<Self, WorkloadError> {
        check_ranges(options)?;
        if options.abandon + options.decline > 1.0 {
            return Err(WorkloadError::Shares);
        }
        let (guests, seconds) = guests_and_seconds(options)?;
        check_doors(options, guests)?;
        let rate = guests as f64 / seconds;
        let model = match options.users {
            None => Model::Open { rate },
            Some(users) => {
                let is_paced = options.rate.is_some() || options.minutes.is_some();
                Model::Closed { users, interval: is_paced.then(|| Duration::from_secs_f64(f64::from(users) / rate)) }
            }
        };
        let slice = match options.scenario {
            Scenario::Soak => Duration::from_secs(60),
            _ => Duration::from_secs_f64((seconds / f64::from(SLICE_COUNT)).ceil().max(1.0)),
        };
        Ok(Self {
            scenario: options.scenario,
            model,
            guests,
            length: Duration::from_secs_f64(seconds),
            abandon: options.abandon,
            decline: options.decline,
            max_guests: options.max_guests.unwrap_or(guests).min(PLACES_MAX),
            think_time: Duration::from_secs_f64(options.think_time),
            seed: options.seed,
            duplicates: options.duplicates,
            on_duplicate: options.on_duplicate,
            doors: options.doors,
            twice_share: options.twice,
            door_offline: Duration::from_secs_f64(options.door_offline),
            slice,
        })
    }

    /// Returns the arrivals per second, if the model sets them.
    pub(crate) fn rate(&self) -> Option<f64> {
        match self.model {
            Model::Open { rate } => Some(rate),
            Model::Closed { users, interval } => interval.map(|interval| f64::from(users) / interval.as_secs_f64()),
        }
    }

    /// Returns true if the guests visit an event, false if client backends open the transactions.
    pub(crate) const fn has_event(&self) -> bool {
        !matches!(self.scenario, Scenario::Api)
    }
}

/// Refuses the first option that is out of range.
fn check_ranges(options: &Options) -> Result<(), WorkloadError> {
    let is_share = |value: f64| (0.0..=1.0).contains(&value);
    let at_least_0 = |value: f64| (0.0..1e6).contains(&value);
    let checks = [
        (is_share(options.abandon), "abandon", "from 0 to 1"),
        (is_share(options.decline), "decline", "from 0 to 1"),
        (is_share(options.desktops), "desktops", "from 0 to 1"),
        (is_share(options.duplicates), "duplicates", "from 0 to 1"),
        (is_share(options.twice), "twice", "from 0 to 1"),
        (options.doors as usize <= DOORS_MAX, "doors", "from 0 to 50"),
        (at_least_0(options.door_offline), "door-offline", "from 0"),
        (options.rate.is_none_or(|rate| rate > 0.0 && rate < 1e6), "rate", "above 0"),
        (
            options.minutes.is_none_or(|minutes| minutes > 0.0 && minutes <= MINUTES_MAX),
            "minutes",
            "above 0, at most a week",
        ),
        (options.guests.is_none_or(|guests| guests > 0), "guests", "above 0"),
        (options.users.is_none_or(|users| users > 0), "users", "above 0"),
        (options.max_guests.is_none_or(|places| (1..=PLACES_MAX).contains(&places)), "max-guests", "from 1 to 1000000"),
        (at_least_0(options.think_time), "think-time", "from 0"),
        (at_least_0(options.late), "late", "from 0"),
        (at_least_0(options.patience), "patience", "from 0"),
        (options.timeout > 0.0 && options.timeout < 1e6, "timeout", "above 0"),
    ];
    if let Some((_, name, range)) = checks.into_iter().find(|(is_valid, ..)| !is_valid) {
        return Err(WorkloadError::Range(name, range));
    }
    Ok(())
}

/// Refuses doors and duplicates without an event, or for too many guests.
fn check_doors(options: &Options, guests: u64) -> Result<(), WorkloadError> {
    let is_api = options.scenario == Scenario::Api;
    if is_api && (options.doors > 0 || options.duplicates > 0.0) || options.doors == 0 && options.door_offline > 0.0 {
        return Err(WorkloadError::Doors);
    }
    if options.doors > 0 && guests.min(options.max_guests.unwrap_or(guests)) > LISTED_MAX {
        return Err(WorkloadError::TooManyForDoors);
    }
    Ok(())
}

/// Returns the number of guests, and the seconds over which they arrive.
fn guests_and_seconds(options: &Options) -> Result<(u64, f64), WorkloadError> {
    let (guests, minutes, rate) = (options.guests, options.minutes, options.rate);
    if options.scenario == Scenario::Storm {
        return if minutes.is_some() || rate.is_some() {
            Err(WorkloadError::StormLength)
        } else {
            Ok((guests.unwrap_or(5_000), 60.0))
        };
    }
    let (default_minutes, default_rate) = match options.scenario {
        Scenario::Soak => (30.0, 5.0),
        _ => (1.0, 50.0),
    };
    let at_rate = |minutes: f64, rate: f64| ((minutes * 60.0 * rate).round().max(1.0) as u64, minutes * 60.0);
    match (guests, minutes, rate) {
        (Some(_), Some(_), Some(_)) => Err(WorkloadError::Overdetermined),
        (Some(guests), Some(minutes), None) => Ok((guests, minutes * 60.0)),
        (Some(guests), None, rate) => Ok((guests, guests as f64 / rate.unwrap_or(default_rate))),
        (None, minutes, rate) => Ok(at_rate(minutes.unwrap_or(default_minutes), rate.unwrap_or(default_rate))),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    /// Determines the run of a command line.
    fn workload(line: &str) -> Result<Workload, WorkloadError> {
        Workload::from_options(&Options::try_parse_from(line.split(' ')).unwrap())
    }

    #[test]
    fn guests_minutes_and_rate_determine_each_other() {
        let parse =
            |line: &str| workload(line).map(|workload| (workload.guests, workload.length.as_secs(), workload.model));
        assert_eq!(
            parse("x kiosk --guests 20000 --minutes 4"),
            Ok((20_000, 240, Model::Open { rate: 20_000.0 / 240.0 }))
        );
        assert_eq!(parse("x api --rate 100 --minutes 2"), Ok((12_000, 120, Model::Open { rate: 100.0 })));
        assert_eq!(parse("x kiosk --guests 100 --rate 10"), Ok((100, 10, Model::Open { rate: 10.0 })));
        assert_eq!(parse("x storm --guests 600"), Ok((600, 60, Model::Open { rate: 10.0 })));
        assert_eq!(parse("x soak"), Ok((9_000, 1_800, Model::Open { rate: 5.0 })));
        let paced = Model::Closed { users: 20, interval: Some(Duration::from_secs(2)) };
        assert_eq!(parse("x kiosk --users 20 --guests 100 --rate 10"), Ok((100, 10, paced)));
        assert_eq!(parse("x kiosk --users 20 --guests 100").unwrap().2, Model::Closed { users: 20, interval: None });
    }

    #[test]
    fn doors_and_duplicates_need_an_event_of_limited_size() {
        let parse =
            |line: &str| workload(line).map(|workload| (workload.doors, workload.on_duplicate, workload.rate()));
        let line = "x kiosk --guests 90 --minutes 1 --doors 3 --door-offline 20 --duplicates 0.1 --on-duplicate refuse";
        assert_eq!(parse(line), Ok((3, OnDuplicate::Refuse, Some(1.5))));
        assert_eq!(parse("x kiosk --doors 3 --users 4 --rate 10"), Ok((3, OnDuplicate::Flag, Some(10.0))));
        assert_eq!(parse("x kiosk --users 4"), Ok((0, OnDuplicate::Flag, None)));
        for line in ["x api --doors 1", "x api --duplicates 0.1", "x kiosk --door-offline 5"] {
            assert_eq!(parse(line), Err(WorkloadError::Doors), "{line}");
        }
        assert_eq!(parse("x kiosk --guests 20001 --doors 1"), Err(WorkloadError::TooManyForDoors));
        assert_eq!(parse("x kiosk --guests 20001 --max-guests 20000 --doors 1").map(|parsed| parsed.0), Ok(1));
        assert_eq!(parse("x kiosk --doors 51"), Err(WorkloadError::Range("doors", "from 0 to 50")));
        assert_eq!(parse("x kiosk --twice 2"), Err(WorkloadError::Range("twice", "from 0 to 1")));
    }

    #[test]
    fn contradictions_are_refused() {
        assert_eq!(workload("x kiosk --guests 1 --minutes 1 --rate 1").err(), Some(WorkloadError::Overdetermined));
        assert_eq!(workload("x storm --minutes 3").err(), Some(WorkloadError::StormLength));
        assert_eq!(workload("x kiosk --abandon 0.6 --decline 0.6").err(), Some(WorkloadError::Shares));
        assert_eq!(workload("x kiosk --rate NaN").err(), Some(WorkloadError::Range("rate", "above 0")));
        assert_eq!(workload("x kiosk --abandon 1.5").err(), Some(WorkloadError::Range("abandon", "from 0 to 1")));
        assert_eq!(workload("x kiosk --desktops NaN").err(), Some(WorkloadError::Range("desktops", "from 0 to 1")));
    }
}
