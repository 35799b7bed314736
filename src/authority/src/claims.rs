//! The authority's forty claims: their bits in the scope bitmap and their names in credentials.
//!
//! Ten claims, the `local…` parts of an address, have no name in the API, so they are never requested or
//! stored. Id numbers are not in the table, so they are never stored either.

use sakshi_domain::claims::{Claim, ClaimSet};
use sakshi_domain::limits::CLAIMS_MAX;
use sakshi_domain::transaction::VerifiedClaims;

/// The number of the authority's claims.
const ROWS: usize = 40;

/// The name of each claim in credentials, and the claim of the API if there is one. Row N belongs to bit N + 1.
const TABLE: [(&str, Option<Claim>); ROWS] = [
    ("credentialIssuingDate", Some(Claim::CredentialDate)),
    ("enrolmentDate", Some(Claim::EnrolmentDate)),
    ("enrolmentNumber", Some(Claim::EnrolmentNumber)),
    ("isNRI", Some(Claim::NriStatus)),
    ("residentImage", Some(Claim::Photo)),
    ("residentName", Some(Claim::Name)),
    ("localResidentName", Some(Claim::LocalName)),
    ("ageAbove18", Some(Claim::AgeAbove18)),
    ("ageAbove50", Some(Claim::AgeAbove50)),
    ("ageAbove60", Some(Claim::AgeAbove60)),
    ("ageAbove75", Some(Claim::AgeAbove75)),
    ("dob", Some(Claim::Dob)),
    ("gender", Some(Claim::Gender)),
    ("careOf", Some(Claim::CareOf)),
    ("localCareOf", None),
    ("building", Some(Claim::Building)),
    ("localBuilding", None),
    ("locality", Some(Claim::Locality)),
    ("localLocality", None),
    ("street", Some(Claim::Street)),
    ("localStreet", None),
    ("landmark", Some(Claim::Landmark)),
    ("localLandmark", None),
    ("vtc", Some(Claim::Vtc)),
    ("localVtc", None),
    ("subDistrict", Some(Claim::SubDistrict)),
    ("localSubDistrict", None),
    ("district", Some(Claim::District)),
    ("localDistrict", None),
    ("state", Some(Claim::State)),
    ("localState", None),
    ("poName", Some(Claim::PoName)),
    ("localPoName", None),
    ("pincode", Some(Claim::Pincode)),
    ("address", Some(Claim::Address)),
    ("regionalAddress", Some(Claim::RegionalAddress)),
    ("mobile", Some(Claim::Mobile)),
    ("maskedMobile", Some(Claim::MaskedMobile)),
    ("email", Some(Claim::Email)),
    ("maskedEmail", Some(Claim::MaskedEmail)),
];

/// Returns the person's name from verified claims, if it was shared.
#[must_use]
pub fn shared_name(claims: &VerifiedClaims) -> Option<String> {
    claims.as_map().get(credential_name(Claim::Name))?.as_str().map(str::to_owned)
}

/// The row of each claim of the API in the table.
const ROW_OF: [usize; CLAIMS_MAX] = {
    let mut rows = [usize::MAX; CLAIMS_MAX];
    let mut row = 0;
    while row < ROWS {
        if let Some(claim) = TABLE[row].1 {
            assert!(rows[claim as usize] == usize::MAX, "a claim has two rows");
            rows[claim as usize] = row;
        }
        row += 1;
    }
    let mut claim = 0;
    while claim < CLAIMS_MAX {
        assert!(rows[claim] != usize::MAX, "a claim has no row");
        claim += 1;
    }
    rows
};

/// Returns the name of the claim inside a credential, which is also its key in `verifiedClaims`.
#[must_use]
pub const fn credential_name(claim: Claim) -> &'static str {
    TABLE[ROW_OF[claim as usize]].0
}

/// Returns the claim with this name in credentials. The case of the first letter is ignored.
pub(crate) fn from_credential_name(name: &str) -> Option<Claim> {
    find_row(name).and_then(|(_, claim)| claim)
}

/// Returns true for the name of any of the authority's claims, also of those that have no name in the API.
pub(crate) fn is_credential_name(name: &str) -> bool {
    find_row(name).is_some()
}

/// Returns the row of the claim with this name in credentials. The case of the first letter is ignored.
fn find_row(name: &str) -> Option<(&'static str, Option<Claim>)> {
    let (first, rest) = name.as_bytes().split_first()?;
    let matches = |known: &str| {
        let known = known.as_bytes().split_first();
        known.is_some_and(|(known_first, known_rest)| known_first.eq_ignore_ascii_case(first) && known_rest == rest)
    };
    TABLE.iter().find(|(known, _)| matches(known)).copied()
}

/// Builds the scope bitmap: a `0` or `1` for each bit, bit 1 first, padded on the right to `length` characters. It is
/// never shorter than the table.
#[must_use]
pub fn scope_bitmap(claims: ClaimSet, length: usize) -> String {
    let mut bitmap = vec![b'0'; length.max(ROWS)];
    for claim in claims.iter() {
        bitmap[ROW_OF[claim as usize]] = b'1';
    }
    // The bitmap is always valid UTF-8.
    String::from_utf8(bitmap).unwrap_or_default()
}

/// Returns the claims that a scope bitmap requests. Bits without a claim of the API are ignored.
#[must_use]
pub fn parse_scope(bitmap: &str) -> ClaimSet {
    let requested = bitmap.bytes().zip(&TABLE).filter(|(bit, _)| *bit == b'1');
    requested.filter_map(|(_, (_, claim))| *claim).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bitmap_of_name_dob_and_gender_is_that_of_the_protocol() {
        let claims: ClaimSet = [Claim::Name, Claim::Dob, Claim::Gender].into_iter().collect();
        assert_eq!(scope_bitmap(claims, 64), format!("0000010000011000{}", "0".repeat(48)));
    }

    #[test]
    fn a_bitmap_has_the_configured_length_but_never_loses_a_claim() {
        let all: ClaimSet = Claim::ALL.into_iter().collect();
        assert_eq!(scope_bitmap(all, 64).len(), 64);
        assert_eq!(scope_bitmap(all, 100).len(), 100);
        assert_eq!(parse_scope(&scope_bitmap(all, 0)), all);
    }

    #[test]
    fn every_claim_survives_its_bitmap_and_its_credential_name() {
        for claim in Claim::ALL {
            let bitmap = scope_bitmap([claim].into_iter().collect(), 64);
            assert_eq!(parse_scope(&bitmap).iter().collect::<Vec<_>>(), [claim]);
            assert_eq!(from_credential_name(credential_name(claim)), Some(claim));
        }
    }

    #[test]
    fn the_bits_are_those_of_the_protocol() {
        let bits = [
            (Claim::CredentialDate, 1),
            (Claim::NriStatus, 4),
            (Claim::Photo, 5),
            (Claim::AgeAbove18, 8),
            (Claim::Building, 16),
            (Claim::PoName, 32),
            (Claim::Pincode, 34),
            (Claim::Address, 35),
            (Claim::MaskedEmail, 40),
        ];
        for (claim, bit) in bits {
            assert_eq!(scope_bitmap([claim].into_iter().collect(), 64).find('1'), Some(bit - 1), "{claim:?}");
        }
    }

    #[test]
    fn local_parts_id_numbers_and_other_spellings_are_not_claims() {
        assert_eq!(from_credential_name("ResidentName"), Some(Claim::Name));
        assert_eq!(from_credential_name("IsNRI"), Some(Claim::NriStatus));
        for name in
            ["residentname", "isNri", "localStreet", "LocalVtc", "uid", "UID", "vid", "maskedUID", "MaskedUid", "", "é"]
        {
            assert_eq!(from_credential_name(name), None, "{name}");
        }
        assert!(is_credential_name("localStreet") && is_credential_name("LocalVtc") && is_credential_name("IsNRI"));
        assert!(!is_credential_name("uid") && !is_credential_name("residentname") && !is_credential_name(""));
    }

    #[test]
    fn any_text_is_accepted_as_a_scope() {
        assert!(parse_scope("").is_empty());
        assert!(parse_scope(&"0".repeat(10_000)).is_empty());
        assert_eq!(parse_scope(&"1".repeat(10_000)), Claim::ALL.into_iter().collect());
        assert!(parse_scope("xyz\u{1F600}").is_empty());
    }
}
