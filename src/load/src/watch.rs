//! What is shown and sampled while the guests come: a line each second on stderr, and the service's
//! memory. Ctrl-C lets nobody in any more; who is inside finishes, and the run is judged as usual.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sakshi_judge::journal::{Posted, Reply};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::engine::Gate;
use crate::operator::Operator;
use crate::plan::Plan;
use crate::receiver::Receiver;
use crate::record::{Outcome, Recorder};
use crate::strain::{Watched, resident_bytes};
use crate::visit::Site;

/// What is watched.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Watch<'a> {
    pub plan: &'a Plan,
    pub site: &'a Arc<Site>,
    pub gate: &'a Arc<Gate>,
    pub recorder: &'a Arc<Recorder>,
    pub receiver: &'a Receiver,
}

impl Watch<'_> {
    /// Watches until the guests have gone: the memory samples, and how long it took.
    pub async fn during(
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
                    self.gate.closed.store(true, Ordering::Relaxed);
                }
                _ = turn.tick() => {
                    if began.elapsed() >= next {
                        next = began.elapsed() + self.plan.slice;
                        memory.extend(resident(operator, processes).await.map(|bytes| (began.elapsed().as_secs_f64(), bytes)));
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
        let (visits, opened, completed) =
            self.site.journal.with(|pages| (pages.visits, pages.entries.len(), pages.replied(Posted::Consent, Reply::Accepted).count()));
        let let_in = self.gate.let_in.load(Ordering::Relaxed);
        let bad = |outcome: &Outcome| !matches!(outcome, Outcome::Status(status) if *status < 400 || *status == 409);
        let errors: u64 = self.recorder.outcomes().iter().filter(|(outcome, _)| bad(outcome)).map(|(_, count)| count).sum();
        let webhooks = self.receiver.with(|seen| seen.by_txn.len());
        let line = format!(
            "{:>5.0} s  {let_in}/{} guests, {} inside, {opened} started, {completed} completed, {webhooks} webhooks, {errors} errors",
            elapsed.as_secs_f64(),
            self.plan.guests,
            let_in.saturating_sub(visits)
        );
        let mut err = std::io::stderr();
        // A terminal that has gone is no reason to stop.
        let _ = if err.is_terminal() { write!(err, "\r{line}\x1b[K") } else { writeln!(err, "{line}") };
    }
}

/// Of all processes together.
async fn resident(operator: &Operator, processes: &[Watched]) -> Option<u64> {
    match processes {
        [] => operator.resident_bytes().await,
        some => some.iter().map(|process| resident_bytes(process.pid)).sum(),
    }
}
