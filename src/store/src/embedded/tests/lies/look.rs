//! Opening the files that a crash or a lying disk has left, with the ordinary code, and reading everything in them.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use sakshi_domain::clock::ManualClock;

use super::content::{Content, Keys};
use super::recording::{Recording, open, write_files_with_mark};
use super::trace::Files;
use crate::StoreError;
use crate::conformance::run;
use crate::embedded::EmbeddedStore;
use crate::embedded::tests::{START, open_when_free, options};

/// Timeout of a case, far above its duration even on a busy machine.
const CASE_TIMEOUT: Duration = Duration::from_secs(120);

/// The files of one case.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) files: Files,
    /// True if the lock file records that the directory has held a store.
    pub(super) is_marked: bool,
    /// The moment of the crash: the number of disk changes before it.
    pub(super) moment: usize,
    /// Description of the case, for messages.
    pub(super) description: String,
}

/// The result of opening and reading a store.
#[derive(Debug)]
pub(super) enum ReadResult {
    /// The store was opened and has this content.
    Content(Content),
    /// Opening was refused.
    Refused(StoreError),
    /// The store was opened, but something in it cannot be read.
    Unreadable(StoreError),
}

/// Opens the files of a case in an empty directory and reads everything.
pub(super) fn open_and_read(directory: &Path, case: &Case, keys: &Arc<Keys>) -> (ReadResult, Option<EmbeddedStore>) {
    write_files_with_mark(directory, &case.files, case.is_marked);
    let store = match open_when_free(&options(directory, Arc::new(ManualClock::starting_at(START)))) {
        Ok(store) => store,
        Err(error) => return (ReadResult::Refused(error), None),
    };
    (read_all(&store, keys), Some(store))
}

/// Reads everything in a store.
pub(super) fn read_all(store: &EmbeddedStore, keys: &Arc<Keys>) -> ReadResult {
    let (keys, mut result) = (Arc::clone(keys), None);
    run(async { result = Some(store.sqlite().read(move |db| keys.content(db)).await) });
    match result.unwrap() {
        Ok(content) => ReadResult::Content(content),
        Err(error) => ReadResult::Unreadable(error),
    }
}

/// Uses a store that was opened after a crash: runs a verification, reopens the store and audits the credits.
pub(super) fn use_after_crash(directory: &Path, store: EmbeddedStore, recording: &Recording) {
    store.close();
    drop(store);
    let clock = Arc::new(ManualClock::starting_at(START));
    run(async {
        let test = open(directory, &clock);
        let balance = recording.workload.open_another(&test).await;
        test.store.close();
        let reopened = open(directory, &clock);
        assert_eq!(crate::conformance::fixture::audited_balance(&reopened, &recording.workload.client).await, balance);
    });
}

/// Judges cases on two threads, while the caller generates them.
///
/// # Panics
/// If a judge panics or hangs.
pub(super) fn judge_all(cases: impl Iterator<Item = Case> + Send, judge: impl Fn(&Path, Case) + Sync) {
    const JUDGES: usize = 2;
    thread::scope(|scope| {
        let (judge, (done, all_done)) = (&judge, channel());
        let mut queues = Vec::new();
        for _ in 0..JUDGES {
            let (queue, queued_cases) = std::sync::mpsc::sync_channel::<Case>(4);
            let done = done.clone();
            queues.push(queue);
            scope.spawn(move || {
                let directory = super::recording::directory();
                for case in queued_cases {
                    judge(directory.path(), case);
                    let _ = done.send(());
                }
            });
        }
        drop(done);
        let (mut judged_count, mut sent_count) = (0, 0);
        for (number, case) in cases.enumerate() {
            let description = format!("{} {}", case.moment, case.description);
            // A judge that has panicked takes no more cases.
            if queues[number % JUDGES].send(case).is_err() {
                panic!("a case before {description} failed");
            }
            sent_count += 1;
            judged_count += all_done.try_iter().count();
            while sent_count - judged_count > 4 * JUDGES {
                match all_done.recv_timeout(CASE_TIMEOUT) {
                    Ok(()) => judged_count += 1,
                    Err(RecvTimeoutError::Timeout) => abort_on_hang(&description),
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
        }
        drop(queues);
        loop {
            match all_done.recv_timeout(CASE_TIMEOUT) {
                Ok(()) => {}
                Err(RecvTimeoutError::Timeout) => abort_on_hang("the last cases"),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
    });
}

/// Ends the process, because a thread that hangs cannot be joined.
fn abort_on_hang(description: &str) -> ! {
    eprintln!("the store hangs in a case near {description}");
    std::process::abort()
}
