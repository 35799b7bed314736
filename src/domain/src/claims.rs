//! The thirty claims that a client may request, and sets of them (specification, "OVSE claims").
//!
//! A set is four bytes, because each of a million live transactions holds one. The names of claims inside
//! a credential are in the authority crate.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::invalid::Invalid;
use crate::limits::CLAIMS_MAX;

/// Declares [`Claim`] with the name of each variant in the API.
macro_rules! claims {
    ($($variant:ident $name:literal),+ $(,)?) => {
        /// A claim about the person.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs)]
        #[repr(u8)]
        pub enum Claim { $($variant),+ }

        impl Claim {
            /// Every claim, in the specification's order.
            pub const ALL: [Self; CLAIMS_MAX] = [$(Self::$variant),+];

            /// Returns the name of the claim in the API.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// Returns the claim with this exact name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

claims! {
    Name "name", LocalName "local_name", Photo "photo", Dob "dob", Gender "gender",
    AgeAbove18 "age_above_18", AgeAbove50 "age_above_50", AgeAbove60 "age_above_60", AgeAbove75 "age_above_75",
    NriStatus "nri_status", CareOf "care_of", EnrolmentNumber "enrolment_number", EnrolmentDate "enrolment_date",
    CredentialDate "credential_date",
    Address "address", RegionalAddress "regional_address", Building "building", Locality "locality", Street "street",
    Landmark "landmark", Vtc "vtc", SubDistrict "sub_district", District "district", State "state", Pincode "pincode",
    PoName "po_name",
    Mobile "mobile", MaskedMobile "masked_mobile", Email "email", MaskedEmail "masked_email",
}

/// A set of claims.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClaimSet(u32);

impl ClaimSet {
    /// Reads the `claims` array of a request.
    ///
    /// # Errors
    /// [`Invalid`] with every unknown or repeated name by its index, or for an array that is empty or too long.
    pub fn parse<S: AsRef<str>>(names: &[S]) -> Result<Self, Invalid> {
        let mut invalid = Invalid::none();
        if names.is_empty() || names.len() > CLAIMS_MAX {
            return Err(Invalid::one("claims", format!("must name 1 to {CLAIMS_MAX} claims")));
        }
        let mut set = Self::default();
        for (index, name) in names.iter().enumerate() {
            match Claim::from_name(name.as_ref()) {
                None => invalid.add(
                    format!("claims[{index}]"),
                    format!("is not a known claim; the claims are {}", Self::accepted_names()),
                ),
                Some(claim) if set.contains(claim) => invalid.add(format!("claims[{index}]"), "is named twice"),
                Some(claim) => set.insert(claim),
            }
        }
        invalid.or_ok().map(|()| set)
    }

    /// Adds a claim.
    pub const fn insert(&mut self, claim: Claim) {
        self.0 |= 1 << claim as u32;
    }

    /// Returns true if the claim is in the set.
    #[must_use]
    pub const fn contains(self, claim: Claim) -> bool {
        self.0 & (1 << claim as u32) != 0
    }

    /// Returns true if the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the claims in the specification's order.
    pub fn iter(self) -> impl Iterator<Item = Claim> {
        Claim::ALL.into_iter().filter(move |claim| self.contains(*claim))
    }

    /// Returns the set as a bit mask, for storage; bit N stands for `Claim::ALL[N]`.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Reads a set from its bit mask; unknown bits are ignored.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits & ((1 << CLAIMS_MAX) - 1))
    }

    fn accepted_names() -> String {
        Claim::ALL.map(Claim::name).join(", ")
    }
}

impl FromIterator<Claim> for ClaimSet {
    fn from_iter<I: IntoIterator<Item = Claim>>(claims: I) -> Self {
        let mut set = Self::default();
        claims.into_iter().for_each(|claim| set.insert(claim));
        set
    }
}

impl Serialize for ClaimSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(Claim::name))
    }
}

impl<'de> Deserialize<'de> for ClaimSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let names = Vec::<String>::deserialize(deserializer)?;
        Self::parse(&names).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_thirty_claims_of_the_specification_are_known() {
        let specification = "name local_name photo dob gender age_above_18 age_above_50 age_above_60 age_above_75 \
            nri_status care_of enrolment_number enrolment_date credential_date address regional_address building \
            locality street landmark vtc sub_district district state pincode po_name mobile masked_mobile email \
            masked_email";
        let names: Vec<&str> = specification.split_whitespace().collect();
        assert_eq!(names, Claim::ALL.map(Claim::name));
        assert_eq!(ClaimSet::parse(&names).unwrap().iter().count(), 30);
    }

    #[test]
    fn every_bad_claim_is_reported_by_its_index() {
        let refused = ClaimSet::parse(&["name", "Name", "uid", "name"]).unwrap_err();
        let fields: Vec<&str> = refused.fields().iter().map(|problem| problem.field.as_str()).collect();
        assert_eq!(fields, ["claims[1]", "claims[2]", "claims[3]"]);
        assert!(refused.fields()[0].message.ends_with("email, masked_email"), "the message lists the accepted names");
        assert!(ClaimSet::parse::<&str>(&[]).is_err());
    }

    #[test]
    fn a_set_survives_its_bit_mask() {
        let set: ClaimSet = [Claim::Name, Claim::MaskedEmail].into_iter().collect();
        assert_eq!(ClaimSet::from_bits(set.bits()), set);
        assert_eq!(ClaimSet::from_bits(u32::MAX).iter().count(), 30);
    }
}
