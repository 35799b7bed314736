//! Reading files that a crash or a lie has left: the ordinary code opens them, and everything in them is read.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use sakshi_domain::clock::ManualClock;

use super::content::{Content, Keys};
use super::recording::{Recording, open, place};
use super::trace::Files;
use crate::StoreError;
use crate::conformance::run;
use crate::embedded::EmbeddedStore;
use crate::embedded::tests::{START, open_when_free, options};

/// Timeout of a look, far longer than one takes, also on a busy machine.
const HANGS: Duration = Duration::from_secs(120);

/// The files of one case.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) files: Files,
    /// True if the directory is known to have held a store.
    pub(super) is_marked: bool,
    /// The moment, and the data that the crash left.
    pub(super) at: usize,
    pub(super) how: String,
}

/// The result of a look.
#[derive(Debug)]
pub(super) enum Look {
    /// The store was opened, with this content.
    Content(Content),
    /// It was not opened.
    Refused(StoreError),
    /// It was opened, but not everything can be read.
    Unreadable(StoreError),
}

/// Opens the files of a case, in a directory of their own.
pub(super) fn look(directory: &Path, case: &Case, keys: &Arc<Keys>) -> (Look, Option<EmbeddedStore>) {
    place(directory, &case.files, case.is_marked);
    let store = match open_when_free(&options(directory, Arc::new(ManualClock::starting_at(START)))) {
        Ok(store) => store,
        Err(error) => return (Look::Refused(error), None),
    };
    (read(&store, keys), Some(store))
}

/// Reads everything in a store.
pub(super) fn read(store: &EmbeddedStore, keys: &Arc<Keys>) -> Look {
    let (keys, mut found) = (Arc::clone(keys), None);
    run(async { found = Some(store.sqlite().read(move |db| keys.content(db)).await) });
    match found.unwrap() {
        Ok(content) => Look::Content(content),
        Err(error) => Look::Unreadable(error),
    }
}

/// Uses a store that was opened after a crash: a verification, the audit of credits, closing and opening again.
pub(super) fn use_further(directory: &Path, store: EmbeddedStore, recording: &Recording) {
    store.close();
    drop(store);
    let clock = Arc::new(ManualClock::starting_at(START));
    run(async {
        let test = open(directory, &clock);
        let balance = recording.business.goes_on(&test).await;
        test.store.close();
        let again = open(directory, &clock);
        assert_eq!(crate::conformance::fixture::audited_balance(&again, &recording.business.client).await, balance);
    });
}

/// Judges cases on two threads, while they are made.
///
/// # Panics
/// One of the judges panics or hangs.
pub(super) fn judge_all(cases: impl Iterator<Item = Case> + Send, judge: impl Fn(&Path, Case) + Sync) {
    const JUDGES: usize = 2;
    thread::scope(|scope| {
        let (judge, (done, all_done)) = (&judge, channel());
        let mut queues = Vec::new();
        for _ in 0..JUDGES {
            let (queue, waiting) = std::sync::mpsc::sync_channel::<Case>(4);
            let done = done.clone();
            queues.push(queue);
            scope.spawn(move || {
                let directory = super::recording::directory();
                for case in waiting {
                    judge(directory.path(), case);
                    let _ = done.send(());
                }
            });
        }
        drop(done);
        let (mut judged, mut given) = (0, 0);
        for (number, case) in cases.enumerate() {
            let how = format!("{} {}", case.at, case.how);
            // A judge that has panicked takes no more cases.
            if queues[number % JUDGES].send(case).is_err() {
                panic!("a case before {how} failed");
            }
            given += 1;
            judged += all_done.try_iter().count();
            while given - judged > 4 * JUDGES {
                match all_done.recv_timeout(HANGS) {
                    Ok(()) => judged += 1,
                    Err(RecvTimeoutError::Timeout) => hang(&how),
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
        }
        drop(queues);
        loop {
            match all_done.recv_timeout(HANGS) {
                Ok(()) => {}
                Err(RecvTimeoutError::Timeout) => hang("the last ones"),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
    });
}

/// Ends the process: a thread that hangs cannot be joined.
fn hang(how: &str) -> ! {
    eprintln!("the store hangs at a case near {how}");
    std::process::abort()
}
