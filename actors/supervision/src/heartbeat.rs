//! Heartbeats, to detect an arbiter that hangs. A blocked arbiter cannot be noticed from inside, so each writes the
//! time of its last heartbeat where others read it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Number of heartbeats within the timeout of an arbiter.
const BEATS_PER_TIMEOUT: u32 = 3;

/// An arbiter's name, and the time of its last heartbeat in milliseconds since `began`.
type LastBeat = (String, Arc<AtomicU64>);

/// The last heartbeats of all arbiters.
#[derive(Clone, Debug)]
pub struct Heartbeats {
    /// Creation of this record.
    began: Instant,
    timeout: Duration,
    arbiters: Arc<Mutex<Vec<LastBeat>>>,
}

impl Heartbeats {
    /// Creates a record of heartbeats. An arbiter that is silent for longer than `timeout` counts as hung.
    #[must_use]
    pub fn new(timeout: Duration) -> Self {
        Self { began: Instant::now(), timeout, arbiters: Arc::default() }
    }

    /// Records heartbeats of the current arbiter until it ends. A restarted arbiter takes over its old name.
    pub fn beat_here(&self, name: &str) {
        let last = Arc::new(AtomicU64::new(self.elapsed_ms()));
        {
            let mut arbiters = self.arbiters.lock().unwrap_or_else(PoisonError::into_inner);
            arbiters.retain(|(known, _)| known != name);
            arbiters.push((name.to_owned(), Arc::clone(&last)));
        }
        let beats = self.clone();
        actix_rt::spawn(async move {
            loop {
                last.store(beats.elapsed_ms(), Ordering::Relaxed);
                tokio::time::sleep(beats.timeout / BEATS_PER_TIMEOUT).await;
            }
        });
    }

    /// Returns the name of an arbiter that has been silent for too long.
    #[must_use]
    pub fn hung_arbiter(&self) -> Option<String> {
        let now = self.elapsed_ms();
        let timeout = u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX);
        let arbiters = self.arbiters.lock().unwrap_or_else(PoisonError::into_inner);
        let silent = |last: &AtomicU64| now.saturating_sub(last.load(Ordering::Relaxed)) > timeout;
        arbiters.iter().find(|(_, last)| silent(last)).map(|(name, _)| name.clone())
    }

    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    async fn wait_until(goal: &str, holds: impl Fn() -> bool) {
        let end = Instant::now() + Duration::from_secs(10);
        while !holds() {
            assert!(Instant::now() < end, "timed out waiting until {goal}");
            tokio::task::yield_now().await;
        }
    }

    #[test]
    fn a_hung_arbiter_is_noticed_and_a_running_one_is_not() {
        actix_rt::System::new().block_on(async {
            let beats = Heartbeats::new(Duration::from_millis(600));
            beats.beat_here("running");
            let arbiter = actix_rt::Arbiter::new();
            let (release, stuck) = mpsc::channel::<()>();
            let hung_beats = beats.clone();
            arbiter.spawn_fn(move || {
                hung_beats.beat_here("stuck");
                // Ends with an error as soon as the sender is gone.
                let _ = stuck.recv();
            });
            wait_until("the stuck one is noticed", || beats.hung_arbiter().as_deref() == Some("stuck")).await;
            let noticed_ms = beats.elapsed_ms();
            wait_until("it hangs for longer", || beats.elapsed_ms() > noticed_ms + 5).await;
            // A pause of the machine may have delayed the beat of the running one.
            wait_until("it is noticed again", || beats.hung_arbiter().as_deref() == Some("stuck")).await;
            drop(release);
            wait_until("it runs again", || beats.hung_arbiter().is_none()).await;
            arbiter.stop();
        });
    }

    #[test]
    fn an_arbiter_replaces_an_earlier_one_with_its_name() {
        actix_rt::System::new().block_on(async {
            let beats = Heartbeats::new(Duration::from_millis(600));
            for name in ["worker-0", "worker-1", "worker-0"] {
                beats.beat_here(name);
            }
            let mut names: Vec<_> = beats.arbiters.lock().unwrap().iter().map(|(name, _)| name.clone()).collect();
            names.sort_unstable();
            assert_eq!(names, ["worker-0", "worker-1"]);
        });
    }
}
