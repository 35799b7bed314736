//! Guests of an event: registrations, doors and check-ins.

use std::sync::Arc;

use sakshi_domain::event::{DoorId, EventText, RegistrationCode};
use sakshi_domain::ids::{EventId, TxnId};
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::VerifiedClaims;

use crate::body::body;
use crate::consent::OptionalConsent;
use crate::text::Always;

body! { response
    /// A page of registered guests.
    pub struct RegistrationsPage {
        /// The id of the event.
        event_id: EventId,
        /// The number of this page, from 1.
        page: u32,
        /// Guests per page.
        page_size: u32,
        /// The number of guests on all pages.
        total: u64,
        /// The guests of this page, oldest first. The position of a guest never changes.
        registrations: Vec<RegistrationRow>,
        /// Path and query of the next page; absent on the last page.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        next: Option<String>,
    }
}

body! { response
    /// A registered guest.
    pub struct RegistrationRow {
        /// The id of the guest's transaction.
        txn_id: TxnId,
        /// The code for check-in that the guest's page shows: six characters, such as `7KMQ2X`.
        registration_code: String,
        /// The time of the verification.
        verified_at: Timestamp,
        /// The id of the transaction of an earlier guest who may be the same person, or null.
        possible_duplicate_of: Option<TxnId>,
        /// The time of the check-in at a door, or null.
        checked_in_at: Option<Timestamp>,
        /// The gate of the check-in, or null.
        gate: Option<String>,
        /// Always true.
        verification_passed: Always<true>,
        /// The claims as the issuer signed them, by their names in the credential, such as `residentName`.
        verified_claims: Arc<VerifiedClaims>,
    }
}

body! { request
    /// The door to open.
    #[derive(Clone, Default, PartialEq)]
    pub struct CreateDoorRequest {
        /// The name of the gate, 1 to 200 characters, recorded with each check-in. Default: none.
        name: Option<EventText>,
        /// The end of the link: in the future, at most 24 hours after the end of the event. Default: the end of the
        /// event.
        expires_at: Option<Timestamp>,
        /// Validated, but not stored.
        consent: OptionalConsent,
    }
}

body! { response
    /// A door of an event, without its PIN.
    #[derive(Clone)]
    pub struct DoorResponse {
        /// Identifies the door within the event.
        door_id: DoorId,
        /// The name of the gate, or null.
        name: Option<EventText>,
        /// The page for staff at the entrance. It asks for the PIN.
        door_url: String,
        /// The end of the link.
        expires_at: Timestamp,
    }
}

body! { response
    /// A door that was opened.
    #[derive(Clone)]
    pub struct CreateDoorResponse {
        /// Identifies the door within the event.
        door_id: DoorId,
        /// The name of the gate, or null.
        name: Option<EventText>,
        /// The page for staff at the entrance. It asks for the PIN.
        door_url: String,
        /// The PIN, eight digits. Send it to the staff separately from the link.
        pin: String,
        /// The end of the link.
        expires_at: Timestamp,
    }
}

body! { response
    /// The doors of an event.
    pub struct DoorsResponse {
        /// The id of the event.
        event_id: EventId,
        /// The doors whose links have not expired, oldest first.
        doors: Vec<DoorResponse>,
    }
}

body! { request
    /// The guest to check in.
    #[derive(Clone, PartialEq)]
    pub struct CheckInRequest {
        /// The `registration_code` of the guest. Case, spaces and hyphens are ignored.
        code: RegistrationCode,
        /// The name of the gate, 1 to 200 characters. Default: none.
        gate: Option<EventText>,
        /// Validated, but not stored.
        consent: OptionalConsent,
    }
}

body! { response
    /// The check-in of a guest.
    #[derive(Clone)]
    pub struct CheckInResponse {
        /// The id of the guest's transaction.
        txn_id: TxnId,
        /// The time of the check-in; of the earlier check-in if `already` is true.
        checked_in_at: Timestamp,
        /// The gate of that check-in, or null.
        gate: Option<String>,
        /// True if the guest had been checked in before. Nothing was changed then.
        already: bool,
    }
}
