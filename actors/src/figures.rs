//! Daily figures of apps, counted in memory and added to the store every few seconds, so that no verification waits for
//! them.
//!
//! Counts since the last flush are lost if the process is killed. The figures inform people and decide nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix::{Actor, ActorFutureExt as _, AsyncContext as _, Context, Supervised, WrapFuture as _};
use sakshi_domain::clock::Clock;
use sakshi_domain::day_figures::{AnswerKind, Day, DayFigures};
use sakshi_domain::ids::AppId;
use sakshi_domain::time::Timestamp;
use sakshi_store::Store;
use uuid::Uuid;

/// Pause between two flushes.
const FLUSH_PAUSE: Duration = Duration::from_secs(2);

/// Figures that are not in the store yet.
#[derive(Debug)]
pub(crate) struct Tally {
    clock: Arc<dyn Clock>,
    unflushed: Mutex<BTreeMap<AppId, BTreeMap<Day, DayFigures>>>,
    /// Additions whose call failed, though the store may have made them. They are retried with the same `call_id`.
    failed: Mutex<Vec<Addition>>,
}

/// Figures of one app and day that are added in one call.
#[derive(Clone, Debug)]
struct Addition {
    app: AppId,
    day: Day,
    figures: DayFigures,
    call_id: [u8; 16],
}

impl Tally {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self { clock, unflushed: Mutex::default(), failed: Mutex::default() })
    }

    fn count(&self, app: &AppId, day: Day, change: impl FnOnce(&mut DayFigures)) {
        let mut unflushed = lock(&self.unflushed);
        let days = match unflushed.get_mut(app) {
            Some(days) => days,
            None => unflushed.entry(app.clone()).or_default(),
        };
        change(days.entry(day).or_default());
    }

    /// Counts a transaction that was opened.
    pub(crate) fn count_opened(&self, app: &AppId, opened_at: Timestamp) {
        self.count(app, Day::containing(opened_at), |figures| figures.opened += 1);
    }

    /// Counts the answer to a transaction, on the day on which it was opened.
    pub(crate) fn count_answer(&self, app: &AppId, kind: AnswerKind, opened_at: Timestamp, answered_at: Timestamp) {
        self.count(app, Day::containing(opened_at), |figures| figures.count_answer(kind, answered_at.since(opened_at)));
    }

    /// Counts a webhook attempt.
    pub(crate) fn count_attempt(&self, app: &AppId, is_delivered: bool) {
        let day = Day::containing(self.clock.now());
        self.count(app, day, |figures| *if is_delivered { &mut figures.delivered } else { &mut figures.lost } += 1);
    }

    /// Adds the new figures to the store. Additions that fail are retried in the next flush.
    pub(crate) async fn flush(&self, store: &Store) {
        let mut additions = std::mem::take(&mut *lock(&self.failed));
        for (app, days) in std::mem::take(&mut *lock(&self.unflushed)) {
            additions.extend(days.into_iter().map(|(day, figures)| Addition {
                app: app.clone(),
                day,
                figures,
                call_id: *Uuid::new_v4().as_bytes(),
            }));
        }
        for addition in additions {
            let Addition { app, day, figures, call_id } = addition.clone();
            if store.add_day_figures(app, day, figures, call_id).await.is_err() {
                lock(&self.failed).push(addition);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds a tally's figures to the store every [`FLUSH_PAUSE`].
#[derive(Debug)]
pub(crate) struct FiguresWriter {
    store: Store,
    tally: Arc<Tally>,
}

impl FiguresWriter {
    pub(crate) const fn new(store: Store, tally: Arc<Tally>) -> Self {
        Self { store, tally }
    }

    fn flush_later(&mut self, ctx: &mut Context<Self>) {
        ctx.run_later(FLUSH_PAUSE, |writer, ctx| {
            let (store, tally) = (writer.store.clone(), Arc::clone(&writer.tally));
            ctx.spawn(
                async move { tally.flush(&store).await }
                    .into_actor(writer)
                    .map(|(), writer, ctx| writer.flush_later(ctx)),
            );
        });
    }
}

impl Actor for FiguresWriter {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.flush_later(ctx);
    }
}

impl Supervised for FiguresWriter {}
