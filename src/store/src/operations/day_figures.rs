//! The daily figures of apps.

use sakshi_domain::day_figures::{Day, DayFigures, FIGURE_DAYS};
use sakshi_domain::ids::AppId;

use super::{Store, is_done};
use crate::engine::{CallId, Query};
use crate::error::{ATTEMPTS, StoreError, StoreFuture};
use crate::records::day::key_of_day;
use crate::transitions::day::{add_figures, decode_figures};

impl Store {
    /// Adds to the figures of an app on a day. A retry after an error passes the same call id, and counts once unless
    /// another call has added to the day in between.
    pub fn add_day_figures(&self, app: AppId, day: Day, added: DayFigures, call: CallId) -> StoreFuture<()> {
        self.run(move |store| async move {
            for _ in 0..ATTEMPTS {
                for batch in add_figures(&app, day, &added, call) {
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
            let mut answers =
                store.read(days.iter().map(|day| Query::Record(key_of_day(&app, *day))).collect()).await?;
            days.into_iter()
                .map(|day| Ok((day, answers.record()?.as_ref().map(decode_figures).unwrap_or_default())))
                .collect()
        })
    }
}
