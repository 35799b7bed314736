//! Progress and memory samples during a run: each second a line on stderr. After Ctrl-C no further guest starts, the
//! present guests finish, and the run is judged as usual.

use std::cell::RefCell;
use std::convert::Infallible;
use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::Ordering;
use std::time::Duration;

use sakshi_client::judge::journal::{CallbackKind, Records, Reply};
use tokio::time::{Instant, MissedTickBehavior, interval, interval_at};

use crate::operator::Operator;
use crate::process::{NamedProcess, resident_bytes};
use crate::receiver::Receiver;
use crate::record::Outcome;
use crate::visit::Site;
use crate::workload::Workload;

/// Watches a run: prints its progress, samples the service's memory, and handles Ctrl-C.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch<'a> {
    pub(crate) workload: &'a Workload,
    pub(crate) site: &'a Site,
    pub(crate) receiver: &'a Receiver,
}

impl Watch<'_> {
    /// Watches until the guests have finished. Returns the duration, and the memory samples: seconds
    /// since the start, and bytes.
    pub(crate) async fn watch_until_finished(
        &self,
        guests: impl Future<Output = ()>,
        operator: &Operator,
        processes: &[NamedProcess],
    ) -> (Vec<(f64, u64)>, Duration) {
        let (started_at, memory) = (Instant::now(), RefCell::new(Vec::new()));
        let mut guests = std::pin::pin!(guests);
        let mut sampling = std::pin::pin!(self.sample_memory(started_at, operator, processes, &memory));
        // One listener for the whole run. With a new one in each turn, a signal between two turns would be lost.
        let mut ctrl_c = std::pin::pin!(tokio::signal::ctrl_c());
        let mut ticks = interval(Duration::from_secs(1));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut is_stopping = false;
        loop {
            tokio::select! {
                () = &mut guests => break,
                never = &mut sampling => match never {},
                _ = &mut ctrl_c, if !is_stopping => {
                    is_stopping = true;
                    self.site.progress.stopped.store(true, Ordering::Relaxed);
                }
                _ = ticks.tick() => self.print_progress(started_at.elapsed()),
            }
        }
        let duration = started_at.elapsed();
        let mut memory = memory.take();
        memory.extend(total_resident_bytes(operator, processes).await.map(|bytes| (duration.as_secs_f64(), bytes)));
        self.print_progress(duration);
        if std::io::stderr().is_terminal() {
            let _ = writeln!(std::io::stderr());
        }
        (memory, duration)
    }

    /// Appends a memory sample for each point of the report.
    async fn sample_memory(
        &self,
        started_at: Instant,
        operator: &Operator,
        processes: &[NamedProcess],
        samples: &RefCell<Vec<(f64, u64)>>,
    ) -> Infallible {
        let mut ticks = interval_at(started_at, self.workload.slice);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            ticks.tick().await;
            if let Some(bytes) = total_resident_bytes(operator, processes).await {
                samples.borrow_mut().push((started_at.elapsed().as_secs_f64(), bytes));
            }
        }
    }

    /// Prints the counts so far on one line of stderr.
    fn print_progress(&self, elapsed: Duration) {
        let count = |records: &Records| {
            (
                records.visits,
                records.entries.len(),
                records.txns_with_reply(CallbackKind::Consent, Reply::Accepted).count(),
            )
        };
        let ((visits, opened, completed), scans) =
            self.site.journal.with(|records| (count(records), records.scans.len()));
        let started = self.site.progress.started.load(Ordering::Relaxed);
        // A full event and a repeated callback get 409, which is no error.
        let is_error =
            |outcome: &Outcome| !matches!(outcome, Outcome::Status(status) if *status < 400 || *status == 409);
        let errors: u64 = self
            .site
            .transport
            .recorder
            .outcomes()
            .iter()
            .filter(|(outcome, _)| is_error(outcome))
            .map(|(_, count)| count)
            .sum();
        let webhooks = self.receiver.read_arrivals(|arrivals| arrivals.by_txn.len());
        let line = format!(
            "{:>5.0} s  {started}/{} guests, {} present, {opened} transactions, {completed} completed, {scans} \
                scanned, {webhooks} webhooks, {errors} errors",
            elapsed.as_secs_f64(),
            self.workload.guests,
            started.saturating_sub(visits)
        );
        let mut err = std::io::stderr();
        // A write error does not end the run.
        let _ = if err.is_terminal() { write!(err, "\r{line}\x1b[K") } else { writeln!(err, "{line}") };
    }
}

/// Returns the sum of the resident bytes of the processes. Without processes, returns the figure that the service
/// reports.
async fn total_resident_bytes(operator: &Operator, processes: &[NamedProcess]) -> Option<u64> {
    match processes {
        [] => operator.resident_bytes().await,
        processes => processes.iter().map(|process| resident_bytes(process.pid)).sum(),
    }
}
