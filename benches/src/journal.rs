//! A file of durable records, many to one fdatasync: the unavoidable work of a completion that must survive a loss of
//! power.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};

use tokio::sync::oneshot;

use crate::Failure;

/// Size of the file from the start. Its records are overwritten in a circle, like a write-ahead log's; a growing file
/// would also need its size written.
const FILE_BYTES: u64 = 64 * 1_024 * 1_024;

/// The file and the thread that writes it.
pub(crate) struct Journal {
    waiting: Sender<oneshot::Sender<()>>,
}

impl Journal {
    /// Starts a journal with records of `record_bytes` bytes.
    pub(crate) fn start(path: &Path, record_bytes: usize) -> Result<Self, Failure> {
        let mut file = File::create(path)?;
        std::io::copy(&mut std::io::repeat(0).take(FILE_BYTES), &mut file)?;
        file.sync_all()?;
        let (waiting, records) = channel();
        std::thread::Builder::new().name("journal".to_owned()).spawn(move || {
            // After a failure the channel closes, so that callers fail.
            let _ = write(file, &records, record_bytes);
        })?;
        Ok(Self { waiting })
    }

    /// Appends a record and returns once it is on disk.
    pub(crate) async fn append(&self) -> Result<(), Failure> {
        let (on_written, written) = oneshot::channel();
        self.waiting.send(on_written)?;
        Ok(written.await?)
    }
}

/// Writes all waiting records with one fdatasync, in a loop.
fn write(mut file: File, records: &Receiver<oneshot::Sender<()>>, record_bytes: usize) -> Result<(), Failure> {
    let mut position = 0;
    while let Ok(first) = records.recv() {
        let group: Vec<_> = std::iter::once(first).chain(records.try_iter()).collect();
        let records = vec![7_u8; record_bytes * group.len()];
        if position + records.len() as u64 > FILE_BYTES {
            file.rewind()?;
            position = 0;
        }
        file.write_all(&records)?;
        position += records.len() as u64;
        file.sync_data()?;
        for on_written in group {
            // The caller may have ended.
            let _ = on_written.send(());
        }
    }
    Ok(())
}
