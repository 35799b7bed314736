//! MessagePack, in which the scripts take batches, queries and steps.
//!
//! Integers are sent as text, because Lua represents only 53 bits exactly.

/// Lua represents the integers up to this one exactly. Positions and limits stay below it.
pub(crate) const LUA_EXACT_MAX: u64 = 1 << 53;

/// Packed values, one after the other.
#[derive(Debug, Default)]
pub(crate) struct MessagePack(Vec<u8>);

impl MessagePack {
    /// Returns the packed bytes.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Packs the header of an array (MessagePack: `fixarray` or `array 32`).
    pub(crate) fn array(&mut self, length: usize) {
        match u8::try_from(length) {
            Ok(short @ 0..=15) => self.0.push(0x90 | short),
            _ => {
                self.0.push(0xdd);
                self.0.extend(u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
            }
        }
    }

    /// Packs a text or bytes (MessagePack: `fixstr`, `str 8` or `str 32`).
    pub(crate) fn text(&mut self, text: &[u8]) {
        match u8::try_from(text.len()) {
            Ok(short @ 0..=31) => self.0.push(0xa0 | short),
            Ok(length) => self.0.extend([0xd9, length]),
            Err(_) => {
                self.0.push(0xdb);
                self.0.extend(u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes());
            }
        }
        self.0.extend_from_slice(text);
    }

    pub(crate) fn texts(&mut self, texts: &[&str]) {
        texts.iter().for_each(|text| self.text(text.as_bytes()));
    }

    /// Packs an integer as text.
    pub(crate) fn number(&mut self, number: i64) {
        self.text(number.to_string().as_bytes());
    }

    /// Packs an integer that Lua represents exactly (MessagePack: `int 64`).
    pub(crate) fn exact_integer(&mut self, number: i64) {
        self.0.push(0xd3);
        self.0.extend(number.to_be_bytes());
    }

    /// Packs a boolean (MessagePack: `true` or `false`).
    pub(crate) fn flag(&mut self, flag: bool) {
        self.0.push(if flag { 0xc3 } else { 0xc2 });
    }

    /// Packs a number, at most [`LUA_EXACT_MAX`].
    pub(crate) fn bounded(&mut self, number: u64) {
        self.exact_integer(i64::try_from(number.min(LUA_EXACT_MAX)).unwrap_or(i64::MAX));
    }

    /// Packs the number of a key among the keys of the script (MessagePack: `uint 32`).
    pub(crate) fn key_number(&mut self, number: usize) {
        self.0.push(0xce);
        self.0.extend(u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes());
    }
}
