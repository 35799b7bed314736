//! What a run will do, settled before anything is sent.

use std::time::Duration;

use thiserror::Error;

use crate::cli::{Options, Scenario};

/// What a run will do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is driven.
    pub scenario: Scenario,
    /// When the next guest comes.
    pub model: Model,
    /// How many come in all.
    pub guests: u64,
    /// How long that takes as intended.
    pub length: Duration,
    /// The share that leaves.
    pub abandon: f64,
    /// The share that declines.
    pub decline: f64,
    /// The event's places.
    pub max_guests: u64,
    /// Mean time before each step.
    pub think: Duration,
    /// Of every choice.
    pub seed: u64,
    /// Width of the report's points in time.
    pub slice: Duration,
}

/// When the next guest comes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Model {
    /// Whatever the service does: a Poisson process of this rate per second.
    Open {
        /// Arrivals per second.
        rate: f64,
    },
    /// When one of so many has gone; at the earliest an interval after the user's previous one.
    Closed {
        /// At a time.
        users: u32,
        /// Of one user.
        interval: Option<Duration>,
    },
}

/// Why the options make no run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// A number is out of its range.
    #[error("--{0} must be a number {1}")]
    Range(&'static str, &'static str),
    /// The guests' shares.
    #[error("--abandon and --decline together must not be more than 1")]
    Shares,
    /// Guests, minutes and rate determine each other.
    #[error("of --guests, --minutes and --rate at most two can be chosen")]
    Overdetermined,
    /// A storm lasts a minute.
    #[error("a storm comes within one minute: choose --guests only")]
    StormLength,
}

/// Places of an event, at most (the service's limit).
const PLACES_MAX: u64 = 1_000_000;
/// Points of a plot.
const SLICES: u32 = 120;
/// Longest run that is planned for, a week.
const MINUTES_MAX: f64 = 10_080.0;

impl Plan {
    /// The run that the options describe.
    ///
    /// # Errors
    /// When they contradict each other or describe none.
    pub fn of(options: &Options) -> Result<Self, PlanError> {
        let share = |value: f64| (0.0..=1.0).contains(&value);
        let at_least_0 = |value: f64| (0.0..1e6).contains(&value);
        let checks = [
            (share(options.abandon), "abandon", "from 0 to 1"),
            (share(options.decline), "decline", "from 0 to 1"),
            (share(options.desktops), "desktops", "from 0 to 1"),
            (options.rate.is_none_or(|rate| rate > 0.0 && rate < 1e6), "rate", "above 0"),
            (options.minutes.is_none_or(|minutes| minutes > 0.0 && minutes <= MINUTES_MAX), "minutes", "above 0, at most a week"),
            (options.guests.is_none_or(|guests| guests > 0), "guests", "above 0"),
            (options.users.is_none_or(|users| users > 0), "users", "above 0"),
            (options.max_guests.is_none_or(|places| (1..=PLACES_MAX).contains(&places)), "max-guests", "from 1 to 1000000"),
            (at_least_0(options.think_time), "think-time", "from 0"),
            (at_least_0(options.late), "late", "from 0"),
            (at_least_0(options.patience), "patience", "from 0"),
            (options.timeout > 0.0 && options.timeout < 1e6, "timeout", "above 0"),
        ];
        if let Some((_, name, range)) = checks.into_iter().find(|(good, ..)| !good) {
            return Err(PlanError::Range(name, range));
        }
        if options.abandon + options.decline > 1.0 {
            return Err(PlanError::Shares);
        }
        let (guests, seconds) = amount(options)?;
        let rate = guests as f64 / seconds;
        let model = match options.users {
            None => Model::Open { rate },
            Some(users) => {
                let paced = options.rate.is_some() || options.minutes.is_some();
                Model::Closed { users, interval: paced.then(|| Duration::from_secs_f64(f64::from(users) / rate)) }
            }
        };
        let slice = match options.scenario {
            Scenario::Soak => Duration::from_secs(60),
            _ => Duration::from_secs_f64((seconds / f64::from(SLICES)).ceil().max(1.0)),
        };
        Ok(Self {
            scenario: options.scenario,
            model,
            guests,
            length: Duration::from_secs_f64(seconds),
            abandon: options.abandon,
            decline: options.decline,
            max_guests: options.max_guests.unwrap_or(guests).min(PLACES_MAX),
            think: Duration::from_secs_f64(options.think_time),
            seed: options.seed,
            slice,
        })
    }

    /// Whether guests of an event come, or client backends.
    #[must_use]
    pub const fn has_event(&self) -> bool {
        !matches!(self.scenario, Scenario::Api)
    }
}

/// How many guests in how many seconds.
fn amount(options: &Options) -> Result<(u64, f64), PlanError> {
    let (guests, minutes, rate) = (options.guests, options.minutes, options.rate);
    if options.scenario == Scenario::Storm {
        return if minutes.is_some() || rate.is_some() { Err(PlanError::StormLength) } else { Ok((guests.unwrap_or(5_000), 60.0)) };
    }
    let (usual_minutes, usual_rate) = match options.scenario {
        Scenario::Soak => (30.0, 5.0),
        _ => (1.0, 50.0),
    };
    let within = |minutes: f64, rate: f64| ((minutes * 60.0 * rate).round().max(1.0) as u64, minutes * 60.0);
    match (guests, minutes, rate) {
        (Some(_), Some(_), Some(_)) => Err(PlanError::Overdetermined),
        (Some(guests), Some(minutes), None) => Ok((guests, minutes * 60.0)),
        (Some(guests), None, rate) => Ok((guests, guests as f64 / rate.unwrap_or(usual_rate))),
        (None, minutes, rate) => Ok(within(minutes.unwrap_or(usual_minutes), rate.unwrap_or(usual_rate))),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    fn plan(line: &str) -> Result<Plan, PlanError> {
        Plan::of(&Options::try_parse_from(line.split(' ')).unwrap())
    }

    #[test]
    fn guests_minutes_and_rate_determine_each_other() {
        let of = |line: &str| plan(line).map(|plan| (plan.guests, plan.length.as_secs(), plan.model));
        assert_eq!(of("x kiosk --guests 20000 --minutes 4"), Ok((20_000, 240, Model::Open { rate: 20_000.0 / 240.0 })));
        assert_eq!(of("x api --rate 100 --minutes 2"), Ok((12_000, 120, Model::Open { rate: 100.0 })));
        assert_eq!(of("x kiosk --guests 100 --rate 10"), Ok((100, 10, Model::Open { rate: 10.0 })));
        assert_eq!(of("x storm --guests 600"), Ok((600, 60, Model::Open { rate: 10.0 })));
        assert_eq!(of("x soak"), Ok((9_000, 1_800, Model::Open { rate: 5.0 })));
        let paced = Model::Closed { users: 20, interval: Some(Duration::from_secs(2)) };
        assert_eq!(of("x kiosk --users 20 --guests 100 --rate 10"), Ok((100, 10, paced)));
        assert_eq!(of("x kiosk --users 20 --guests 100").unwrap().2, Model::Closed { users: 20, interval: None });
    }

    #[test]
    fn contradictions_are_refused() {
        assert_eq!(plan("x kiosk --guests 1 --minutes 1 --rate 1").err(), Some(PlanError::Overdetermined));
        assert_eq!(plan("x storm --minutes 3").err(), Some(PlanError::StormLength));
        assert_eq!(plan("x kiosk --abandon 0.6 --decline 0.6").err(), Some(PlanError::Shares));
        assert_eq!(plan("x kiosk --rate NaN").err(), Some(PlanError::Range("rate", "above 0")));
        assert_eq!(plan("x kiosk --abandon 1.5").err(), Some(PlanError::Range("abandon", "from 0 to 1")));
        assert_eq!(plan("x kiosk --desktops NaN").err(), Some(PlanError::Range("desktops", "from 0 to 1")));
    }
}
