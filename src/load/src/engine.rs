//! Starts the guests: at intended times, independent of the service (open model), or one after the other for each user
//! (closed model).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::people::person_number;
use crate::record::Due;
use crate::schedule::{Arrivals, Guest};
use crate::visit::{Progress, Site};
use crate::workload::{Model, Workload};

/// Number of rounds after which the mean duration of a user's rounds is used as its cadence.
const ROUNDS_MIN: u32 = 3;
/// Interval at which the thread that starts guests checks for a stop.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Starts all guests and waits until the last one has finished.
pub(crate) async fn run_guests(workload: &Workload, site: &Arc<Site>) {
    match workload.model {
        Model::Open { rate } => run_open(workload, rate, site).await,
        Model::Closed { users, interval } => run_closed(workload, users, interval, site).await,
    }
}

/// Draws the random choices of a guest.
fn draw_guest(workload: &Workload, number: u64) -> Guest {
    let person = person_number(workload.seed, number, workload.duplicates);
    Guest::draw(workload.seed, number, workload.abandon, workload.decline).with_person(person)
}

/// Starts guests at random intended times, whether or not earlier guests have finished.
async fn run_open(workload: &Workload, rate: f64, site: &Arc<Site>) {
    let (sender, mut arrivals) = mpsc::unbounded_channel();
    let (schedule, guests, run_start) =
        (Arrivals::new(rate, workload.seed), workload.guests, site.run_start.into_std());
    let pacer_site = Arc::clone(site);
    // A separate thread waits for the arrivals: timers of the runtime are accurate to a millisecond only.
    let pace = move || {
        for (number, at) in (0..guests).zip(schedule) {
            let due = run_start + at;
            loop {
                let remaining = due.saturating_duration_since(std::time::Instant::now());
                if remaining.is_zero() {
                    break;
                }
                thread::park_timeout(remaining.min(CHECK_INTERVAL));
                if pacer_site.progress.stopped.load(Ordering::Relaxed) {
                    return;
                }
            }
            if sender.send((number, due)).is_err() {
                return;
            }
        }
    };
    let Ok(_pacing) = thread::Builder::new().name("pacer".to_owned()).spawn(pace) else {
        site.journal.problem("no thread to start the guests".to_owned());
        return;
    };
    let mut guests = JoinSet::new();
    while let Some((number, due)) = arrivals.recv().await {
        let (due, guest) = (Instant::from_std(due), draw_guest(workload, number));
        site.progress.started.fetch_add(1, Ordering::Relaxed);
        let site = Arc::clone(site);
        guests.spawn(async move {
            site.progress.lag.add(due.elapsed());
            Box::pin(site.visit(guest, Due::At(due))).await
        });
        // Removes finished guests.
        while guests.try_join_next().is_some() {}
    }
    while guests.join_next().await.is_some() {}
}

/// Starts the next guest of each user when the user's previous guest has finished.
async fn run_closed(workload: &Workload, users: u32, interval: Option<Duration>, site: &Arc<Site>) {
    let mut tasks = JoinSet::new();
    for user in 0..users {
        let (workload, site) = (workload.clone(), Arc::clone(site));
        tasks.spawn(async move {
            // Users start spread over one interval, not all at once.
            let first = site.run_start + interval.unwrap_or_default().mul_f64(f64::from(user) / f64::from(users));
            sleep_until(first).await;
            let (mut rounds, mut duration_of_rounds) = (0_u32, Duration::ZERO);
            while let Some(number) = next_guest(&workload, &site.progress) {
                let started_at = Instant::now();
                let cadence = interval.or_else(|| (rounds >= ROUNDS_MIN).then(|| duration_of_rounds / rounds));
                Box::pin(Arc::clone(&site).visit(draw_guest(&workload, number), Due::Every(cadence))).await;
                rounds += 1;
                duration_of_rounds += started_at.elapsed();
                if let Some(interval) = interval {
                    sleep_until(started_at + interval).await;
                }
            }
        });
    }
    while tasks.join_next().await.is_some() {}
}

/// Returns the number of the next guest; `None` after the last guest, or if the run was stopped.
fn next_guest(workload: &Workload, progress: &Progress) -> Option<u64> {
    if progress.stopped.load(Ordering::Relaxed) {
        return None;
    }
    let previous = progress
        .started
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |number| (number < workload.guests).then_some(number + 1));
    previous.ok()
}
