//! Arrivals and choices of guests. They are drawn from one seed, independent of the service's answers.

use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

/// The arrival times of a Poisson process, since its beginning.
#[derive(Debug)]
pub(crate) struct Arrivals {
    rng: SmallRng,
    rate: f64,
    at: f64,
}

impl Arrivals {
    /// Creates a process with this many arrivals per second on average.
    pub(crate) fn new(rate: f64, seed: u64) -> Self {
        Self { rng: SmallRng::seed_from_u64(seed), rate, at: 0.0 }
    }
}

impl Iterator for Arrivals {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        // Inverse transform of the exponential distribution; 1 - u is never 0.
        self.at -= (1.0 - self.rng.random::<f64>()).ln() / self.rate;
        Some(Duration::from_secs_f64(self.at))
    }
}

/// The action of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    Abandon,
    Decline,
    Complete,
}

/// A guest with its random choices.
#[derive(Debug)]
pub(crate) struct Guest {
    /// Number of the guest, from 0.
    pub(crate) number: u64,
    /// Number of the first guest who is the same person. For a new person, the number of this guest.
    pub(crate) person: u64,
    pub(crate) choice: Choice,
    rng: SmallRng,
}

impl Guest {
    /// Draws a guest who is a new person. The same seed and number give the same guest.
    pub(crate) fn draw(seed: u64, number: u64, abandon: f64, decline: f64) -> Self {
        let mut rng = SmallRng::seed_from_u64(seed.rotate_left(32) ^ number);
        let drawn = rng.random::<f64>();
        let choice = match drawn {
            _ if drawn < abandon => Choice::Abandon,
            _ if drawn < abandon + decline => Choice::Decline,
            _ => Choice::Complete,
        };
        Self { number, person: number, choice, rng }
    }

    /// Sets the person of the guest.
    pub(crate) const fn with_person(self, person: u64) -> Self {
        Self { person, ..self }
    }

    /// Draws a pause between 0.5 and 1.5 times the mean.
    pub(crate) fn draw_pause(&mut self, mean: Duration) -> Duration {
        mean.mul_f64(0.5 + self.rng.random::<f64>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_have_the_mean_and_spread_of_a_poisson_process() {
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
    fn the_same_seed_gives_the_same_run_and_another_seed_another_run() {
        let moments = |seed| Arrivals::new(10.0, seed).take(50).collect::<Vec<_>>();
        assert_eq!(moments(3), moments(3));
        assert_ne!(moments(3), moments(4));
        let choices = |seed| (0..200).map(|number| Guest::draw(seed, number, 0.3, 0.3).choice).collect::<Vec<_>>();
        assert_eq!(choices(3), choices(3));
        assert_ne!(choices(3), choices(4));
    }

    #[test]
    fn guests_abandon_and_decline_in_the_requested_shares() {
        let choices: Vec<Choice> = (0..50_000).map(|number| Guest::draw(11, number, 0.1, 0.05).choice).collect();
        let share = |choice| choices.iter().filter(|drawn| **drawn == choice).count() as f64 / choices.len() as f64;
        assert!((share(Choice::Abandon) - 0.1).abs() < 0.01);
        assert!((share(Choice::Decline) - 0.05).abs() < 0.007);
        assert!((0..100).all(|number| Guest::draw(1, number, 0.0, 0.0).choice == Choice::Complete));
    }
}
