//! Display and samples during a run: a line each second on stderr, and the service's memory. After Ctrl-C no further
//! guest starts; those present finish, and the run is judged as usual.

use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::Ordering;
use std::time::Duration;

use sakshi_client::judge::journal::{Posted, Records, Reply};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::operator::Operator;
use crate::process::{Watched, resident_bytes};
use crate::receiver::Receiver;
use crate::record::Outcome;
use crate::visit::Site;
use crate::workload::Workload;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch<'a> {
    pub(crate) workload: &'a Workload,
    pub(crate) site: &'a Site,
    pub(crate) receiver: &'a Receiver,
}

impl Watch<'_> {
    /// Watches until the guests have finished. Returns the memory samples and the duration.
    pub(crate) async fn during(
        &self,
        guests: impl Future<Output = ()>,
        operator: &Operator,
        processes: &[Watched],
    ) -> (Vec<(f64, u64)>, Duration) {
        let mut guests = std::pin::pin!(guests);
        let (mut turn, mut memory) = (interval(Duration::from_secs(1)), Vec::new());
        turn.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let began = Instant::now();
        // Sampled as often as the report has points.
        let (mut next, mut stopping) = (Duration::ZERO, false);
        loop {
            tokio::select! {
                () = &mut guests => break,
                asked = tokio::signal::ctrl_c(), if !stopping => {
                    stopping = asked.is_ok();
                    self.site.progress.stopped.store(true, Ordering::Relaxed);
                }
                _ = turn.tick() => {
                    if began.elapsed() >= next {
                        next = began.elapsed() + self.workload.slice;
                        memory.extend(resident(operator, processes).await.map(|bytes| (began.elapsed().as_secs_f64(),
                            bytes)));
                    }
                    self.show(began.elapsed());
                }
            }
        }
        let took = began.elapsed();
        memory.extend(resident(operator, processes).await.map(|bytes| (took.as_secs_f64(), bytes)));
        self.show(took);
        if std::io::stderr().is_terminal() {
            let _ = writeln!(std::io::stderr());
        }
        (memory, took)
    }

    fn show(&self, elapsed: Duration) {
        let count = |records: &Records| {
            (records.visits, records.entries.len(), records.replied(Posted::Consent, Reply::Accepted).count())
        };
        let ((visits, opened, completed), scans) =
            self.site.journal.with(|records| (count(records), records.scans.len()));
        let started = self.site.progress.started.load(Ordering::Relaxed);
        let bad = |outcome: &Outcome| !matches!(outcome, Outcome::Status(status) if *status < 400 || *status == 409);
        let errors: u64 = self
            .site
            .transport
            .recorder
            .outcomes()
            .iter()
            .filter(|(outcome, _)| bad(outcome))
            .map(|(_, count)| count)
            .sum();
        let webhooks = self.receiver.with(|seen| seen.by_txn.len());
        let line = format!(
            "{:>5.0} s  {started}/{} guests, {} present, {opened} transactions, {completed} completed, {scans} \
                scanned, {webhooks} webhooks, {errors} errors",
            elapsed.as_secs_f64(),
            self.workload.guests,
            started.saturating_sub(visits)
        );
        let mut err = std::io::stderr();
        // A terminal that has gone is no reason to stop.
        let _ = if err.is_terminal() { write!(err, "\r{line}\x1b[K") } else { writeln!(err, "{line}") };
    }
}

/// Returns the resident bytes of all processes together; without processes, those that the service reports.
async fn resident(operator: &Operator, processes: &[Watched]) -> Option<u64> {
    match processes {
        [] => operator.resident_bytes().await,
        some => some.iter().map(|process| resident_bytes(process.pid)).sum(),
    }
}
