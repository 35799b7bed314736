//! Waiting for a condition, with a time limit.

use std::future::Future;
use std::sync::{Mutex, Once};
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Time limit of most waits: much longer than any local operation.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// Time between two checks of a condition.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Processor time of the work that measures the machine's load.
const WORK: Duration = Duration::from_millis(30);

/// Number of processes that handle a request, one after another.
const PROCESSES_PER_REQUEST: f64 = 3.0;

/// Time between two wake-ups of the thread that notices pauses; shorter than [`WORK`].
const WAKE_INTERVAL: Duration = Duration::from_millis(10);

/// The shortest delay of a wake-up that counts as a pause.
const PAUSE_MIN: Duration = Duration::from_millis(50);

/// The pauses of this process so far: the end and the length of each.
static PAUSES: Mutex<Vec<(Instant, Duration)>> = Mutex::new(Vec::new());

/// Notices the pauses of this process from now on, for [`assert_within`]. Nodes, Redis servers and waits call this.
pub fn watch_for_pauses() {
    static WATCHER: Once = Once::new();
    WATCHER.call_once(|| {
        thread::spawn(|| {
            loop {
                let began = Instant::now();
                thread::park_timeout(WAKE_INTERVAL);
                let pause = began.elapsed().saturating_sub(WAKE_INTERVAL);
                if pause >= PAUSE_MIN {
                    PAUSES.lock().unwrap().push((Instant::now(), pause));
                }
            }
        });
    });
}

/// Returns the total length of the pauses that ended after this time.
fn pauses_since(start: Instant) -> Duration {
    PAUSES.lock().unwrap().iter().filter(|(end, _)| *end >= start).map(|(_, pause)| *pause).sum()
}

/// Fails if an action that has just ended took longer than `bound`. The bound is extended by the load of the machine,
/// and by the pauses of this process during the action.
pub fn assert_within(elapsed: Duration, bound: Duration, action: &str) {
    if elapsed < bound {
        return;
    }
    let start = Instant::now().checked_sub(elapsed).expect("the action began in this process");
    // This takes long enough for the watcher to note a pause that has just ended.
    let factor = busy_factor();
    let pauses = pauses_since(start);
    assert!(
        elapsed < bound.mul_f64(factor) + pauses,
        "{action} took {elapsed:?}; the bound is {bound:?} times {factor:.1} on this machine, and {pauses:?} of pauses"
    );
}

/// Returns the factor by which bounds are extended on this machine now.
fn busy_factor() -> f64 {
    PROCESSES_PER_REQUEST.mul_add(slowness() - 1.0, 1.0)
}

/// Returns the elapsed time per second of processor time, at least 1.
fn slowness() -> f64 {
    let processor_time = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).expect("a time");
    let (started_at, time_before) = (Instant::now(), processor_time());
    while processor_time() - time_before < WORK {}
    started_at.elapsed().div_duration_f64(WORK).max(1.0)
}

/// Checks until there is a result; fails the test after `bound`, or later on a busy machine.
pub async fn eventually<T, Check>(event: &str, bound: Duration, mut check: impl FnMut() -> Check) -> T
where
    Check: Future<Output = Option<T>>,
{
    watch_for_pauses();
    let started = Instant::now();
    loop {
        if let Some(result) = check().await {
            return result;
        }
        let waited = started.elapsed();
        assert!(waited < bound || waited < bound.mul_f64(busy_factor()), "{event} did not happen within {bound:?}");
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
