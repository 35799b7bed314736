//! Detects a log that lost commits in the middle.
//!
//! SQLite reads the log up to the first break in its chain of checksums. A power cut tears only the last commit, which
//! was not acknowledged. A flipped bit, a dropped write or a false sync can also break the chain before acknowledged
//! commits. A commit is written only after the previous one was synced, so a valid commit behind a break proves that
//! acknowledged data is damaged. SQLite describes the format in
//! <https://www.sqlite.org/fileformat2.html#walformat>.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use super::files::file_error;
use crate::error::StoreError;

/// Length of the log's header.
const HEADER_BYTES: usize = 32;
/// Length of the header of a frame, which a page follows.
const FRAME_HEADER_BYTES: usize = 24;
/// The magic number. Its lowest bit is set if checksums use big-endian words.
const MAGIC: u32 = 0x377f_0682;
/// Bytes of the largest page.
const PAGE_MAX: u32 = 65_536;

/// A checksum in the chain: each frame's continues the one before.
type Checksum = [u32; 2];

/// The header of a log.
struct Header {
    is_big_endian: bool,
    page_size: usize,
    salts: [u8; 8],
    checksum: Checksum,
}

/// A frame of the log: a header and a page.
struct Frame {
    is_commit: bool,
    salts: [u8; 8],
    /// The stored checksum.
    checksum: Checksum,
    /// The bytes that the checksum covers.
    covered: Vec<u8>,
}

/// Checks that no commit follows a break in the chain of checksums.
///
/// # Errors
/// [`StoreError::Corrupt`] if one does, [`StoreError::Unavailable`] if the log cannot be read.
pub(crate) fn check(path: &Path) -> Result<(), StoreError> {
    let damaged = match File::open(path) {
        Ok(file) => find_damage(&mut BufReader::with_capacity(1 << 20, file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => Err(error),
    };
    match damaged.map_err(|error| file_error("read", path, &error))? {
        None => Ok(()),
        Some(byte) => Err(StoreError::Corrupt(format!(
            "{} is damaged at byte {byte}, before commits that were acknowledged; truncate it there to continue \
                without them, or restore a backup",
            path.display()
        ))),
    }
}

/// Returns the byte at which the chain breaks, if commits follow.
fn find_damage(log: &mut impl Read) -> io::Result<Option<u64>> {
    let mut header = [0; HEADER_BYTES];
    if !fill(log, &mut header)? {
        return Ok(None);
    }
    let Some(header) = Header::read(&header) else {
        // SQLite syncs the header before it writes a frame.
        return Ok(fill(log, &mut [0])?.then_some(0));
    };
    let (mut checksum, mut salts, mut position, mut damage) =
        (header.checksum, header.salts, HEADER_BYTES as u64, None);
    let mut after_commit = false;
    while let Some(frame) = Frame::read(log, &header)? {
        let is_current =
            frame.salts == header.salts || is_after_restart(restart_count(&header.salts), restart_count(&frame.salts));
        let follows = frame.salts == salts && header.add(checksum, &frame.covered) == frame.checksum;
        if damage.is_none() && !(follows && frame.salts == header.salts) {
            damage = Some(position);
        }
        if damage.is_some() && is_current && follows && after_commit {
            return Ok(damage);
        }
        after_commit = damage.is_some() && is_current && frame.is_commit;
        (checksum, salts) = (frame.checksum, frame.salts);
        position += (FRAME_HEADER_BYTES + header.page_size) as u64;
    }
    Ok(None)
}

/// Returns the part of the salts that counts log restarts. Frames left over from before a restart have a lower count.
fn restart_count(salts: &[u8; 8]) -> u32 {
    word(salts, 0)
}

/// Returns true if a frame was written after a restart of the log whose header was lost.
const fn is_after_restart(header: u32, frame: u32) -> bool {
    frame == header.wrapping_add(1)
}

impl Header {
    /// Parses a header; `None` for a damaged one.
    fn read(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let word = |at| word(bytes, at);
        let (is_big_endian, page_size) = (word(0) & 1 == 1, word(8));
        let mut header = Self {
            is_big_endian,
            page_size: usize::try_from(page_size).ok()?,
            salts: array(bytes, 16),
            checksum: [0; 2],
        };
        header.checksum = header.add([0; 2], &bytes[..24]);
        let is_valid = word(0) & !1 == MAGIC && page_size.is_power_of_two() && (512..=PAGE_MAX).contains(&page_size);
        (is_valid && header.checksum == [word(24), word(28)]).then_some(header)
    }

    /// Extends a checksum by these bytes.
    fn add(&self, [mut first, mut second]: Checksum, bytes: &[u8]) -> Checksum {
        let word = if self.is_big_endian { u32::from_be_bytes } else { u32::from_le_bytes };
        for &[a, b, c, d, e, f, g, h] in bytes.as_chunks().0 {
            first = first.wrapping_add(word([a, b, c, d])).wrapping_add(second);
            second = second.wrapping_add(word([e, f, g, h])).wrapping_add(first);
        }
        [first, second]
    }
}

impl Frame {
    /// Reads the next frame; `None` at an incomplete frame.
    fn read(log: &mut impl Read, header: &Header) -> io::Result<Option<Self>> {
        let mut frame_header = [0; FRAME_HEADER_BYTES];
        let mut covered = vec![0; 8 + header.page_size];
        if !fill(log, &mut frame_header)? || !fill(log, &mut covered[8..])? {
            return Ok(None);
        }
        covered[..8].copy_from_slice(&frame_header[..8]);
        let checksum = [word(&frame_header, 16), word(&frame_header, 20)];
        Ok(Some(Self { is_commit: word(&frame_header, 4) != 0, salts: array(&frame_header, 8), checksum, covered }))
    }
}

/// Fills the buffer. Returns false if the log has too few bytes.
fn fill(log: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match log.read_exact(buffer) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| true),
    }
}

/// Returns the big-endian word at a position.
fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(array(bytes, at))
}

/// Returns `N` bytes at a position, which must exist.
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[at..at + N]);
    array
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use rusqlite::Connection;
    use tempfile::TempDir;

    use super::*;

    /// Size of a page in the log with its frame header.
    const FRAME_BYTES: usize = FRAME_HEADER_BYTES + 4_096;

    /// Returns the log of three commits of one page each.
    fn log_of_three_commits() -> (TempDir, PathBuf, Vec<u8>) {
        let directory = tempfile::tempdir().unwrap();
        let connection = Connection::open(directory.path().join("file")).unwrap();
        connection
            .execute_batch("CREATE TABLE t (a); PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0")
            .unwrap();
        (0..3).for_each(|_| connection.execute_batch("INSERT INTO t VALUES (1)").unwrap());
        let path = directory.path().join("log");
        fs::copy(directory.path().join("file-wal"), &path).unwrap();
        let bytes = fs::read(&path).unwrap();
        assert_eq!(bytes.len(), HEADER_BYTES + 3 * FRAME_BYTES);
        (directory, path, bytes)
    }

    #[test]
    fn a_complete_missing_or_torn_log_is_accepted() {
        let (_directory, path, bytes) = log_of_three_commits();
        for length in [
            bytes.len(),
            bytes.len() - 1,
            HEADER_BYTES + 2 * FRAME_BYTES + 3,
            HEADER_BYTES + 1,
            HEADER_BYTES,
            HEADER_BYTES - 1,
            0,
        ] {
            fs::write(&path, &bytes[..length]).unwrap();
            assert_eq!(check(&path), Ok(()), "{length}");
        }
        let mut torn = bytes;
        torn[HEADER_BYTES + 2 * FRAME_BYTES + 99] ^= 1;
        fs::write(&path, &torn).unwrap();
        assert_eq!(check(&path), Ok(()), "the last commit may not have been acknowledged");
        fs::remove_file(&path).unwrap();
        assert_eq!(check(&path), Ok(()));
    }

    #[test]
    fn a_log_with_commits_behind_damage_is_refused() {
        let (_directory, path, bytes) = log_of_three_commits();
        for byte in 0..HEADER_BYTES + FRAME_BYTES {
            let mut damaged = bytes.clone();
            damaged[byte] ^= 1;
            fs::write(&path, &damaged).unwrap();
            let Err(StoreError::Corrupt(why)) = check(&path) else { panic!("byte {byte}") };
            assert!(why.contains(&format!("byte {}", if byte < HEADER_BYTES { 0 } else { HEADER_BYTES })), "{why}");
        }
    }

    #[test]
    fn a_log_whose_new_header_was_lost_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let connection = Connection::open(directory.path().join("file")).unwrap();
        connection
            .execute_batch("CREATE TABLE t (a); PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0")
            .unwrap();
        let commit = || connection.execute_batch("INSERT INTO t VALUES (1)").unwrap();
        let (log, path) = (directory.path().join("file-wal"), directory.path().join("log"));
        (0..3).for_each(|_| commit());
        let older = fs::read(&log).unwrap();
        connection.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(())).unwrap();
        (0..2).for_each(|_| commit());
        let mut bytes = fs::read(&log).unwrap();
        assert_ne!(bytes[..HEADER_BYTES], older[..HEADER_BYTES], "the log was restarted");
        fs::write(&path, &bytes).unwrap();
        assert_eq!(check(&path), Ok(()));
        bytes[..HEADER_BYTES].copy_from_slice(&older[..HEADER_BYTES]);
        fs::write(&path, &bytes).unwrap();
        assert!(matches!(check(&path), Err(StoreError::Corrupt(_))));
    }

    #[test]
    fn frames_left_over_from_before_a_restart_are_accepted() {
        let (_directory, path, mut bytes) = log_of_three_commits();
        let (_other, _, older) = log_of_three_commits();
        bytes.truncate(HEADER_BYTES + FRAME_BYTES);
        bytes.extend_from_slice(&older[HEADER_BYTES + FRAME_BYTES..]);
        fs::write(&path, &bytes).unwrap();
        assert_eq!(check(&path), Ok(()));
    }
}
