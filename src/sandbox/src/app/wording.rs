//! Labels of claims and channels.

use sakshi_domain::claims::Claim;

/// Returns the label of a claim on the consent screen.
pub(super) const fn claim_label(claim: Claim) -> &'static str {
    match claim {
        Claim::Name => "Full name",
        Claim::LocalName => "Name in the local language",
        Claim::Photo => "Photograph",
        Claim::Dob => "Date of birth",
        Claim::Gender => "Gender",
        Claim::AgeAbove18 => "Whether you are 18 or older",
        Claim::AgeAbove50 => "Whether you are 50 or older",
        Claim::AgeAbove60 => "Whether you are 60 or older",
        Claim::AgeAbove75 => "Whether you are 75 or older",
        Claim::NriStatus => "Whether you live abroad",
        Claim::CareOf => "Care of (parent, spouse or guardian)",
        Claim::EnrolmentNumber => "Enrolment number",
        Claim::EnrolmentDate => "Enrolment date",
        Claim::CredentialDate => "Date of this credential",
        Claim::Address => "Full address",
        Claim::RegionalAddress => "Address in the local language",
        Claim::Building => "House or building",
        Claim::Locality => "Locality",
        Claim::Street => "Street",
        Claim::Landmark => "Landmark",
        Claim::Vtc => "Village, town or city",
        Claim::SubDistrict => "Sub-district",
        Claim::District => "District",
        Claim::State => "State",
        Claim::Pincode => "PIN code",
        Claim::PoName => "Post office",
        Claim::Mobile => "Mobile number",
        Claim::MaskedMobile => "Last digits of the mobile number",
        Claim::Email => "E-mail address",
        Claim::MaskedEmail => "E-mail address, partly hidden",
    }
}

/// Describes the channel through which the user came.
pub(super) fn channel_label(channel: &str) -> &'static str {
    match channel {
        "web" => "a web page on this phone",
        "qr" => "a QR code",
        "app" => "another app on this phone",
        _ => "an unknown channel",
    }
}
