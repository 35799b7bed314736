//! Processor time of untrusted work: what a stranger can make the service compute.
//!
//! Such work runs on threads of its own, few at a time, so that HTTP workers go on serving
//! everybody else. What waits is taken in the order of what its owners have used lately, least
//! first; work of an owner who uses much waits behind everybody else's and delays nobody.

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

use super::owner::{Owner, Owners};
use crate::error::ApiError;

/// How much later than the HTTP workers' the scheduler takes the turn of such work, as `nice` counts.
const NICENESS: i32 = 10;
/// Charges after which owners who have used nothing worth mentioning are forgotten.
const CHARGES_UNTIL_PRUNED: u32 = 1_024;
/// Seconds below which use is not worth mentioning.
const NEGLIGIBLE: f64 = 1e-6;

/// Why work was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CpuError {
    /// Too much waits that comes first: come again.
    #[error("there is no processor time at the moment")]
    Busy,
    /// The work panicked, or the process ends.
    #[error("the work was cut off")]
    CutOff,
}

/// The processor time of a node for untrusted work, shared by its workers and listeners.
#[derive(Clone, Debug)]
pub struct CpuBudget(Arc<Mutex<Queue>>);

#[derive(Debug)]
struct Queue {
    free: usize,
    waiting: Vec<Waiting>,
    next: u64,
    spent: Spent,
    charges: u32,
    total: Duration,
    refused: u64,
}

#[derive(Debug)]
struct Waiting {
    id: u64,
    owners: Owners,
    turn: oneshot::Sender<Slot>,
}

impl CpuBudget {
    /// A budget of as many threads at a time.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        let spent = Spent::nothing(Instant::now());
        let queue = Queue { free: threads.max(1), waiting: Vec::new(), next: 0, spent, charges: 0, total: Duration::ZERO, refused: 0 };
        Self(Arc::new(Mutex::new(queue)))
    }

    /// Half the processors: the other half serves whoever asks for little.
    #[must_use]
    pub fn of_this_machine() -> Self {
        Self::new(std::thread::available_parallelism().map_or(1, usize::from) / 2)
    }

    /// Does the work on another thread when it is its owners' turn. Work whose asker is gone before
    /// that is not begun.
    ///
    /// # Errors
    /// [`CpuError`].
    pub async fn run<T: Send + 'static>(&self, owners: Owners, work: impl FnOnce() -> T + Send + 'static) -> Result<T, CpuError> {
        let slot = self.turn(owners.clone()).await?;
        let done = spawn_blocking(move || {
            give_way();
            // Dropped after the work, or while it unwinds: then the time is charged and the next one goes on.
            let _running = Running { slot, owners, since: thread_time() };
            work()
        });
        done.await.map_err(|_| CpuError::CutOff)
    }

    async fn turn(&self, owners: Owners) -> Result<Slot, CpuError> {
        let (turn, given) = oneshot::channel();
        let (id, refused) = {
            let mut queue = self.lock();
            if queue.free > 0 {
                queue.free -= 1;
                return Ok(Slot(Some(self.clone())));
            }
            let id = queue.next;
            queue.next += 1;
            queue.waiting.push(Waiting { id, owners, turn });
            let too_many = queue.waiting.len() > CPU_WAITING_MAX;
            let refused = if too_many { queue.last() } else { None };
            queue.refused += u64::from(refused.is_some());
            (id, refused)
        };
        drop(refused);
        let _place = Place { budget: self, id };
        match timeout(CPU_WAIT_MAX, given).await {
            Ok(Ok(slot)) => Ok(slot),
            Ok(Err(_)) => Err(CpuError::Busy),
            Err(_) => {
                self.lock().refused += 1;
                Err(CpuError::Busy)
            }
        }
    }

    /// Brings the figures in metrics up to date.
    pub fn show_figures(&self) {
        let queue = self.lock();
        let (waiting, total, refused, most) = (queue.waiting.len(), queue.total, queue.refused, queue.spent.most(Instant::now()));
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
    /// Takes out whoever comes first.
    fn first(&mut self) -> Option<Waiting> {
        let ranks = self.ranks();
        let first = ranks.into_iter().min_by(|(a, _), (b, _)| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
        first.map(|(_, at)| self.waiting.remove(at))
    }

    /// Takes out whoever comes last.
    fn last(&mut self) -> Option<Waiting> {
        let ranks = self.ranks();
        let last = ranks.into_iter().max_by(|(a, _), (b, _)| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
        last.map(|(_, at)| self.waiting.remove(at))
    }

    /// What the owners of each have used, from the outermost inwards. Those who wait stand in the
    /// order of their arrival, which decides between equals.
    fn ranks(&self) -> Vec<(Vec<f64>, usize)> {
        let now = Instant::now();
        self.waiting.iter().enumerate().map(|(at, waiting)| (self.spent.along(waiting.owners.path(), now), at)).collect()
    }

    fn charge(&mut self, owners: &Owners, used: Duration) {
        let now = Instant::now();
        self.total += used;
        self.spent.charge(owners.path(), used.as_secs_f64(), now);
        self.charges += 1;
        if self.charges >= CHARGES_UNTIL_PRUNED {
            self.charges = 0;
            self.spent.prune(now);
        }
    }
}

/// Processor time that an owner and its inner owners have used, in seconds, of which half is
/// forgotten in each [`CPU_USAGE_HALF_LIFE`].
#[derive(Debug)]
struct Spent {
    seconds: f64,
    at: Instant,
    inner: HashMap<Owner, Spent>,
}

impl Spent {
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

    /// Of each owner on the path; nothing where nothing is known.
    fn along(&self, path: &[Owner], now: Instant) -> Vec<f64> {
        let mut at = Some(self);
        let of = |owner: &Owner| {
            at = at.and_then(|spent| spent.inner.get(owner));
            at.map_or(0.0, |spent| spent.now(now))
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

/// A thread's turn, passed on when it is dropped.
#[derive(Debug)]
struct Slot(Option<CpuBudget>);

impl Drop for Slot {
    fn drop(&mut self) {
        let Some(budget) = self.0.take() else { return };
        loop {
            let next = {
                let mut queue = budget.lock();
                let next = queue.first();
                queue.free += usize::from(next.is_none());
                next
            };
            let Some(next) = next else { return };
            match next.turn.send(Self(Some(budget.clone()))) {
                Ok(()) => return,
                // Nobody waits for it any more; it goes to the next one.
                Err(mut unused) => drop(unused.0.take()),
            }
        }
    }
}

/// Work under way.
struct Running {
    slot: Slot,
    owners: Owners,
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

/// A place in the line, given up when whoever waits goes away.
struct Place<'a> {
    budget: &'a CpuBudget,
    id: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.budget.lock().waiting.retain(|waiting| waiting.id != self.id);
    }
}

/// Lets every other thread of the process go first, for as long as this one lives: a priority that
/// was given up is not given back.
fn give_way() {
    thread_local! {
        static HAS_GIVEN_WAY: Cell<bool> = const { Cell::new(false) };
    }
    // Elsewhere a priority is that of the whole process.
    if cfg!(target_os = "linux") && !HAS_GIVEN_WAY.replace(true) {
        // Where the system refuses, the work is done at the common priority.
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
            CpuError::CutOff => Self::internal(error),
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

    fn owners(last: u8) -> Owners {
        Owners::new([Owner::Address(IpAddr::from([203, 0, 113, last]))])
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
    async fn such_work_has_a_lower_priority_than_whoever_asks_for_it() {
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
        assert!(budget.lock().spent.along(owners(1).path(), Instant::now())[0] > 0.5);
    }

    #[tokio::test]
    async fn an_asker_who_goes_leaves_no_place_and_a_panic_frees_its_thread() {
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
        assert_eq!(budget.run(owners(3), || panic!("broken")).await, Err::<(), _>(CpuError::CutOff));
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
        let slot = budget.turn(owners(1)).await.unwrap();
        assert_eq!(budget.run(owners(2), || ()).await, Err(CpuError::Busy));
        drop(slot);
        let queue = budget.lock();
        assert_eq!((queue.waiting.len(), queue.free), (0, 1));
    }

    #[test]
    fn what_was_used_is_forgotten_by_halves_and_owners_at_rest_altogether() {
        let begun = Instant::now();
        let mut spent = Spent::nothing(begun);
        spent.charge(owners(1).path(), 8.0, begun);
        let later = begun + 3 * CPU_USAGE_HALF_LIFE;
        assert!((spent.along(owners(1).path(), later)[0] - 1.0).abs() < 1e-9);
        assert!((spent.most(later) - 1.0).abs() < 1e-9);
        spent.prune(later);
        assert_eq!(spent.inner.len(), 1);
        spent.prune(begun + 40 * CPU_USAGE_HALF_LIFE);
        assert!(spent.inner.is_empty());
    }
}
