//! Detects by the times of credentials that this node's clock may be wrong. A single credential with a wrong time is
//! the fault of its issuer or of a stranger. Most credentials of a minute are not.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use metrics::counter;
use sakshi_authority::sdjwt::CredentialRefusal;
use tokio::time::Instant;

/// Time over which credentials are counted.
const WINDOW: Duration = Duration::from_secs(60);
/// Minimum refusals in a window; with fewer, a single sender may be to blame.
const REFUSALS_MIN: u32 = 5;

/// Counts of the last minute's credentials. Their signatures are valid, so strangers cannot invent them.
#[derive(Debug, Default)]
pub struct ClockSuspicion(Mutex<Option<Window>>);

/// The time of a credential, compared with this node's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timing {
    InTime,
    Future,
    Past,
}

/// Counts of credentials since a time.
#[derive(Clone, Copy, Debug)]
struct Window {
    began: Instant,
    /// Credentials that were accepted, or refused for their times.
    judged: u32,
    /// Refused as issued or valid in the future: this clock may be behind.
    future: u32,
    /// Refused as expired or bound at another time: this clock may be ahead.
    past: u32,
    /// True once the window was logged.
    is_reported: bool,
}

impl ClockSuspicion {
    /// Notes the result of verifying a credential.
    pub fn note(&self, refusal: Option<CredentialRefusal>) {
        let timing = match refusal {
            None => Timing::InTime,
            Some(CredentialRefusal::IssuedInFuture | CredentialRefusal::NotYetValid) => Timing::Future,
            Some(CredentialRefusal::Expired | CredentialRefusal::KeyBindingTime) => Timing::Past,
            // Other refusals say nothing about times.
            Some(_) => return,
        };
        if let Some(Window { judged, future, past, .. }) = self.count(timing) {
            counter!("sakshi_clock_suspected_total").increment(1);
            tracing::error!(
                credentials.judged = judged,
                credentials.from_the_future = future,
                credentials.from_the_past = past,
                "most credentials of the last minute are refused for their times: check the clock of this machine"
            );
        }
    }

    /// Counts a credential. Returns the window if most of its credentials are refused and it was not returned yet.
    fn count(&self, timing: Timing) -> Option<Window> {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let new_window = Window { began: Instant::now(), judged: 0, future: 0, past: 0, is_reported: false };
        let window = current.get_or_insert(new_window);
        if window.began.elapsed() >= WINDOW {
            *window = new_window;
        }
        window.judged += 1;
        window.future += u32::from(timing == Timing::Future);
        window.past += u32::from(timing == Timing::Past);
        let refused = window.future + window.past;
        let is_suspect = refused >= REFUSALS_MIN && 2 * refused > window.judged && !window.is_reported;
        window.is_reported |= is_suspect;
        is_suspect.then_some(*window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_clock_is_suspected_once_a_minute_when_most_credentials_are_out_of_time() {
        let suspicion = ClockSuspicion::default();
        assert!((1..REFUSALS_MIN).all(|_| suspicion.count(Timing::Future).is_none()), "too few");
        let window = suspicion.count(Timing::Past).unwrap();
        assert_eq!((window.judged, window.future, window.past), (REFUSALS_MIN, REFUSALS_MIN - 1, 1));
        assert!((0..10).all(|_| suspicion.count(Timing::Future).is_none()), "reported already");
        tokio::time::advance(WINDOW).await;
        assert!((1..REFUSALS_MIN).all(|_| suspicion.count(Timing::Future).is_none()));
        assert!(suspicion.count(Timing::Future).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn some_old_credentials_among_good_ones_raise_no_suspicion() {
        let suspicion = ClockSuspicion::default();
        assert!((0..100).all(|_| suspicion.count(Timing::InTime).is_none() && suspicion.count(Timing::Past).is_none()));
    }
}
