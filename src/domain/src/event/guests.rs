//! Guests of an event: their codes, duplicate registrations, and the doors for check-in.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::EventText;
use crate::limits::{DOOR_GRACE, DOORS_MAX};
use crate::string_enum::string_enum;
use crate::time::Timestamp;

string_enum!(
    /// The handling of a person who registers again.
    #[derive(Default)]
    OnDuplicate {
        /// The person is not detected: no digests of guests are stored.
        Allow = "allow",
        /// The person is registered, and marked for the organiser.
        #[default]
        Flag = "flag",
        /// The person is not registered again.
        Refuse = "refuse",
    }
);

impl OnDuplicate {
    /// Returns true for the default.
    #[must_use]
    pub const fn is_flag(&self) -> bool {
        matches!(self, Self::Flag)
    }
}

/// A random key of an event, which derives the codes of guests and the digests that recognise a person. These are
/// useless at another event.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventSecret(Uuid);

impl EventSecret {
    /// Generates a secret of 122 random bits.
    #[must_use]
    pub fn generate() -> Self {
        Self(Uuid::new_v4())
    }

    /// Returns a fixed key, for tests.
    #[must_use]
    pub const fn fixed(number: u128) -> Self {
        Self(Uuid::from_u128(number))
    }

    /// Returns the bytes of the key.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for EventSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventSecret")
    }
}

/// A trait by which an event recognises a person who registers twice, as SHA-256: the credential's id, the holder's
/// key, or the name with the date of birth. It is never stored.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Trait(pub [u8; 32]);

impl fmt::Debug for Trait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Trait")
    }
}

/// The code of a registered guest, for staff at the entrance: six characters, unique within an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RegistrationCode(u32);

/// Letters and digits that are not confused with each other.
const CODE_LETTERS: &[u8; 32] = b"23456789ABCDEFGHJKLMNPQRSTUVWXYZ";
/// Characters of a code, of five bits each.
const CODE_CHARS: u32 = 6;

impl RegistrationCode {
    /// Bits of the value.
    pub const BITS: u32 = 5 * CODE_CHARS;

    /// Returns the code with the low [`Self::BITS`] bits of this value.
    #[must_use]
    pub const fn from_bits(value: u32) -> Self {
        Self(value % (1 << Self::BITS))
    }

    /// Returns the value.
    #[must_use]
    pub const fn value(self) -> u32 {
        self.0
    }
}

impl fmt::Display for RegistrationCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = |index: u32| char::from(CODE_LETTERS[(self.0 >> (5 * (CODE_CHARS - 1 - index))) as usize % 32]);
        f.pad(&(0..CODE_CHARS).map(letter).collect::<String>())
    }
}

impl FromStr for RegistrationCode {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refusal = "must be the six characters of a guest's page, such as 7KMQ2X";
        let characters = || text.bytes().filter(|byte| !matches!(byte, b' ' | b'-'));
        if characters().count() != CODE_CHARS as usize {
            return Err(refusal);
        }
        characters()
            .try_fold(0, |value, byte| {
                let letter = CODE_LETTERS.iter().zip(0..).find(|(letter, _)| **letter == byte.to_ascii_uppercase());
                letter.map(|(_, index)| value << 5 | index).ok_or(refusal)
            })
            .map(Self)
    }
}

impl TryFrom<String> for RegistrationCode {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<RegistrationCode> for String {
    fn from(code: RegistrationCode) -> Self {
        code.to_string()
    }
}

/// Random id of a check-in request. Retries have the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckInId(i64);

/// Number of check-in ids. JavaScript represents all of them exactly.
const CHECK_IN_IDS: u64 = 1 << 52;

impl CheckInId {
    /// Generates a new id.
    #[must_use]
    pub fn generate() -> Self {
        Self((Uuid::new_v4().as_u64_pair().1 % CHECK_IN_IDS).cast_signed())
    }

    /// Returns the id with this number.
    #[must_use]
    pub const fn new(number: i64) -> Self {
        Self(number)
    }

    /// Returns the number.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl FromStr for CheckInId {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse()
            .ok()
            .filter(|number| (0..CHECK_IN_IDS.cast_signed()).contains(number))
            .map(Self)
            .ok_or("must be a whole number below 2^52")
    }
}

/// A check-in of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckIn {
    /// The id of the request.
    pub id: CheckInId,
    /// Time of the check-in.
    pub at: Timestamp,
    /// The name of the gate; empty without one.
    pub gate: String,
}

/// A door: a page for staff at an entrance, with a link, a PIN and an end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Door {
    /// The id within the event.
    pub id: DoorId,
    /// The PIN.
    pub pin: Pin,
    /// The name of the gate.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<EventText>,
    /// End of the link. Default: the end of the event.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub expires_at: Option<Timestamp>,
}

impl Door {
    /// Returns the end of the link, given the end of the event.
    #[must_use]
    pub fn end(&self, event_end: Timestamp) -> Timestamp {
        self.expires_at.unwrap_or(event_end)
    }
}

/// The PIN of a door.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pin(String);

impl Pin {
    /// Generates a PIN of eight random digits.
    #[must_use]
    pub fn generate() -> Self {
        Self(format!("{:08}", Uuid::new_v4().as_u64_pair().1 % 100_000_000))
    }

    /// Returns the digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pin")
    }
}

/// Id of a door within its event: twelve letters and digits, about 59 random bits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DoorId(String);

const DOOR_ID_CHARS: usize = 12;

impl DoorId {
    /// Generates a new id.
    #[must_use]
    pub fn generate() -> Self {
        let letters = b"23456789abcdefghjkmnpqrstuvwxyz";
        let random = Uuid::new_v4();
        // Twelve random bytes: 6 and 8 of a UUID are not random.
        let bytes = random.as_bytes()[..6].iter().chain(&random.as_bytes()[10..]);
        Self(bytes.map(|byte| char::from(letters[usize::from(*byte) % letters.len()])).collect())
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for DoorId {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::try_from(text.to_owned())
    }
}

impl TryFrom<String> for DoorId {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let is_id =
            text.len() == DOOR_ID_CHARS && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        if is_id { Ok(Self(text)) } else { Err("must be 12 letters and digits") }
    }
}

impl From<DoorId> for String {
    fn from(id: DoorId) -> Self {
        id.0
    }
}

impl fmt::Debug for DoorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DoorId")
    }
}

/// A change of the doors of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DoorChange {
    /// Adds a door.
    Open(Door),
    /// Removes a door, which ends its link.
    Close(DoorId),
}

/// Applies a change, and removes doors whose grace period is over.
///
/// # Errors
/// A message, if the event has too many doors.
pub(super) fn apply_door_change(
    doors: &mut Vec<Door>,
    change: DoorChange,
    event_end: Timestamp,
    now: Timestamp,
) -> Result<(), String> {
    doors.retain(|door| door.end(event_end) + DOOR_GRACE > now);
    match change {
        // A retry changes nothing.
        DoorChange::Open(door) if doors.iter().any(|known| known.id == door.id) => Ok(()),
        DoorChange::Open(_) if doors.len() >= DOORS_MAX => {
            Err(format!("an event has at most {DOORS_MAX} doors; close one first"))
        }
        DoorChange::Open(door) => {
            doors.push(door);
            Ok(())
        }
        DoorChange::Close(id) => {
            doors.retain(|door| door.id != id);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a door whose link ends after this many milliseconds.
    fn door(end_ms: i64) -> Door {
        Door {
            id: DoorId::generate(),
            pin: Pin::generate(),
            name: None,
            expires_at: Some(Timestamp::from_millis(end_ms)),
        }
    }

    #[test]
    fn ended_doors_are_removed_and_a_retry_changes_nothing() {
        let (now, end, mut doors) = (Timestamp::from_millis(10), Timestamp::from_millis(15), Vec::new());
        for _ in 0..DOORS_MAX {
            apply_door_change(&mut doors, DoorChange::Open(door(20)), end, now).unwrap();
        }
        let one_more = door(30);
        assert!(apply_door_change(&mut doors, DoorChange::Open(one_more.clone()), end, now).is_err());
        let known = doors[3].clone();
        assert_eq!(apply_door_change(&mut doors, DoorChange::Open(known), end, now), Ok(()));
        assert_eq!(doors.len(), DOORS_MAX);
        apply_door_change(&mut doors, DoorChange::Open(one_more.clone()), end, Timestamp::from_millis(20) + DOOR_GRACE)
            .unwrap();
        assert_eq!(doors.iter().map(|door| &door.id).collect::<Vec<_>>(), [&one_more.id]);
        apply_door_change(&mut doors, DoorChange::Close(one_more.id), end, now).unwrap();
        assert_eq!(doors, []);
    }

    #[test]
    fn codes_are_read_in_any_case_and_with_hyphens() {
        for value in [0, 1, 31, 32, 0x2aaa_aaaa, (1 << 30) - 1] {
            let text = RegistrationCode::from_bits(value).to_string();
            let typed = format!(" {}-{} ", text[..3].to_lowercase(), &text[3..]);
            assert_eq!(
                (text.parse(), typed.parse()),
                (Ok(RegistrationCode::from_bits(value)), Ok(RegistrationCode::from_bits(value))),
                "{text}"
            );
        }
        for wrong in ["", "7KMQ2", "7KMQ2XA", "7KMQ2O", "7KMQ2ä", "7KMQ20"] {
            assert!(wrong.parse::<RegistrationCode>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn ids_of_doors_survive_formatting() {
        let id = DoorId::generate();
        assert_eq!(id.as_str().parse(), Ok(id));
        for wrong in ["", "abcdefghijk", "abcdefghijklm", "ABCDEFGHIJKL", "abcdefghijk-"] {
            assert!(wrong.parse::<DoorId>().is_err(), "{wrong}");
        }
    }
}
