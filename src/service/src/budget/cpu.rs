//! Processor time of untrusted work: the work of unauthenticated requests.
//!
//! Such work runs on separate threads, few at a time, so that HTTP workers stay free. Work of the owner with the least
//! recent use runs first, so that a heavy user delays nobody else.

use std::cell::Cell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use metrics::{counter, gauge};
use rustix::process::nice;
use rustix::time::{ClockId, clock_gettime};
use sakshi_domain::limits::{CPU_USAGE_HALF_LIFE, CPU_WAIT_MAX, CPU_WAITING_MAX};
use sakshi_trace::invariant::{Part, holds};
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::owner::{Owner, OwnerPath};
use crate::error::ServiceError;

/// Niceness of the threads: their priority is lower than that of the HTTP workers.
const NICENESS: i32 = 10;
/// Number of charges after which owners with negligible use are removed.
const CHARGES_UNTIL_PRUNED: u32 = 1_024;
/// Use up to which an owner is forgotten.
const NEGLIGIBLE: Duration = Duration::from_micros(1);

/// The processor time of a node for untrusted work, shared by its workers and listeners.
#[derive(Clone, Debug)]
pub struct CpuBudget {
    queue: Arc<Mutex<Queue>>,
    /// True if work runs on separate threads.
    has_threads: bool,
}

/// The waiting work, and the use of the threads by owner.
#[derive(Debug)]
struct Queue {
    threads: usize,
    /// Threads that run no work.
    free: usize,
    waiting: Vec<WaitingWork>,
    used: CpuUsage,
    charges_since_cleanup: u32,
    /// Processor time used since the start, for metrics.
    total_used: Duration,
    /// Number of refused requests for a thread, for metrics.
    refused: u64,
}

#[derive(Debug)]
struct WaitingWork {
    owners: OwnerPath,
    /// Closed when the waiting future was dropped.
    slot: oneshot::Sender<Slot>,
}

impl CpuBudget {
    /// Creates a budget of this many threads.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        let used = CpuUsage::zero(Instant::now());
        let threads = threads.max(1);
        let queue = Queue {
            threads,
            free: threads,
            waiting: Vec::new(),
            used,
            charges_since_cleanup: 0,
            total_used: Duration::ZERO,
            refused: 0,
        };
        Self { queue: Arc::new(Mutex::new(queue)), has_threads: true }
    }

    /// Creates a budget for simulations: work runs at once on the caller's thread, so that the result depends only on
    /// the order of the calls.
    #[must_use]
    pub fn without_threads() -> Self {
        Self { has_threads: false, ..Self::new(1) }
    }

    /// Creates a budget of half the processors; the other half stays free for HTTP workers.
    #[must_use]
    pub fn for_this_machine() -> Self {
        Self::new(std::thread::available_parallelism().map_or(1, usize::from) / 2)
    }

    /// Runs the work on another thread as soon as its owners are next. If the future is dropped before that, the work
    /// does not run.
    ///
    /// # Errors
    /// [`ServiceError::Overloaded`] when too much other work runs first; [`ServiceError::Internal`] when the work
    /// panics.
    pub async fn run<T: Send + 'static>(
        &self,
        owners: OwnerPath,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ServiceError> {
        let slot = self.wait_for_slot(owners.clone()).await?;
        let has_threads = self.has_threads;
        let run = move || {
            if has_threads {
                lower_priority();
            }
            // The drop, after the work or while it unwinds, charges the time and starts the next work.
            let _running = Running { slot, owners, time_before: thread_time() };
            work()
        };
        if has_threads {
            spawn_blocking(run).await.map_err(ServiceError::internal)
        } else {
            catch_unwind(AssertUnwindSafe(run)).map_err(|_| ServiceError::Internal("the work panicked".to_owned()))
        }
    }

    /// Waits for a thread. Refuses the work that would run last when too much waits.
    async fn wait_for_slot(&self, owners: OwnerPath) -> Result<Slot, ServiceError> {
        let receiver = {
            let mut queue = self.lock();
            if queue.free > 0 {
                queue.free -= 1;
                return Ok(Slot(self.clone()));
            }
            let (slot, receiver) = oneshot::channel();
            queue.waiting.push(WaitingWork { owners, slot });
            if queue.waiting.len() > CPU_WAITING_MAX {
                drop(queue.take_last());
            }
            receiver
        };
        if let Ok(Ok(slot)) = timeout(CPU_WAIT_MAX, receiver).await {
            return Ok(slot);
        }
        self.lock().refused += 1;
        Err(ServiceError::Overloaded)
    }

    /// Updates the metrics.
    pub fn publish_metrics(&self) {
        let queue = self.lock();
        let (waiting, total, refused, largest) =
            (queue.waiting.len(), queue.total_used, queue.refused, queue.used.largest(Instant::now()));
        drop(queue);
        gauge!("sakshi_untrusted_cpu_waiting").set(waiting as f64);
        gauge!("sakshi_untrusted_cpu_seconds_of_largest_owner").set(largest.as_secs_f64());
        counter!("sakshi_untrusted_cpu_seconds_total").absolute(u64::try_from(total.as_micros()).unwrap_or(u64::MAX));
        counter!("sakshi_untrusted_cpu_refused_total").absolute(refused);
    }

    /// Locks the queue and removes work whose future was dropped.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.waiting.retain(|waiting| !waiting.slot.is_closed());
        queue
    }
}

impl Queue {
    /// Removes the work that runs next.
    fn take_first(&mut self) -> Option<WaitingWork> {
        let (_, first) = self.ranks().min()?;
        Some(self.waiting.remove(first))
    }

    /// Removes the work that would run last.
    fn take_last(&mut self) -> Option<WaitingWork> {
        let (_, last) = self.ranks().max()?;
        Some(self.waiting.remove(last))
    }

    /// Returns the rank of each waiting work: the use of its owners, from the outermost inwards, then the order of
    /// arrival.
    fn ranks(&self) -> impl Iterator<Item = (Vec<Duration>, usize)> {
        let now = Instant::now();
        self.waiting
            .iter()
            .enumerate()
            .map(move |(index, waiting)| (self.used.per_owner(waiting.owners.path(), now), index))
    }

    /// Charges the time to its owners. Removes owners with negligible use from time to time.
    fn charge(&mut self, owners: &OwnerPath, used: Duration) {
        let now = Instant::now();
        self.total_used += used;
        self.used.charge(owners.path(), used, now);
        self.charges_since_cleanup += 1;
        if self.charges_since_cleanup >= CHARGES_UNTIL_PRUNED {
            self.charges_since_cleanup = 0;
            self.used.prune(now);
        }
    }
}

/// Processor time of an owner and its inner owners; it decays by half in each [`CPU_USAGE_HALF_LIFE`].
#[derive(Debug)]
struct CpuUsage {
    /// Use at the time of the last charge.
    used: Duration,
    charged_at: Instant,
    inner: HashMap<Owner, CpuUsage>,
}

impl CpuUsage {
    fn zero(now: Instant) -> Self {
        Self { used: Duration::ZERO, charged_at: now, inner: HashMap::new() }
    }

    /// Returns the use that is left at `now`.
    fn decayed(&self, now: Instant) -> Duration {
        let halvings = now.saturating_duration_since(self.charged_at).as_secs_f64() / CPU_USAGE_HALF_LIFE.as_secs_f64();
        self.used.mul_f64((-halvings).exp2())
    }

    /// Charges the time to each owner on the path, and to the root.
    fn charge(&mut self, path: &[Owner], used: Duration, now: Instant) {
        self.used = self.decayed(now) + used;
        self.charged_at = now;
        if let Some((outer, inner_path)) = path.split_first() {
            self.inner.entry(outer.clone()).or_insert_with(|| Self::zero(now)).charge(inner_path, used, now);
        }
    }

    /// Returns the use of each owner on the path.
    fn per_owner(&self, path: &[Owner], now: Instant) -> Vec<Duration> {
        let mut level = Some(self);
        let use_of = |owner: &Owner| {
            level = level.and_then(|usage| usage.inner.get(owner));
            level.map_or(Duration::ZERO, |usage| usage.decayed(now))
        };
        path.iter().map(use_of).collect()
    }

    /// Returns the use of the outermost owner that has used most.
    fn largest(&self, now: Instant) -> Duration {
        self.inner.values().map(|owner| owner.decayed(now)).max().unwrap_or_default()
    }

    /// Removes owners with negligible use.
    fn prune(&mut self, now: Instant) {
        self.inner.retain(|_, owner| owner.decayed(now) > NEGLIGIBLE);
        self.inner.values_mut().for_each(|owner| owner.prune(now));
    }
}

/// The right to run on a thread, passed on when it is dropped.
#[derive(Debug)]
struct Slot(CpuBudget);

impl Drop for Slot {
    fn drop(&mut self) {
        let next = {
            let mut queue = self.0.lock();
            let next = queue.take_first();
            queue.free += usize::from(next.is_none());
            holds(Part::Bounds, "a thread for work of strangers is given back once", queue.free <= queue.threads);
            queue.free = queue.free.min(queue.threads);
            next
        };
        if let Some(next) = next {
            // If the waiting future has just been dropped, the slot is dropped here and passed on again.
            drop(next.slot.send(Self(self.0.clone())));
        }
    }
}

/// Work in progress; its drop charges the owners.
struct Running {
    slot: Slot,
    owners: OwnerPath,
    /// Processor time of the thread before the work.
    time_before: Duration,
}

impl Drop for Running {
    fn drop(&mut self) {
        let used = thread_time().saturating_sub(self.time_before);
        self.slot.0.lock().charge(&self.owners, used);
    }
}

/// Lowers the priority of this thread for good: the system does not allow raising it again.
fn lower_priority() {
    thread_local! {
        static IS_LOWERED: Cell<bool> = const { Cell::new(false) };
    }
    // On other systems the priority applies to the whole process.
    if cfg!(target_os = "linux") && !IS_LOWERED.replace(true) {
        // If the system refuses, the work runs at the usual priority.
        let _ = nice(NICENESS);
    }
}

/// Returns the processor time that this thread has used.
fn thread_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::sync::mpsc;

    use futures_util::FutureExt as _;
    use futures_util::future::join_all;
    use sakshi_trace::invariant::broken_by;
    use tokio::task::yield_now;

    use super::*;

    /// Returns the path of a sender whose address ends in this byte.
    fn owners(last: u8) -> OwnerPath {
        OwnerPath::new([Owner::Address(IpAddr::from([203, 0, 113, last]))])
    }

    /// Occupies the only thread until the sender is dropped.
    async fn occupy(
        budget: &CpuBudget,
        owner: u8,
    ) -> (mpsc::Sender<()>, tokio::task::JoinHandle<Result<(), ServiceError>>) {
        let (release, released) = mpsc::channel::<()>();
        let (started, start) = oneshot::channel();
        let budget = budget.clone();
        let work = async move {
            budget
                .run(owners(owner), move || {
                    _ = started.send(());
                    _ = released.recv();
                })
                .await
        };
        let work = tokio::spawn(work);
        start.await.unwrap();
        (release, work)
    }

    async fn wait_until_waiting(budget: &CpuBudget, waiting: usize) {
        while budget.lock().waiting.len() != waiting {
            yield_now().await;
        }
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn untrusted_work_has_a_lower_priority_than_its_caller() {
        let current_niceness = || rustix::process::getpriority_process(None).unwrap();
        let niceness = CpuBudget::new(1).run(owners(1), current_niceness).await.unwrap();
        assert_eq!(niceness, (current_niceness() + NICENESS).min(19));
    }

    #[tokio::test]
    async fn work_of_the_owner_with_the_least_use_runs_first() {
        let budget = CpuBudget::new(1);
        budget.lock().charge(&owners(1), Duration::from_secs(1));
        let (release, occupied) = occupy(&budget, 1).await;
        let order = Arc::new(Mutex::new(Vec::new()));
        let run_for = |owner: u8| {
            let (budget, order) = (budget.clone(), Arc::clone(&order));
            tokio::spawn(async move { budget.run(owners(owner), move || order.lock().unwrap().push(owner)).await })
        };
        let mut tasks: Vec<_> = (0..5).map(|_| run_for(1)).collect();
        wait_until_waiting(&budget, 5).await;
        tasks.push(run_for(2));
        wait_until_waiting(&budget, 6).await;
        drop(release);
        occupied.await.unwrap().unwrap();
        assert!(join_all(tasks).await.into_iter().all(|result| result.unwrap().is_ok()));
        assert_eq!(*order.lock().unwrap(), [2, 1, 1, 1, 1, 1]);
        assert!(budget.lock().used.per_owner(owners(1).path(), Instant::now())[0] > Duration::from_millis(500));
    }

    #[tokio::test]
    async fn a_dropped_future_leaves_the_queue_and_a_panic_frees_its_thread() {
        let budget = CpuBudget::new(1);
        let (release, occupied) = occupy(&budget, 1).await;
        let dropped = tokio::spawn({
            let budget = budget.clone();
            async move { budget.run(owners(2), || ()).await }
        });
        wait_until_waiting(&budget, 1).await;
        dropped.abort();
        assert!(dropped.await.is_err());
        assert_eq!(budget.lock().waiting.len(), 0);
        drop(release);
        occupied.await.unwrap().unwrap();
        assert!(matches!(budget.run(owners(3), || panic!("broken")).await, Err::<(), _>(ServiceError::Internal(_))));
        assert_eq!(budget.run(owners(3), || 7).await, Ok(7));
        assert_eq!(budget.lock().free, 1);
    }

    #[tokio::test]
    async fn beyond_the_bound_work_of_the_heaviest_owner_is_refused() {
        let budget = CpuBudget::new(1);
        budget.lock().charge(&owners(1), Duration::from_secs(1));
        let (release, occupied) = occupy(&budget, 1).await;
        let run_for = |owner: u8| {
            let budget = budget.clone();
            tokio::spawn(async move { budget.run(owners(owner), || ()).await })
        };
        let greedy: Vec<_> = (0..CPU_WAITING_MAX).map(|_| run_for(1)).collect();
        wait_until_waiting(&budget, CPU_WAITING_MAX).await;
        let honest = run_for(2);
        while budget.lock().refused == 0 {
            yield_now().await;
        }
        drop(release);
        occupied.await.unwrap().unwrap();
        assert_eq!(honest.await.unwrap(), Ok(()));
        let refused = join_all(greedy)
            .await
            .into_iter()
            .filter(|result| matches!(result, Ok(Err(ServiceError::Overloaded))))
            .count();
        assert_eq!(refused, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_for_a_thread_is_bounded() {
        let budget = CpuBudget::new(1);
        // The slot is taken without work on a thread, for which the paused clock would wait.
        let slot = budget.wait_for_slot(owners(1)).await.unwrap();
        assert_eq!(budget.run(owners(2), || ()).await, Err(ServiceError::Overloaded));
        drop(slot);
        let queue = budget.lock();
        assert_eq!((queue.waiting.len(), queue.free), (0, 1));
    }

    #[test]
    fn use_decays_by_half_lives_and_negligible_use_is_removed() {
        let start = Instant::now();
        let mut usage = CpuUsage::zero(start);
        usage.charge(owners(1).path(), Duration::from_secs(8), start);
        let later = start + 3 * CPU_USAGE_HALF_LIFE;
        assert_eq!(usage.per_owner(owners(1).path(), later), [Duration::from_secs(1)]);
        assert_eq!(usage.largest(later), Duration::from_secs(1));
        usage.prune(later);
        assert_eq!(usage.inner.len(), 1);
        usage.prune(start + 40 * CPU_USAGE_HALF_LIFE);
        assert!(usage.inner.is_empty());
        usage.charge(owners(1).path(), NEGLIGIBLE, later);
        usage.prune(later);
        assert!(usage.inner.is_empty());
    }

    #[test]
    fn owners_with_negligible_use_are_removed_after_many_charges() {
        let budget = CpuBudget::new(1);
        let known_owners = || budget.lock().used.inner.len();
        for charge in 1..CHARGES_UNTIL_PRUNED {
            budget.lock().charge(&owners(u8::try_from(charge % 200).unwrap()), Duration::ZERO);
        }
        assert!(known_owners() > 1);
        budget.lock().charge(&owners(255), Duration::from_secs(1));
        assert_eq!(known_owners(), 1);
        assert_eq!(budget.lock().total_used, Duration::from_secs(1), "the total remains");
        budget.lock().charge(&owners(1), Duration::ZERO);
        assert_eq!(known_owners(), 2, "the count starts again");
    }

    #[tokio::test]
    async fn the_time_of_work_is_charged_to_its_owner() {
        let budget = CpuBudget::new(1);
        let work = || {
            let start = thread_time();
            while thread_time() - start < Duration::from_millis(20) {}
        };
        budget.run(owners(1), work).await.unwrap();
        // The charge follows the result.
        while budget.lock().free == 0 {
            yield_now().await;
        }
        let queue = budget.lock();
        assert!(queue.total_used >= Duration::from_millis(20));
        assert!(queue.used.per_owner(owners(1).path(), Instant::now())[0] >= Duration::from_millis(10));
    }

    #[tokio::test]
    async fn without_threads_work_runs_at_once_and_a_panic_is_an_error() {
        let budget = CpuBudget::without_threads();
        let here = std::thread::current().id();
        let thread = budget.run(owners(1), || std::thread::current().id()).now_or_never();
        assert_eq!(thread, Some(Ok(here)));
        let broken = budget.run(owners(1), || panic!("broken")).now_or_never();
        assert!(matches!(broken, Some(Err::<(), _>(ServiceError::Internal(_)))));
        assert_eq!(budget.lock().free, 1);
    }

    #[test]
    fn a_double_release_of_a_thread_breaks_an_invariant() {
        let budget = CpuBudget::new(1);
        assert_eq!(broken_by(|| drop(Slot(budget.clone()))), ["a thread for work of strangers is given back once"]);
        assert_eq!(budget.lock().free, 1);
    }
}
