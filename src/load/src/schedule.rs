//! Arrivals and choices of guests: drawn from one seed, whatever the service answers.

use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

/// The intended moments of a Poisson process, as times since its beginning.
#[derive(Debug)]
pub(crate) struct Arrivals {
    dice: SmallRng,
    rate: f64,
    at: f64,
}

impl Arrivals {
    /// Creates a process with this many arrivals per second on average.
    pub(crate) fn new(rate: f64, seed: u64) -> Self {
        Self { dice: SmallRng::seed_from_u64(seed), rate, at: 0.0 }
    }
}

impl Iterator for Arrivals {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        // Inverse transform of the exponential distribution; 1 - u is never 0.
        self.at -= (1.0 - self.dice.random::<f64>()).ln() / self.rate;
        Some(Duration::from_secs_f64(self.at))
    }
}

/// A guest's course of action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Abandons,
    Declines,
    Completes,
}

/// One guest's own choices.
#[derive(Debug)]
pub(crate) struct Guest {
    /// Number of the guest, from 0.
    pub(crate) number: u64,
    /// Number of the first guest who is the same person; their own number if they come for the first time.
    pub(crate) person: u64,
    pub(crate) fate: Fate,
    dice: SmallRng,
}

impl Guest {
    /// Draws a guest who is a new person; the same seed and number give the same guest.
    pub(crate) fn draw(seed: u64, number: u64, abandon: f64, decline: f64) -> Self {
        let mut dice = SmallRng::seed_from_u64(seed.rotate_left(32) ^ number);
        let drawn = dice.random::<f64>();
        let fate = match drawn {
            _ if drawn < abandon => Fate::Abandons,
            _ if drawn < abandon + decline => Fate::Declines,
            _ => Fate::Completes,
        };
        Self { number, person: number, fate, dice }
    }

    /// Returns the guest as this person.
    pub(crate) const fn with_person(self, person: u64) -> Self {
        Self { person, ..self }
    }

    /// Draws a pause between 0.5 and 1.5 times the mean.
    pub(crate) fn think(&mut self, mean: Duration) -> Duration {
        mean.mul_f64(0.5 + self.dice.random::<f64>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_have_the_mean_and_the_spread_of_a_poisson_process() {
        let (rate, count) = (200.0, 100_000_usize);
        let moments: Vec<f64> = Arrivals::new(rate, 7).take(count).map(|moment| moment.as_secs_f64()).collect();
        let gaps: Vec<f64> = moments.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        // Standard errors are 0.3 % and 0.9 %; an even schedule would have no variance.
        assert!((mean * rate - 1.0).abs() < 0.02, "{mean}");
        assert!((variance.sqrt() * rate - 1.0).abs() < 0.03, "{variance}");
    }

    #[test]
    fn the_same_seed_makes_the_same_run_and_another_another() {
        let moments = |seed| Arrivals::new(10.0, seed).take(50).collect::<Vec<_>>();
        assert_eq!(moments(3), moments(3));
        assert_ne!(moments(3), moments(4));
        let fates = |seed| (0..200).map(|number| Guest::draw(seed, number, 0.3, 0.3).fate).collect::<Vec<_>>();
        assert_eq!(fates(3), fates(3));
        assert_ne!(fates(3), fates(4));
    }

    #[test]
    fn guests_abandon_and_decline_in_the_shares_asked_for() {
        let fates: Vec<Fate> = (0..50_000).map(|number| Guest::draw(11, number, 0.1, 0.05).fate).collect();
        let share = |fate| fates.iter().filter(|drawn| **drawn == fate).count() as f64 / fates.len() as f64;
        assert!((share(Fate::Abandons) - 0.1).abs() < 0.01);
        assert!((share(Fate::Declines) - 0.05).abs() < 0.007);
        assert!((0..100).all(|number| Guest::draw(1, number, 0.0, 0.0).fate == Fate::Completes));
    }
}
