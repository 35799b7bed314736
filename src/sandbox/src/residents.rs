//! Invented residents, and the values of their claims in the formats of real credentials: dates as `dd-MM-yyyy`, flags
//! as `Yes` and `No`, photos as Base64 JPEG.
//!
//! E-mail addresses are in a reserved domain, and numbers are visibly invented.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Datelike as _, NaiveDate};
use sakshi_domain::claims::Claim;
use sakshi_domain::time::Timestamp;
use serde_json::Value;

mod sample;

/// A drawing of 240 by 300 pixels, used as every resident's photo.
const PORTRAIT: &[u8] = include_bytes!("../assets/portrait.jpg");
/// Bytes of the large photo, about 300 KB in Base64.
const LARGE_PORTRAIT_BYTES: usize = 225 * 1_000;

/// A resident's photo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Portrait {
    /// A few kilobytes.
    Small,
    /// About 300 KB in Base64, like the largest real photos.
    Large,
}

/// The format of the date of birth in a resident's credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DobFormat {
    FullDate,
    /// The year alone, because many people do not know the date.
    YearOnly,
    /// A text that is not a date.
    NotADate,
}

/// The state of a resident's credentials, as the issuer publishes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PublishedState {
    /// The credential may be used.
    #[default]
    Valid,
    /// The issuer has revoked the credential.
    Revoked,
    /// The credential may not be used at present.
    Suspended,
}

impl PublishedState {
    const ALL: [Self; 3] = [Self::Valid, Self::Revoked, Self::Suspended];

    /// Returns the state's name in signed statuses and their URLs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Revoked => "revoked",
            Self::Suspended => "suspended",
        }
    }

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }
}

/// A resident's address.
#[derive(Clone, Debug)]
struct Home {
    building: &'static str,
    street: &'static str,
    landmark: Option<&'static str>,
    locality: &'static str,
    town: &'static str,
    sub_district: &'static str,
    district: &'static str,
    state: &'static str,
    pincode: &'static str,
    post_office: &'static str,
    /// Full address in the regional language.
    regional: Option<&'static str>,
}

/// An invented resident.
#[derive(Clone, Debug)]
pub struct Resident {
    /// Id of the resident in forms and scripts.
    pub id: &'static str,
    /// Full name.
    pub name: Cow<'static, str>,
    /// Purpose of the resident in tests.
    pub about: &'static str,
    local_name: Option<&'static str>,
    /// Year, month and day of birth.
    born: (i32, u32, u32),
    dob_format: DobFormat,
    gender: &'static str,
    lives_abroad: bool,
    care_of: Option<&'static str>,
    enrolment_number: &'static str,
    home: Home,
    mobile: Option<&'static str>,
    email: Option<&'static str>,
    portrait: Portrait,
    /// State of all the resident's credentials.
    pub state: PublishedState,
}

impl Resident {
    /// Returns every resident of the sandbox.
    #[must_use]
    pub const fn all() -> &'static [Self] {
        sample::RESIDENTS
    }

    /// Returns a resident whose credential has a malformed date of birth and an unknown gender.
    pub(crate) const fn malformed() -> &'static Self {
        &sample::MALFORMED
    }

    /// Finds a resident by id.
    #[must_use]
    pub fn find(id: &str) -> Option<&'static Self> {
        Self::all().iter().find(|resident| resident.id == id)
    }

    /// Returns a copy of the resident with another name, for tests that need many people.
    #[must_use]
    pub fn with_name(&self, name: String) -> Self {
        Self { name: Cow::Owned(name), ..self.clone() }
    }

    /// Returns the year in which the resident was born.
    pub(crate) const fn birth_year(&self) -> i32 {
        let (year, _, _) = self.born;
        year
    }

    /// Returns the value of a claim in a credential issued at `now`, if the resident has the claim.
    #[must_use]
    pub fn claim(&self, claim: Claim, now: Timestamp) -> Option<Value> {
        self.text(claim, now).map(Value::String)
    }

    /// Returns true if the resident has a value for a claim.
    #[must_use]
    pub fn has(&self, claim: Claim, now: Timestamp) -> bool {
        // Everybody has a photo, and encoding it would be slow.
        claim == Claim::Photo || self.text(claim, now).is_some()
    }

    /// Returns the value of a claim, which is always a text.
    fn text(&self, claim: Claim, now: Timestamp) -> Option<String> {
        let home = &self.home;
        let owned = |text: &str| Some(text.to_owned());
        match claim {
            Claim::Name => owned(&self.name),
            Claim::LocalName => self.local_name.map(str::to_owned),
            Claim::Photo => Some(self.photo()),
            Claim::Dob => match self.dob_format {
                DobFormat::FullDate => self.date_of_birth().map(format_date),
                DobFormat::YearOnly => Some(self.birth_year().to_string()),
                DobFormat::NotADate => owned("in spring"),
            },
            Claim::Gender => owned(self.gender),
            Claim::AgeAbove18 => self.age_flag(18, now),
            Claim::AgeAbove50 => self.age_flag(50, now),
            Claim::AgeAbove60 => self.age_flag(60, now),
            Claim::AgeAbove75 => self.age_flag(75, now),
            Claim::NriStatus => Some(yes_or_no(self.lives_abroad)),
            Claim::CareOf => self.care_of.map(str::to_owned),
            Claim::EnrolmentNumber => owned(self.enrolment_number),
            Claim::EnrolmentDate => NaiveDate::from_ymd_opt(2016, 4, 11).map(format_date),
            Claim::CredentialDate => date_of(now).map(format_date),
            Claim::Address => Some(self.address()),
            Claim::RegionalAddress => home.regional.map(str::to_owned),
            Claim::Building => owned(home.building),
            Claim::Locality => owned(home.locality),
            Claim::Street => owned(home.street),
            Claim::Landmark => home.landmark.map(str::to_owned),
            Claim::Vtc => owned(home.town),
            Claim::SubDistrict => owned(home.sub_district),
            Claim::District => owned(home.district),
            Claim::State => owned(home.state),
            Claim::Pincode => owned(home.pincode),
            Claim::PoName => owned(home.post_office),
            Claim::Mobile => self.mobile.map(str::to_owned),
            Claim::MaskedMobile => self.mobile.map(mask_mobile),
            Claim::Email => self.email.map(str::to_owned),
            Claim::MaskedEmail => self.email.map(mask_email),
        }
    }

    fn date_of_birth(&self) -> Option<NaiveDate> {
        let (year, month, day) = self.born;
        NaiveDate::from_ymd_opt(year, month, day)
    }

    /// Returns `Yes` if the resident has this age, else `No`.
    fn age_flag(&self, age: i32, now: Timestamp) -> Option<String> {
        let (born, today) = (self.date_of_birth()?, date_of(now)?);
        let had_birthday = (today.month(), today.day()) >= (born.month(), born.day());
        let years = today.year() - born.year() - i32::from(!had_birthday);
        Some(yes_or_no(years >= age))
    }

    /// Returns the full address in one line.
    fn address(&self) -> String {
        let home = &self.home;
        let parts = [
            Some(home.building),
            Some(home.street),
            home.landmark,
            Some(home.locality),
            Some(home.town),
            Some(home.district),
        ];
        let parts: Vec<&str> = parts.into_iter().flatten().collect();
        format!("{}, {} - {}", parts.join(", "), home.state, home.pincode)
    }

    /// Returns the photo in Base64.
    fn photo(&self) -> String {
        match self.portrait {
            Portrait::Small => STANDARD.encode(PORTRAIT),
            Portrait::Large => STANDARD.encode(pad_portrait(LARGE_PORTRAIT_BYTES)),
        }
    }
}

/// Pads the portrait to about `size` bytes with comment segments after its first marker. Any JPEG reader skips them.
fn pad_portrait(size: usize) -> Vec<u8> {
    const COMMENT_MARKER: [u8; 2] = [0xFF, 0xFE];
    /// Bytes of a segment's length, which the length includes.
    const LENGTH_BYTES: u16 = 2;
    let (first_marker, remainder) = PORTRAIT.split_at(2);
    let mut image = first_marker.to_vec();
    while image.len() + remainder.len() < size {
        let length = u16::try_from(size - image.len() - remainder.len()).unwrap_or(u16::MAX).max(LENGTH_BYTES);
        image.extend_from_slice(&COMMENT_MARKER);
        image.extend_from_slice(&length.to_be_bytes());
        image.extend((LENGTH_BYTES..length).map(|index| index.to_le_bytes()[0]));
    }
    image.extend_from_slice(remainder);
    image
}

fn date_of(time: Timestamp) -> Option<NaiveDate> {
    DateTime::from_timestamp_millis(time.millis()).map(|time| time.date_naive())
}

fn format_date(date: NaiveDate) -> String {
    date.format("%d-%m-%Y").to_string()
}

fn yes_or_no(yes: bool) -> String {
    if yes { "Yes" } else { "No" }.to_owned()
}

/// Hides all but the last four digits.
fn mask_mobile(number: &str) -> String {
    let hidden = number.len().saturating_sub(4);
    format!("{}{}", "x".repeat(hidden), number.get(hidden..).unwrap_or_default())
}

/// Hides the name before the `@`, except its first letter.
fn mask_email(address: &str) -> String {
    let (user, domain) = address.split_once('@').unwrap_or((address, ""));
    let first = user.chars().next().unwrap_or('x');
    format!("{first}{}@{domain}", "*".repeat(user.len().saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noon_of(date: &str) -> Timestamp {
        Timestamp::parse_iso8601(&format!("{date}T12:00:00Z")).unwrap()
    }

    /// Returns the value of a claim of the resident with this id.
    fn text(id: &str, claim: Claim) -> Option<String> {
        Resident::find(id)?.text(claim, noon_of("2026-03-01"))
    }

    #[test]
    fn the_residents_cover_the_cases_worth_testing() {
        assert_eq!(text("asha", Claim::Dob).unwrap(), "14-02-1990");
        assert!(text("asha", Claim::Name).unwrap().is_ascii());
        let (devanagari, tamil) = ('\u{900}'..'\u{980}', '\u{B80}'..'\u{C00}');
        assert!(text("vikram", Claim::LocalName).unwrap().chars().any(|letter| devanagari.contains(&letter)));
        assert!(text("meena", Claim::LocalName).unwrap().chars().any(|letter| tamil.contains(&letter)));
        assert_eq!(text("kabir", Claim::AgeAbove18).unwrap(), "No");
        assert_eq!(text("lata", Claim::AgeAbove75).unwrap(), "Yes");
        assert_eq!(text("rohan", Claim::NriStatus).unwrap(), "Yes");
        assert_eq!(text("kabir", Claim::Mobile), None);
        assert_eq!(text("kabir", Claim::MaskedEmail), None);
    }

    #[test]
    fn asha_and_the_large_photo_resident_have_every_claim() {
        for claim in Claim::ALL {
            assert!(text("asha", claim).is_some(), "asha lacks {}", claim.name());
            assert!(text("meena", claim).is_some(), "meena lacks {}", claim.name());
        }
    }

    #[test]
    fn the_large_photo_is_a_jpeg_of_about_300_kilobytes_in_base64() {
        let encoded = text("meena", Claim::Photo).unwrap();
        assert!((295_000..310_000).contains(&encoded.len()), "{}", encoded.len());
        let image = STANDARD.decode(encoded).unwrap();
        assert!(image.starts_with(&[0xFF, 0xD8]) && image.ends_with(&[0xFF, 0xD9]));
        // Walking the segments by their lengths must arrive at the drawing's own bytes.
        let mut position = 2;
        while image[position + 1] == 0xFE {
            position += 2 + usize::from(u16::from_be_bytes([image[position + 2], image[position + 3]]));
        }
        assert_eq!(&image[position..], &PORTRAIT[2..]);
    }

    #[test]
    fn a_resident_comes_of_age_on_the_birthday_and_not_a_day_earlier() {
        let kabir = Resident::find("kabir").unwrap();
        assert_eq!(kabir.text(Claim::AgeAbove18, noon_of("2032-08-14")).unwrap(), "No");
        assert_eq!(kabir.text(Claim::AgeAbove18, noon_of("2032-08-15")).unwrap(), "Yes");
    }

    #[test]
    fn masks_hide_all_but_the_ends() {
        assert_eq!(mask_mobile("9000000001"), "xxxxxx0001");
        assert_eq!(mask_email("asha@mail.example"), "a***@mail.example");
        assert_eq!(mask_email(""), "x@");
    }

    #[test]
    fn ids_are_unique_and_plain() {
        let mut ids: Vec<&str> = Resident::all().iter().map(|resident| resident.id).collect();
        assert!(ids.iter().all(|id| id.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')));
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), Resident::all().len());
    }
}
