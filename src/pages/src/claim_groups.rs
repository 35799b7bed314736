//! The requested claims, in groups that people know from forms.

use sakshi_domain::claims::{Claim, ClaimSet};

use super::text::Texts;

/// A group of claims under its heading.
#[derive(Debug)]
pub(super) struct ClaimGroup {
    pub(super) heading: &'static str,
    pub(super) claims: Vec<&'static str>,
}

/// Groups the claims; empty groups are left out.
pub(super) fn group_claims(claims: &ClaimSet, texts: &Texts) -> Vec<ClaimGroup> {
    let group = |(index, heading): (usize, &&'static str)| {
        let claims: Vec<_> = claims.iter().filter(|claim| group_index(*claim) == index).map(texts.claim).collect();
        (!claims.is_empty()).then_some(ClaimGroup { heading, claims })
    };
    texts.groups.iter().enumerate().filter_map(group).collect()
}

/// Returns the index of a claim's group in [`Texts::groups`].
const fn group_index(claim: Claim) -> usize {
    match claim {
        Claim::Name | Claim::LocalName | Claim::Photo | Claim::Gender | Claim::CareOf => 0,
        Claim::Dob | Claim::AgeAbove18 | Claim::AgeAbove50 | Claim::AgeAbove60 | Claim::AgeAbove75 => 1,
        Claim::NriStatus
        | Claim::Address
        | Claim::RegionalAddress
        | Claim::Building
        | Claim::Locality
        | Claim::Street
        | Claim::Landmark
        | Claim::Vtc
        | Claim::SubDistrict
        | Claim::District
        | Claim::State
        | Claim::Pincode
        | Claim::PoName => 2,
        Claim::Mobile | Claim::MaskedMobile | Claim::Email | Claim::MaskedEmail => 3,
        Claim::EnrolmentNumber | Claim::EnrolmentDate | Claim::CredentialDate => 4,
    }
}

#[cfg(test)]
mod tests {
    use sakshi_domain::language::Language;

    use super::*;

    #[test]
    fn every_claim_is_in_one_group_and_empty_groups_are_left_out() {
        let texts = Texts::for_language(Language::ENGLISH);
        let count = |claims: &[Claim]| {
            let groups = group_claims(&claims.iter().copied().collect(), texts);
            (groups.len(), groups.iter().map(|group| group.claims.len()).sum::<usize>())
        };
        assert_eq!(count(&Claim::ALL), (5, Claim::ALL.len()));
        assert_eq!(count(&[Claim::Name, Claim::Photo]), (1, 2));
        let groups = group_claims(&[Claim::Mobile, Claim::Name].into_iter().collect(), texts);
        assert_eq!(groups.iter().map(|group| group.heading).collect::<Vec<_>>(), ["Who you are", "Contact"]);
    }
}
