//! Lets the guests in: at intended moments whatever the service does (open model), or one after the
//! other for each of so many users (closed model).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::plan::{Model, Plan};
use crate::record::Due;
use crate::schedule::{Arrivals, Guest};
use crate::strain::Lag;
use crate::visit::Site;

/// Rounds after which a user's mean is a cadence.
const ROUNDS: u32 = 3;
/// How often the thread that lets guests in looks whether it shall stop.
const LOOK: Duration = Duration::from_millis(100);

/// What a run and whoever watches it share.
#[derive(Debug)]
pub struct Gate {
    /// Guests who were let in.
    pub let_in: AtomicU64,
    /// Lets nobody in any more.
    pub closed: AtomicBool,
    /// How late guests were let in.
    pub lag: Lag,
}

/// Lets all guests in and waits until the last one has gone.
pub async fn run(plan: &Plan, site: &Arc<Site>, gate: &Arc<Gate>) {
    match plan.model {
        Model::Open { rate } => open(plan, rate, site, gate).await,
        Model::Closed { users, interval } => closed(plan, users, interval, site, gate).await,
    }
}

fn draw(plan: &Plan, number: u64) -> Guest {
    Guest::draw(plan.seed, number, plan.abandon, plan.decline)
}

async fn open(plan: &Plan, rate: f64, site: &Arc<Site>, gate: &Arc<Gate>) {
    let (call, mut called) = mpsc::unbounded_channel();
    let (arrivals, guests, origin) = (Arrivals::new(rate, plan.seed), plan.guests, site.origin.into_std());
    let watched = Arc::clone(gate);
    // A thread of its own keeps the moments: the runtime's timers are good to a millisecond only.
    let pace = move || {
        for (number, at) in (0..guests).zip(arrivals) {
            let due = origin + at;
            loop {
                let left = due.saturating_duration_since(std::time::Instant::now());
                if left.is_zero() {
                    break;
                }
                thread::park_timeout(left.min(LOOK));
                if watched.closed.load(Ordering::Relaxed) {
                    return;
                }
            }
            if call.send((number, due)).is_err() {
                return;
            }
        }
    };
    let Ok(_pacing) = thread::Builder::new().name("pacer".to_owned()).spawn(pace) else {
        site.journal.trouble("no thread to let the guests in".to_owned());
        return;
    };
    let mut guests = JoinSet::new();
    while let Some((number, due)) = called.recv().await {
        let (due, guest) = (Instant::from_std(due), draw(plan, number));
        gate.let_in.fetch_add(1, Ordering::Relaxed);
        let (site, gate) = (Arc::clone(site), Arc::clone(gate));
        guests.spawn(async move {
            gate.lag.record(due.elapsed());
            Box::pin(site.visit(guest, Due::At(due))).await
        });
        // Those who have gone need not be remembered.
        while guests.try_join_next().is_some() {}
    }
    while guests.join_next().await.is_some() {}
}

async fn closed(plan: &Plan, users: u32, interval: Option<Duration>, site: &Arc<Site>, gate: &Arc<Gate>) {
    let mut going = JoinSet::new();
    for user in 0..users {
        let (plan, site, gate) = (plan.clone(), Arc::clone(site), Arc::clone(gate));
        going.spawn(async move {
            // Users start spread over one interval, not all at once.
            let first = site.origin + interval.unwrap_or_default().mul_f64(f64::from(user) / f64::from(users));
            sleep_until(first).await;
            let (mut rounds, mut spent) = (0_u32, Duration::ZERO);
            while let Some(number) = next(&plan, &gate) {
                let began = Instant::now();
                let cadence = interval.or_else(|| (rounds >= ROUNDS).then(|| spent / rounds));
                Box::pin(Arc::clone(&site).visit(draw(&plan, number), Due::Every(cadence))).await;
                rounds += 1;
                spent += began.elapsed();
                if let Some(interval) = interval {
                    sleep_until(began + interval).await;
                }
            }
        });
    }
    while going.join_next().await.is_some() {}
}

fn next(plan: &Plan, gate: &Gate) -> Option<u64> {
    if gate.closed.load(Ordering::Relaxed) {
        return None;
    }
    let taken = gate.let_in.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |number| (number < plan.guests).then_some(number + 1));
    taken.ok()
}
