//! Guests of an event: registrations, doors and check-ins.

use std::sync::Arc;

use sakshi_domain::event::{DoorId, EventText, RegistrationCode};
use sakshi_domain::ids::{EventId, TxnId};
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::VerifiedClaims;

use crate::body::body;
use crate::consent::OptionalConsent;
use crate::text::Always;

body! { answer
    /// A page of registered guests.
    pub struct RegistrationsPage {
        /// The event.
        event_id: EventId,
        /// The page, from 1.
        page: u32,
        /// Rows of a page.
        page_size: u32,
        /// Guests on all pages.
        total: u64,
        /// Oldest first. The place of a guest never changes.
        registrations: Vec<RegistrationRow>,
        /// The path of the next page; absent on the last page.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        next: Option<String>,
    }
}

body! { answer
    /// A registered guest.
    pub struct RegistrationRow {
        /// The guest's transaction.
        txn_id: TxnId,
        /// Six characters that the guest's page shows at the entrance.
        registration_code: String,
        /// The time of the verification.
        verified_at: Timestamp,
        /// The transaction of an earlier guest who may be the same person, or null.
        possible_duplicate_of: Option<TxnId>,
        /// The time of the check-in at a door, or null.
        checked_in_at: Option<Timestamp>,
        /// The gate of the check-in, or null.
        gate: Option<String>,
        /// Always true.
        verification_passed: Always<true>,
        /// The claims as signed, by their names in the credential.
        verified_claims: Arc<VerifiedClaims>,
    }
}

body! { request
    /// The door to open.
    #[derive(Clone, Default, PartialEq)]
    pub struct CreateDoorRequest {
        /// The name of the gate, 1 to 200 characters. It stands beside each check-in.
        name: Option<EventText>,
        /// The end of the link: in the future, at most 24 hours after the end of the event. Default: the end of the
        /// event.
        expires_at: Option<Timestamp>,
        /// Checked, and not kept.
        consent: OptionalConsent,
    }
}

body! { answer
    /// A door of an event, without its PIN.
    #[derive(Clone)]
    pub struct DoorResponse {
        /// Identifies the door among those of the event.
        door_id: DoorId,
        /// The name of the gate, or null.
        name: Option<EventText>,
        /// The page for the people at the entrance. It asks for the PIN.
        door_url: String,
        /// The end of the link.
        expires_at: Timestamp,
    }
}

body! { answer
    /// The opened door.
    #[derive(Clone)]
    pub struct CreateDoorResponse {
        /// Identifies the door among those of the event.
        door_id: DoorId,
        /// The name of the gate, or null.
        name: Option<EventText>,
        /// The page for the people at the entrance. It asks for the PIN.
        door_url: String,
        /// Six digits. Tell it to the people at the door in another way than the link.
        pin: String,
        /// The end of the link.
        expires_at: Timestamp,
    }
}

body! { answer
    /// The doors of an event.
    pub struct DoorsResponse {
        /// The event.
        event_id: EventId,
        /// Those whose links have not ended, oldest first.
        doors: Vec<DoorResponse>,
    }
}

body! { request
    /// The guest to check in.
    #[derive(Clone, PartialEq)]
    pub struct CheckInRequest {
        /// The `registration_code` of the guest. Case, spaces and hyphens do not count.
        code: RegistrationCode,
        /// The name of the gate, 1 to 200 characters.
        gate: Option<EventText>,
        /// Checked, and not kept.
        consent: OptionalConsent,
    }
}

body! { answer
    /// The check-in of a guest.
    #[derive(Clone)]
    pub struct CheckInResponse {
        /// The guest's transaction.
        txn_id: TxnId,
        /// The time of the check-in; of the first one, if `already` is true.
        checked_in_at: Timestamp,
        /// The gate of that check-in, or null.
        gate: Option<String>,
        /// The guest had been checked in before. Nothing was changed.
        already: bool,
    }
}
