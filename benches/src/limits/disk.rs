//! Durable appends to a file, with an fdatasync for each and with one for many: the cost of a commit of the embedded
//! store.

use std::fs::File;
use std::io::Write as _;
use std::time::Instant;

use crate::Failure;
use crate::scale::Scale;

/// Bytes of an append: two pages of the store.
const APPEND_BYTES: usize = 8 * 1_024;
/// Appends that share an fdatasync.
pub(super) const GROUP: usize = 64;

/// Measures appends per second, with one fdatasync each and with one for a group, in turns.
pub(crate) fn rates(scale: Scale) -> Result<[Vec<f64>; 2], Failure> {
    let mut rates = [Vec::new(), Vec::new()];
    for _ in 0..scale.rounds {
        for (group, rates) in [1, GROUP].into_iter().zip(&mut rates) {
            rates.push(append_rate(group, scale)?);
        }
    }
    Ok(rates)
}

/// Measures appends per second with one fdatasync for each group.
fn append_rate(group: usize, scale: Scale) -> Result<f64, Failure> {
    let mut file: File = tempfile::tempfile()?;
    let bytes = vec![7_u8; APPEND_BYTES];
    let (started, mut appended) = (Instant::now(), 0_u64);
    while started.elapsed() < scale.span {
        for _ in 0..group {
            file.write_all(&bytes)?;
        }
        file.sync_data()?;
        appended += group as u64;
    }
    Ok(appended as f64 / started.elapsed().as_secs_f64())
}
