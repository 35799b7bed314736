//! Starts the guests: at intended moments whatever the service does (open model), or one after the other for each user
//! (closed model).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::people::person_of;
use crate::record::Due;
use crate::schedule::{Arrivals, Guest};
use crate::visit::{Progress, Site};
use crate::workload::{Model, Workload};

/// Rounds after which a user's mean counts as its cadence.
const ROUNDS: u32 = 3;
/// Interval at which the thread that starts guests checks for a stop.
const CHECK: Duration = Duration::from_millis(100);

/// Starts all guests and waits until the last one has finished.
pub(crate) async fn run(workload: &Workload, site: &Arc<Site>) {
    match workload.model {
        Model::Open { rate } => open(workload, rate, site).await,
        Model::Closed { users, interval } => closed(workload, users, interval, site).await,
    }
}

fn draw(workload: &Workload, number: u64) -> Guest {
    let person = person_of(workload.seed, number, workload.duplicates);
    Guest::draw(workload.seed, number, workload.abandon, workload.decline).with_person(person)
}

async fn open(workload: &Workload, rate: f64, site: &Arc<Site>) {
    let (call, mut called) = mpsc::unbounded_channel();
    let (arrivals, guests, origin) = (Arrivals::new(rate, workload.seed), workload.guests, site.origin.into_std());
    let watched = Arc::clone(site);
    // A thread of its own keeps the moments: the runtime's timers are accurate to a millisecond only.
    let pace = move || {
        for (number, at) in (0..guests).zip(arrivals) {
            let due = origin + at;
            loop {
                let left = due.saturating_duration_since(std::time::Instant::now());
                if left.is_zero() {
                    break;
                }
                thread::park_timeout(left.min(CHECK));
                if watched.progress.stopped.load(Ordering::Relaxed) {
                    return;
                }
            }
            if call.send((number, due)).is_err() {
                return;
            }
        }
    };
    let Ok(_pacing) = thread::Builder::new().name("pacer".to_owned()).spawn(pace) else {
        site.journal.problem("no thread to start the guests".to_owned());
        return;
    };
    let mut guests = JoinSet::new();
    while let Some((number, due)) = called.recv().await {
        let (due, guest) = (Instant::from_std(due), draw(workload, number));
        site.progress.started.fetch_add(1, Ordering::Relaxed);
        let site = Arc::clone(site);
        guests.spawn(async move {
            site.progress.lag.add(due.elapsed());
            Box::pin(site.visit(guest, Due::At(due))).await
        });
        // Finished guests need not be kept.
        while guests.try_join_next().is_some() {}
    }
    while guests.join_next().await.is_some() {}
}

async fn closed(workload: &Workload, users: u32, interval: Option<Duration>, site: &Arc<Site>) {
    let mut going = JoinSet::new();
    for user in 0..users {
        let (workload, site) = (workload.clone(), Arc::clone(site));
        going.spawn(async move {
            // Users start spread over one interval, not all at once.
            let first = site.origin + interval.unwrap_or_default().mul_f64(f64::from(user) / f64::from(users));
            sleep_until(first).await;
            let (mut rounds, mut spent) = (0_u32, Duration::ZERO);
            while let Some(number) = next(&workload, &site.progress) {
                let began = Instant::now();
                let cadence = interval.or_else(|| (rounds >= ROUNDS).then(|| spent / rounds));
                Box::pin(Arc::clone(&site).visit(draw(&workload, number), Due::Every(cadence))).await;
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

fn next(workload: &Workload, progress: &Progress) -> Option<u64> {
    if progress.stopped.load(Ordering::Relaxed) {
        return None;
    }
    let taken = progress
        .started
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |number| (number < workload.guests).then_some(number + 1));
    taken.ok()
}
