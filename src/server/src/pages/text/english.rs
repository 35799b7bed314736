//! The words in English.

use sakshi_domain::claims::Claim;

use super::{Reasons, Texts};

pub(super) static TEXTS: Texts = Texts {
    tag: "en",
    direction: "ltr",
    brand: "Identity check",
    sandbox_badge: "Sandbox",
    reference: "Reference",

    waiting_heading: "Confirm who you are",
    requested_by: "Requested by",
    lead_phone: "Open the identity app on this phone. It shows this request again, and you decide there.",
    lead_scan: "Scan the code with your phone’s camera or with the identity app, and decide on your phone.",
    face_scan: "The app scans your face to make sure that it is you.",
    open_app: "Open the identity app",
    app_did_not_open: "The app did not open?",
    help_heading: "If the identity app did not open",
    help: "It may not be installed on this phone. Install it from your phone’s app store, set it up, then come back to this \
           page and try again before the time is over.",
    qr_label: "QR code that opens this page on a phone",
    app_code: "Code for the scanner inside the identity app",
    app_code_words: "Use this one only if the scanner inside the identity app does not take the code above.",
    app_code_label: "QR code for the scanner inside the identity app",
    same_device: "Is the identity app on this device?",
    open_on_android: "Open it on this Android device",
    open_on_ios: "Open it on this iPhone or iPad",
    sandbox_words: "This is a test system without real data. Its built-in app lets you play the resident.",
    open_sandbox: "Open the sandbox identity app",
    waiting: "Waiting for your answer",
    time_left: "Time left",
    valid_until: "until",
    reconnecting: "The connection is interrupted. Trying again…",
    claims_heading: "You are asked to share",
    promise: "Nothing is shared unless you agree in the identity app.",

    verified_heading: "You are verified",
    verified: "Your identity was confirmed. The service that asked can now see what you agreed to share.",
    not_verified_heading: "You were not verified",
    start_again: "Nothing was passed on to the service that asked. To try again, go back there and start over.",
    expired_heading: "This request has expired",
    expired: "It could be answered for a short time only, which is over. Nothing was passed on. Go back to the service that asked you and \
              start over.",
    unknown_heading: "This link does not work",
    unknown: "It may be incomplete, or the request is no longer kept. Check the link, or go back to the service that asked you and \
              start over.",
    busy_heading: "One moment, please",
    busy: "The service is busy right now. This page tries again by itself.",
    try_again: "Try again now",
    close_page: "You can close this page.",
    continue_to: "Continue to {host}",
    taken_there: "You are taken there in a moment.",

    reasons: Reasons {
        declined: "You declined the request in the identity app.",
        not_live: "The face scan could not confirm that a live person was in front of the camera.",
        aborted: "The check was stopped in the identity app before it was finished.",
        face_mismatch: "The face scan did not match the photo of your identity record.",
        biometric_lock: "Your biometrics are locked. Unlock them in the identity app before you try again.",
        face_service_down: "The face scan is not available at the moment.",
        connection: "The identity app could not reach its service.",
        claims_missing: "Not everything that was asked for was shared.",
        other: "The identity app could not complete the check.",
    },
    claim,
};

const fn claim(claim: Claim) -> &'static str {
    match claim {
        Claim::Name => "Full name",
        Claim::LocalName => "Name in your regional language",
        Claim::Photo => "Photo",
        Claim::Dob => "Date of birth",
        Claim::Gender => "Gender",
        Claim::AgeAbove18 => "Whether you are over 18",
        Claim::AgeAbove50 => "Whether you are over 50",
        Claim::AgeAbove60 => "Whether you are over 60",
        Claim::AgeAbove75 => "Whether you are over 75",
        Claim::NriStatus => "Whether you live abroad",
        Claim::CareOf => "Care of (parent, spouse or guardian)",
        Claim::EnrolmentNumber => "Enrolment number",
        Claim::EnrolmentDate => "Date of enrolment",
        Claim::CredentialDate => "Date of your credential",
        Claim::Address => "Full address",
        Claim::RegionalAddress => "Address in your regional language",
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
        Claim::MaskedMobile => "Mobile number, partly hidden",
        Claim::Email => "Email address",
        Claim::MaskedEmail => "Email address, partly hidden",
    }
}
