//! The sandbox residents as signers and owners of documents.

use sakshi_domain::claims::Claim;
use sakshi_domain::time::Timestamp;
use serde_json::{Value, json};

use super::error::FlowError;
use crate::residents::Resident;

/// Returns the residents who are adults.
pub(super) fn adults(now: Timestamp) -> impl Iterator<Item = &'static Resident> {
    Resident::all().iter().filter(move |resident| resident.claim(Claim::AgeAbove18, now) == Some(json!("Yes")))
}

/// Finds an adult resident by id.
pub(super) fn find_adult(id: &str, now: Timestamp) -> Result<&'static Resident, FlowError> {
    adults(now).find(|resident| resident.id == id).ok_or(FlowError::UnknownResident)
}

/// Returns an adult resident for the person at an index, such as a signer: always the same for the same index.
pub(super) fn adult_at(index: usize, now: Timestamp) -> Result<&'static Resident, FlowError> {
    let adults: Vec<_> = adults(now).collect();
    index.checked_rem(adults.len()).and_then(|index| adults.get(index)).copied().ok_or(FlowError::UnknownResident)
}

/// Builds `nationalIdAuditInfo` of an eSign report.
pub(super) fn audit_info(resident: &Resident, now: Timestamp) -> Value {
    json!({
        "name": &resident.name,
        "pincode": resident.claim(Claim::Pincode, now),
        "state": resident.claim(Claim::State, now),
        "yearOfBirth": resident.birth_year().to_string(),
        "gender": resident.claim(Claim::Gender, now),
    })
}
