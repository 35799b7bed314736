//! Processor time of untrusted work: what unauthenticated requests can make the service compute.
//!
//! Such work runs on threads of its own, few at a time, so that HTTP workers stay free. The owner that has used least lately goes
//! first, so work of an owner that uses much delays nobody else's.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use metrics::{counter, gauge};
use rustix::process::nice;
use rustix::time::{ClockId, clock_gettime};
use sakshi_domain::limits::{CPU_USAGE_HALF_LIFE, CPU_WAIT_MAX, CPU_WAITING_MAX};
use sakshi_service::error::ServiceError;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::owner::{Owner, OwnerPath};
use crate::error::ApiError;

/// By how much the priority of such work is below that of the HTTP workers, as `nice` counts.
const NICENESS: i32 = 10;
/// Charges after which owners with negligible use are forgotten.
const CHARGES_UNTIL_PRUNED: u32 = 1_024;
/// Seconds of negligible use.
const NEGLIGIBLE: f64 = 1e-6;

/// Why work was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CpuError {
    /// Too much other work comes first.
    #[error("there is no processor time at the moment")]
    Busy,
    /// The work panicked, or the process ends.
    #[error("the work was aborted")]
    Aborted,
}

/// The processor time of a node for untrusted work, shared by its workers and listeners.
#[derive(Clone, Debug)]
pub struct CpuBudget(Arc<Mutex<Queue>>);

#[derive(Debug)]
struct Queue {
    free: usize,
    waiting: Vec<Waiting>,
    next: u64,
    used: CpuUsage,
    charges: u32,
    total: Duration,
    refused: u64,
}

#[derive(Debug)]
struct Waiting {
    id: u64,
    owners: OwnerPath,
    slot: oneshot::Sender<Slot>,
}

impl CpuBudget {
    /// A budget of this many threads at a time.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        let used = CpuUsage::nothing(Instant::now());
        let queue = Queue { free: threads.max(1), waiting: Vec::new(), next: 0, used, charges: 0, total: Duration::ZERO, refused: 0 };
        Self(Arc::new(Mutex::new(queue)))
    }

    /// A budget of half the processors; the other half stays free for HTTP workers.
    #[must_use]
    pub fn for_this_machine() -> Self {
        Self::new(std::thread::available_parallelism().map_or(1, usize::from) / 2)
    }

    /// Runs the work on another thread when its owners are next. If the future is dropped before, the work does not run.
    ///
    /// # Errors
    /// [`CpuError`].
    pub async fn run<T: Send + 'static>(&self, owners: OwnerPath, work: impl FnOnce() -> T + Send + 'static) -> Result<T, CpuError> {
        let slot = self.slot(owners.clone()).await?;
        let done = spawn_blocking(move || {
            lower_priority();
            // Dropped after the work, or while it unwinds: then the time is charged and the next work starts.
            let _running = Running { slot, owners, since: thread_time() };
            work()
        });
        done.await.map_err(|_| CpuError::Aborted)
    }

    async fn slot(&self, owners: OwnerPath) -> Result<Slot, CpuError> {
        let (slot, given) = oneshot::channel();
        let (id, refused) = {
            let mut queue = self.lock();
            if queue.free > 0 {
                queue.free -= 1;
                return Ok(Slot(Some(self.clone())));
            }
            let id = queue.next;
            queue.next += 1;
            queue.waiting.push(Waiting { id, owners, slot });
            let too_many = queue.waiting.len() > CPU_WAITING_MAX;
            let refused = if too_many { queue.take_last() } else { None };
            queue.refused += u64::from(refused.is_some());
            (id, refused)
        };
        drop(refused);
        let _place = QueuePlace { budget: self, id };
        match timeout(CPU_WAIT_MAX, given).await {
            Ok(Ok(slot)) => Ok(slot),
            Ok(Err(_)) => Err(CpuError::Busy),
            Err(_) => {
                self.lock().refused += 1;
                Err(CpuError::Busy)
            }
        }
    }

    /// Brings the metrics up to date.
    pub fn publish_metrics(&self) {
        let queue = self.lock();
        let (waiting, total, refused, most) = (queue.waiting.len(), queue.total, queue.refused, queue.used.most(Instant::now()));
        drop(queue);
        gauge!("sakshi_untrusted_cpu_waiting").set(waiting as f64);
        gauge!("sakshi_untrusted_cpu_seconds_of_largest_owner").set(most);
        counter!("sakshi_untrusted_cpu_microseconds_total").absolute(u64::try_from(total.as_micros()).unwrap_or(u64::MAX));
        counter!("sakshi_untrusted_cpu_refused_total").absolute(refused);
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// Removes the work that is next.
    fn take_first(&mut self) -> Option<Waiting> {
        let ranks = self.ranks();
        let first = ranks.into_iter().min_by(|(a, _), (b, _)| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
        first.map(|(_, at)| self.waiting.remove(at))
    }

    /// Removes the work that would be last.
    fn take_last(&mut self) -> Option<Waiting> {
        let ranks = self.ranks();
        let last = ranks.into_iter().max_by(|(a, _), (b, _)| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
        last.map(|(_, at)| self.waiting.remove(at))
    }

    /// What the owners of each work have used, from the outermost inwards. Between equals the order of arrival decides.
    fn ranks(&self) -> Vec<(Vec<f64>, usize)> {
        let now = Instant::now();
        self.waiting.iter().enumerate().map(|(at, waiting)| (self.used.along(waiting.owners.path(), now), at)).collect()
    }

    fn charge(&mut self, owners: &OwnerPath, used: Duration) {
        let now = Instant::now();
        self.total += used;
        self.used.charge(owners.path(), used.as_secs_f64(), now);
        self.charges += 1;
        if self.charges >= CHARGES_UNTIL_PRUNED {
            self.charges = 0;
            self.used.prune(now);
        }
    }
}

/// Processor time of an owner and its inner owners, in seconds; it decays by half in each [`CPU_USAGE_HALF_LIFE`].
#[derive(Debug)]
struct CpuUsage {
    seconds: f64,
    at: Instant,
    inner: HashMap<Owner, CpuUsage>,
}

impl CpuUsage {
    fn nothing(at: Instant) -> Self {
        Self { seconds: 0.0, at, inner: HashMap::new() }
    }

    fn now(&self, now: Instant) -> f64 {
        let halvings = now.saturating_duration_since(self.at).as_secs_f64() / CPU_USAGE_HALF_LIFE.as_secs_f64();
        self.seconds * (-halvings).exp2()
    }

    fn charge(&mut self, path: &[Owner], seconds: f64, now: Instant) {
        self.seconds = self.now(now) + seconds;
        self.at = now;
        if let Some((outer, rest)) = path.split_first() {
            self.inner.entry(outer.clone()).or_insert_with(|| Self::nothing(now)).charge(rest, seconds, now);
        }
    }

    /// The use of each owner on the path.
    fn along(&self, path: &[Owner], now: Instant) -> Vec<f64> {
        let mut at = Some(self);
        let of = |owner: &Owner| {
            at = at.and_then(|usage| usage.inner.get(owner));
            at.map_or(0.0, |usage| usage.now(now))
        };
        path.iter().map(of).collect()
    }

    fn most(&self, now: Instant) -> f64 {
        self.inner.values().map(|owner| owner.now(now)).fold(0.0, f64::max)
    }

    fn prune(&mut self, now: Instant) {
        self.inner.retain(|_, owner| owner.now(now) > NEGLIGIBLE);
        self.inner.values_mut().for_each(|owner| owner.prune(now));
    }
}

/// The right to run on a thread, passed on when it is dropped.
#[derive(Debug)]
struct Slot(Option<CpuBudget>);

impl Drop for Slot {
    fn drop(&mut self) {
        let Some(budget) = self.0.take() else { return };
        loop {
            let next = {
                let mut queue = budget.lock();
                let next = queue.take_first();
                queue.free += usize::from(next.is_none());
                next
            };
            let Some(next) = next else { return };
            match next.slot.send(Self(Some(budget.clone()))) {
                Ok(()) => return,
                // Its future was dropped; the slot goes to the next work.
                Err(mut unused) => drop(unused.0.take()),
            }
        }
    }
}

/// Work under way.
struct Running {
    slot: Slot,
    owners: OwnerPath,
    since: Duration,
}

impl Drop for Running {
    fn drop(&mut self) {
        let used = thread_time().saturating_sub(self.since);
        if let Some(budget) = &self.slot.0 {
            budget.lock().charge(&self.owners, used);
        }
    }
}

/// A place in the queue, given up when the waiting future is dropped.
struct QueuePlace<'a> {
    budget: &'a CpuBudget,
    id: u64,
}

impl Drop for QueuePlace<'_> {
    fn drop(&mut self) {
        self.budget.lock().waiting.retain(|waiting| waiting.id != self.id);
    }
}

/// Lowers the priority of this thread for good: the system does not let it be raised again.
fn lower_priority() {
    thread_local! {
        static IS_LOWERED: Cell<bool> = const { Cell::new(false) };
    }
    // On other systems a priority is that of the whole process.
    if cfg!(target_os = "linux") && !IS_LOWERED.replace(true) {
        // If the system refuses, the work runs at the usual priority.
        let _ = nice(NICENESS);
    }
}

/// Processor time that this thread has used.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}

impl From<CpuError> for ApiError {
    fn from(error: CpuError) -> Self {
        match error {
            CpuError::Busy => ServiceError::Overloaded.into(),
            CpuError::Aborted => Self::internal(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::sync::mpsc;

    use futures_util::future::join_all;
    use tokio::task::yield_now;

    use super::*;

    fn owners(last: u8) -> OwnerPath {
        OwnerPath::new([Owner::Address(IpAddr::from([203, 0, 113, last]))])
    }

    /// Keeps the only thread until the sender is dropped.
    async fn occupy(budget: &CpuBudget, by: u8) -> (mpsc::Sender<()>, tokio::task::JoinHandle<Result<(), CpuError>>) {
        let (end, ended) = mpsc::channel::<()>();
        let (begun, has_begun) = oneshot::channel();
        let budget = budget.clone();
        let work = async move {
            budget
                .run(owners(by), move || {
                    _ = begun.send(());
                    _ = ended.recv();
                })
                .await
        };
        let work = tokio::spawn(work);
        has_begun.await.unwrap();
        (end, work)
    }

    async fn until_waiting(budget: &CpuBudget, waiting: usize) {
        while budget.lock().waiting.len() != waiting {
            yield_now().await;
        }
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn untrusted_work_has_a_lower_priority_than_its_caller() {
        let own = || rustix::process::getpriority_process(None).unwrap();
        let of_work = CpuBudget::new(1).run(owners(1), own).await.unwrap();
        assert_eq!(of_work, (own() + NICENESS).min(19));
    }

    #[tokio::test]
    async fn who_has_used_least_goes_first_however_many_wait_of_another() {
        let budget = CpuBudget::new(1);
        budget.lock().charge(&owners(1), Duration::from_secs(1));
        let (end, occupied) = occupy(&budget, 1).await;
        let order = Arc::new(Mutex::new(Vec::new()));
        let ask = |by: u8| {
            let (budget, order) = (budget.clone(), Arc::clone(&order));
            tokio::spawn(async move { budget.run(owners(by), move || order.lock().unwrap().push(by)).await })
        };
        let mut asked: Vec<_> = (0..5).map(|_| ask(1)).collect();
        until_waiting(&budget, 5).await;
        asked.push(ask(2));
        until_waiting(&budget, 6).await;
        drop(end);
        occupied.await.unwrap().unwrap();
        assert!(join_all(asked).await.into_iter().all(|done| done.unwrap().is_ok()));
        assert_eq!(*order.lock().unwrap(), [2, 1, 1, 1, 1, 1]);
        assert!(budget.lock().used.along(owners(1).path(), Instant::now())[0] > 0.5);
    }

    #[tokio::test]
    async fn a_dropped_future_leaves_the_queue_and_a_panic_frees_its_thread() {
        let budget = CpuBudget::new(1);
        let (end, occupied) = occupy(&budget, 1).await;
        let gone = tokio::spawn({
            let budget = budget.clone();
            async move { budget.run(owners(2), || ()).await }
        });
        until_waiting(&budget, 1).await;
        gone.abort();
        assert!(gone.await.is_err());
        assert_eq!(budget.lock().waiting.len(), 0);
        drop(end);
        occupied.await.unwrap().unwrap();
        assert_eq!(budget.run(owners(3), || panic!("broken")).await, Err::<(), _>(CpuError::Aborted));
        assert_eq!(budget.run(owners(3), || 7).await, Ok(7));
        assert_eq!(budget.lock().free, 1);
    }

    #[tokio::test]
    async fn beyond_the_bound_work_of_whoever_has_used_most_is_refused() {
        let budget = CpuBudget::new(1);
        budget.lock().charge(&owners(1), Duration::from_secs(1));
        let (end, occupied) = occupy(&budget, 1).await;
        let ask = |by: u8| {
            let budget = budget.clone();
            tokio::spawn(async move { budget.run(owners(by), || ()).await })
        };
        let greedy: Vec<_> = (0..CPU_WAITING_MAX).map(|_| ask(1)).collect();
        until_waiting(&budget, CPU_WAITING_MAX).await;
        let honest = ask(2);
        while budget.lock().refused == 0 {
            yield_now().await;
        }
        drop(end);
        occupied.await.unwrap().unwrap();
        assert_eq!(honest.await.unwrap(), Ok(()));
        let refused = join_all(greedy).await.into_iter().filter(|done| matches!(done, Ok(Err(CpuError::Busy)))).count();
        assert_eq!(refused, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_ever() {
        let budget = CpuBudget::new(1);
        // Not by work on a thread, for which the paused clock would wait.
        let slot = budget.slot(owners(1)).await.unwrap();
        assert_eq!(budget.run(owners(2), || ()).await, Err(CpuError::Busy));
        drop(slot);
        let queue = budget.lock();
        assert_eq!((queue.waiting.len(), queue.free), (0, 1));
    }

    #[test]
    fn use_decays_by_half_lives_and_owners_with_negligible_use_are_forgotten() {
        let begun = Instant::now();
        let mut usage = CpuUsage::nothing(begun);
        usage.charge(owners(1).path(), 8.0, begun);
        let later = begun + 3 * CPU_USAGE_HALF_LIFE;
        assert!((usage.along(owners(1).path(), later)[0] - 1.0).abs() < 1e-9);
        assert!((usage.most(later) - 1.0).abs() < 1e-9);
        usage.prune(later);
        assert_eq!(usage.inner.len(), 1);
        usage.prune(begun + 40 * CPU_USAGE_HALF_LIFE);
        assert!(usage.inner.is_empty());
    }
}
