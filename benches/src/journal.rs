//! A file of durable records, many to one fdatasync: the unavoidable work of a completion whose answer must survive a
//! loss of power.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};

use tokio::sync::oneshot;

use crate::Failure;

/// Size of the file from the start. It is written in a circle, like a write-ahead log; a growing file would also need
/// its size written.
const SIZE: u64 = 64 * 1_024 * 1_024;

/// The file and the thread that writes it.
pub(crate) struct Journal {
    waiting: Sender<oneshot::Sender<()>>,
}

impl Journal {
    /// Starts a journal with records of `bytes` bytes.
    pub(crate) fn start(path: &Path, bytes: usize) -> Result<Self, Failure> {
        let mut file = File::create(path)?;
        std::io::copy(&mut std::io::repeat(0).take(SIZE), &mut file)?;
        file.sync_all()?;
        let (waiting, records) = channel();
        std::thread::Builder::new().name("journal".to_owned()).spawn(move || {
            // After a failure the channel closes, so that callers fail.
            let _ = write(file, &records, bytes);
        })?;
        Ok(Self { waiting })
    }

    /// Appends a record; it is on disk when this returns.
    pub(crate) async fn append(&self) -> Result<(), Failure> {
        let (done, written) = oneshot::channel();
        self.waiting.send(done)?;
        Ok(written.await?)
    }
}

/// Writes all waiting records with one fdatasync, in a loop.
fn write(mut file: File, records: &Receiver<oneshot::Sender<()>>, bytes: usize) -> Result<(), Failure> {
    let mut position = 0;
    while let Ok(first) = records.recv() {
        let group: Vec<_> = std::iter::once(first).chain(records.try_iter()).collect();
        let records = vec![7_u8; bytes * group.len()];
        if position + records.len() as u64 > SIZE {
            file.rewind()?;
            position = 0;
        }
        file.write_all(&records)?;
        position += records.len() as u64;
        file.sync_data()?;
        for done in group {
            // The caller may have ended.
            let _ = done.send(());
        }
    }
    Ok(())
}
