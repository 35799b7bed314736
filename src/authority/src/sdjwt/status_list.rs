//! The `status_list` of a Token Status List: states of 1, 2, 4 or 8 bits each, compressed with zlib
//! (IETF `draft-ietf-oauth-status-list`, section 4).

use std::io::Read as _;

use flate2::read::ZlibDecoder;
use sakshi_domain::limits::STATUS_LIST_BYTES_MAX;
use serde_json::Value;

use crate::encoding::from_base64url;

/// A decompressed status list.
#[derive(Debug)]
pub(super) struct StatusList {
    bits_per_state: u8,
    bytes: Vec<u8>,
}

impl StatusList {
    /// Reads `{"bits", "lst"}`; `None` if it is malformed, or decompresses to more than [`STATUS_LIST_BYTES_MAX`].
    pub(super) fn read(value: &Value) -> Option<Self> {
        let bits_per_state = value.get("bits")?.as_u64().and_then(|bits| u8::try_from(bits).ok())?;
        if !matches!(bits_per_state, 1 | 2 | 4 | 8) {
            return None;
        }
        let compressed = from_base64url(value.get("lst")?.as_str()?)?;
        let mut bytes = Vec::new();
        ZlibDecoder::new(&*compressed).take(STATUS_LIST_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).ok()?;
        (bytes.len() <= STATUS_LIST_BYTES_MAX).then_some(Self { bits_per_state, bytes })
    }

    /// Returns the state at an index. The lowest bits of a byte hold the first state.
    pub(super) fn get(&self, index: u64) -> Option<u8> {
        let states_per_byte = u64::from(8 / self.bits_per_state);
        let byte = self.bytes.get(usize::try_from(index / states_per_byte).ok()?)?;
        let shift = u8::try_from(index % states_per_byte).ok()? * self.bits_per_state;
        let mask = u8::MAX >> (8 - self.bits_per_state);
        Some((byte >> shift) & mask)
    }

    /// Returns the size of the list in bytes.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes.len()
    }
}
