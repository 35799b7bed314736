//! A recorded run of a store: every change of its files, and its content after each answer.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use sakshi_domain::clock::ManualClock;
use sakshi_kit::random::Random;
use tempfile::TempDir;

use super::content::{Content, Keys};
use super::look::{Case, ReadResult, open_and_read};
use super::trace::{Change, DiskState, Files, Survivors};
use super::vfs::Disk;
use crate::conformance::workload::{StepObserver, Workload};
use crate::conformance::{ClockedStore, run};
use crate::embedded::EmbeddedStore;
use crate::embedded::database::connection::{Role, connect};
use crate::embedded::database::statements::Database;
use crate::embedded::tests::{START, open_when_free, options};

/// Steps that take several commits: a user is invited and accepts, a week or month is created before its first entry,
/// and an erasure removes one kind of record after the other.
const SEVERAL_COMMITS: [&str; 4] = ["a user", "a callback", "an entry of the client's log", "an erasure"];

/// A finished run, with every change of the store's files.
pub(super) struct Recording {
    pub(super) changes: Vec<Change>,
    /// The state after each answer, in order. The first is the state of a new store.
    pub(super) states: Vec<State>,
    pub(super) keys: Arc<Keys>,
    pub(super) workload: Workload,
    /// Contents between the commits of one step, with the number of the previous state.
    pub(super) intermediate_contents: Vec<(usize, Content)>,
}

/// Content of the store when a step was answered.
pub(super) struct State {
    pub(super) step: &'static str,
    /// Number of disk changes before the answer.
    pub(super) changes: usize,
    pub(super) content: Content,
}

/// Records a run of a store.
pub(super) struct Recorder {
    pub(super) disk: Arc<Disk>,
    path: PathBuf,
    db: Option<Database>,
    keys: Keys,
    pub(super) states: Vec<State>,
}

/// Returns a temporary directory, in memory if the machine has `/dev/shm`.
pub(super) fn directory() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory).unwrap() } else { tempfile::tempdir().unwrap() }
}

/// Opens the store in a directory.
pub(super) fn open(directory: &Path, clock: &Arc<ManualClock>) -> ClockedStore<EmbeddedStore> {
    ClockedStore { store: open_when_free(&options(directory, Arc::clone(clock))).unwrap(), clock: Arc::clone(clock) }
}

impl Recorder {
    pub(super) fn new(directory: &Path) -> Self {
        let store = directory.canonicalize().unwrap().join("store");
        let disk = Disk::watch(&store);
        Self { disk, path: store.join("sakshi.db"), db: None, keys: Keys::default(), states: vec![] }
    }

    /// Returns the connection that reads the content, opened at its first use.
    fn database(&mut self) -> &Database {
        self.db.get_or_insert_with(|| Database {
            connection: connect(&self.path, Role::Reader).unwrap(),
            clock: Arc::new(ManualClock::starting_at(START)),
            health: Arc::default(),
        })
    }

    /// Records the state after a step.
    fn record_state(&mut self, step: &'static str) {
        let changes = self.disk.count();
        self.database();
        let db = self.db.as_ref().unwrap();
        self.keys.add_current(db).unwrap();
        let content = self.keys.content(db).unwrap();
        self.states.push(State { step, changes, content });
    }

    /// Runs a checkpoint beside the open store, as the checkpoint thread does.
    fn checkpoint(&self) {
        let connection = connect(&self.path, Role::Checkpointer).unwrap();
        connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).unwrap();
    }

    /// Closes and reopens a store.
    fn reopen(&mut self, test: &ClockedStore<EmbeddedStore>, directory: &Path) -> ClockedStore<EmbeddedStore> {
        self.db = None;
        test.store.close();
        open(directory, &test.clock)
    }

    /// Returns the keys seen so far.
    pub(super) fn keys(&mut self) -> Arc<Keys> {
        self.db = None;
        Arc::new(std::mem::take(&mut self.keys))
    }

    /// Ends the recording of a run.
    fn finish(self, workload: Workload) -> Recording {
        let keys = Arc::new(self.keys);
        Recording { changes: self.disk.changes(), states: self.states, keys, workload, intermediate_contents: vec![] }
    }
}

impl StepObserver for Recorder {
    async fn record(&mut self, step: &'static str) {
        self.record_state(step);
    }
}

impl Recording {
    /// Returns the recording that tests share.
    pub(super) fn shared() -> &'static Self {
        static SHARED: LazyLock<Recording> = LazyLock::new(Recording::record);
        &SHARED
    }

    /// Records a run from the creation of a store, with checkpoints of every kind, a clean shutdown and a restart.
    fn record() -> Self {
        let directory = directory();
        let mut recorder = Recorder::new(directory.path());
        let workload = Self::run_workload(&mut recorder, directory.path());
        let mut recording = recorder.finish(workload);
        recording.intermediate_contents = recording.find_intermediate_contents();
        recording
    }

    /// Finds the contents between answers: opens the files as they were after each sync.
    fn find_intermediate_contents(&self) -> Vec<(usize, Content)> {
        let (directory, mut state, mut between) = (directory(), DiskState::default(), vec![]);
        for (at, change) in self.changes.iter().enumerate() {
            state.apply(change);
            let Some(answered) = self.last_answered_state(at).filter(|_| matches!(change, Change::Sync { .. })) else {
                continue;
            };
            let files = state.after_crash(Survivors::Everything, &mut Random::from_seed(0));
            let case = Case { files, is_marked: true, moment: at, description: String::new() };
            let (result, _) = open_and_read(directory.path(), &case, &self.keys);
            let ReadResult::Content(content) = result else { panic!("{result:?}") };
            let is_known = |number| self.states.get(number).is_some_and(|state: &State| state.content == content);
            if !is_known(answered) && !is_known(answered + 1) {
                let step = self.states[answered + 1].step;
                assert!(SEVERAL_COMMITS.contains(&step), "{step} takes several commits");
                between.push((answered, content));
            }
        }
        between
    }

    /// Creates a store and works in it.
    pub(super) fn run_workload(recorder: &mut Recorder, directory: &Path) -> Workload {
        let clock = Arc::new(ManualClock::starting_at(START));
        let mut finished = None;
        run(async {
            let mut test = open(directory, &clock);
            recorder.record_state("the creation of the store");
            let mut workload = Workload::create(&test, recorder).await;
            workload.run_round(&test, recorder).await;
            recorder.checkpoint();
            workload.run_round(&test, recorder).await;
            workload.erase(&test, recorder).await;
            test = recorder.reopen(&test, directory);
            workload.run_round(&test, recorder).await;
            recorder.checkpoint();
            workload.sweep(&test, Duration::from_secs(2 * 86_400), recorder).await;
            workload.run_round(&test, recorder).await;
            recorder.db = None;
            test.store.close();
            finished = Some(workload);
        });
        finished.unwrap()
    }

    /// Returns the number of the last state that was answered within this number of disk changes.
    pub(super) fn last_answered_state(&self, changes: usize) -> Option<usize> {
        self.states.iter().rposition(|state| state.changes <= changes)
    }
}

/// Writes the files of a store into a directory, with a lock file which records that a store was opened there.
pub(super) fn write_files(directory: &Path, files: &Files) {
    write_files_with_mark(directory, files, true);
}

/// Writes the files of a store into a directory. `is_marked` records in the lock file that a store was opened there.
pub(super) fn write_files_with_mark(directory: &Path, files: &Files, is_marked: bool) {
    let store = directory.join("store");
    let _ = std::fs::remove_dir_all(&store);
    std::fs::create_dir(&store).unwrap();
    for (name, contents) in files {
        std::fs::write(store.join(name), contents).unwrap();
    }
    std::fs::write(store.join("sakshi.lock"), if is_marked { "This directory holds a sakshi store.\n" } else { "" })
        .unwrap();
}
