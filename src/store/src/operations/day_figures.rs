//! The figures of apps for each day.

use sakshi_domain::day_figures::{Day, DayFigures, FIGURE_DAYS};
use sakshi_domain::ids::AppId;

use super::{Store, is_done};
use crate::engine::{CallId, Query};
use crate::error::{ATTEMPTS, StoreError, StoreFuture};
use crate::records::day::day;
use crate::transitions::day::{add, figures_of};

impl Store {
    /// Adds to the figures of an app on a day. A retry after an error uses the same call, until another call adds to
    /// them.
    pub fn add_day_figures(&self, app: AppId, at: Day, more: DayFigures, call: CallId) -> StoreFuture<()> {
        self.run(move |store| async move {
            for _ in 0..ATTEMPTS {
                for batch in add(&app, at, &more, call) {
                    if is_done(&store.commit(batch).await?) {
                        return Ok(());
                    }
                }
            }
            Err(StoreError::Overloaded)
        })
    }

    /// Returns the figures of an app on the [`FIGURE_DAYS`] days that end with `last`, oldest first. A day without
    /// figures has zeros.
    pub fn day_figures(&self, app: AppId, last: Day) -> StoreFuture<Vec<(Day, DayFigures)>> {
        self.run(move |store| async move {
            let days: Vec<Day> = (1 - FIGURE_DAYS..=0).map(|back| last.plus(back)).collect();
            let mut answers = store.read(days.iter().map(|at| Query::Record(day(&app, *at))).collect()).await?;
            days.into_iter()
                .map(|at| Ok((at, answers.record()?.as_ref().map(figures_of).unwrap_or_default())))
                .collect()
        })
    }
}
