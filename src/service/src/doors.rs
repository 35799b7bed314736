//! Doors of an event: pages for the people at an entrance, each with a link, a PIN and an end.

use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use sakshi_authority::capability::Purpose;
use sakshi_domain::event::{Door, DoorChange, DoorId, Event, EventPatch, Pin};
use sakshi_domain::ids::{AppId, EVENT_ID_CHARS, EventId};
use sakshi_domain::invalid::Invalid;
use sakshi_domain::limits::{DOOR_AFTER_END_MAX, DOOR_GRACE, DOORS_MAX};
use sakshi_domain::time::Timestamp;
use sakshi_store::PatchEventOutcome;
use sakshi_wire::guests::{CreateDoorRequest, CreateDoorResponse, DoorResponse, DoorsResponse};

use crate::error::ServiceError;
use crate::events::own_event;
use crate::service::Service;

/// The error for a door beyond [`DOORS_MAX`].
const TOO_MANY: ServiceError = ServiceError::Conflict {
    code: "limit_reached",
    message: "An event has at most 50 doors. Close one that is not used first.",
};
const _: () = assert!(DOORS_MAX == 50);

/// A door that was found by its path.
#[derive(Clone, Debug)]
pub struct OpenDoor {
    /// The event of the door.
    pub event: Arc<Event>,
    /// The door.
    pub door: Door,
}

/// Opens a door of an event of this app.
///
/// # Errors
/// [`ServiceError::Invalid`] if the end is not acceptable; [`ServiceError::Conflict`] if the event has too many doors;
/// [`ServiceError::NotFound`] unless the app has such an event.
pub async fn open_door(
    service: &Service,
    app: &AppId,
    id: &str,
    request: CreateDoorRequest,
) -> Result<CreateDoorResponse, ServiceError> {
    let event = own_event(service, app, id).await?;
    check_end(&event, request.expires_at, service.clock.now())?;
    let door =
        Door { id: DoorId::generate(), pin: Pin::generate(), name: request.name, expires_at: request.expires_at };
    change_doors(service, &event, DoorChange::Open(door.clone())).await?;
    let (door_url, pin) = (door_url(service, event.id, &door.id), door.pin.as_str().to_owned());
    let expires_at = door.end(event.terms.expires_at);
    Ok(CreateDoorResponse { door_id: door.id, name: door.name, door_url, pin, expires_at })
}

/// Lists the doors of an event of this app whose links have not ended.
///
/// # Errors
/// [`ServiceError::NotFound`] unless the app has such an event.
pub async fn list_doors(service: &Service, app: &AppId, id: &str) -> Result<DoorsResponse, ServiceError> {
    let event = own_event(service, app, id).await?;
    let response = |door: Door| DoorResponse {
        door_url: door_url(service, event.id, &door.id),
        expires_at: door.end(event.terms.expires_at),
        door_id: door.id,
        name: door.name,
    };
    Ok(DoorsResponse {
        event_id: event.id,
        doors: open_doors(&event, service.clock.now()).cloned().map(response).collect(),
    })
}

/// Closes a door of an event of this app. The page of the door ends at once, and later scans are refused.
///
/// # Errors
/// [`ServiceError::NotFound`] unless the app has such an event with such a door.
pub async fn close_door(service: &Service, app: &AppId, id: &str, door: &str) -> Result<(), ServiceError> {
    let event = own_event(service, app, id).await?;
    let Some(door) = event.terms.doors.iter().find(|known| known.id.as_str() == door) else {
        // The event may be older than the door, if this node still reaches a replaced Redis primary.
        service.store.confirm_absence().await?;
        return Err(ServiceError::NotFound("door"));
    };
    change_doors(service, &event, DoorChange::Close(door.id.clone())).await
}

/// Returns the doors of an event whose links have not ended.
pub fn open_doors(event: &Event, now: Timestamp) -> impl Iterator<Item = &Door> {
    event.terms.doors.iter().filter(move |door| now < door.end(event.terms.expires_at))
}

/// Builds the URL of a door's page.
#[must_use]
pub fn door_url(service: &Service, event: EventId, door: &DoorId) -> String {
    format!("{}{}", service.authority.public_base, door_path(event, door))
}

/// Builds the path of a door's page.
#[must_use]
pub fn door_path(event: EventId, door: &DoorId) -> String {
    format!("/d/{event}{}", door.as_str())
}

/// Finds the door with this path, unless its link has ended.
///
/// # Errors
/// [`ServiceError::NotFound`] if there is no such door; any error of the store.
pub async fn find_door(service: &Service, path: &str) -> Result<OpenDoor, ServiceError> {
    door_open_at(service, path, service.clock.now()).await
}

/// Finds the door with this path. Also finds a door whose link ended less than [`DOOR_GRACE`] ago, for its late scans.
///
/// # Errors
/// As [`find_door`].
pub async fn find_late_door(service: &Service, path: &str) -> Result<OpenDoor, ServiceError> {
    door_open_at(service, path, service.clock.now() - DOOR_GRACE).await
}

/// Finds the door with this path, if its link has not ended at a time.
async fn door_open_at(service: &Service, path: &str, at: Timestamp) -> Result<OpenDoor, ServiceError> {
    let not_found = || ServiceError::NotFound("door");
    let (event, door) = path.split_at_checked(EVENT_ID_CHARS).ok_or_else(not_found)?;
    let event: EventId = event.parse().map_err(|_| not_found())?;
    let event = service.events.get(event).await?.ok_or_else(not_found)?;
    let door = open_doors(&event, at).find(|known| is_same(known.id.as_str(), door)).cloned().ok_or_else(not_found)?;
    Ok(OpenDoor { event, door })
}

impl OpenDoor {
    /// Returns the end of the door's link.
    #[must_use]
    pub fn end(&self) -> Timestamp {
        self.door.end(self.event.terms.expires_at)
    }

    /// Returns true if this is the PIN of the door.
    #[must_use]
    pub fn has_pin(&self, pin: &str) -> bool {
        is_same(self.door.pin.as_str(), pin)
    }

    /// Makes the cookie value for a visitor who entered the PIN.
    #[must_use]
    pub fn make_session(&self, service: &Service) -> String {
        service.authority.callbacks.capabilities().make(Purpose::Door, &self.session_bytes())
    }

    /// Returns true for a cookie value that [`OpenDoor::make_session`] has made.
    #[must_use]
    pub fn is_session(&self, service: &Service, value: &str) -> bool {
        service.authority.callbacks.capabilities().is_genuine(Purpose::Door, &self.session_bytes(), value)
    }

    /// Returns the bytes from which a session of the door is made. A new PIN ends the sessions.
    fn session_bytes(&self) -> Vec<u8> {
        [self.event.id.as_bytes(), self.door.id.as_str().as_bytes(), self.door.pin.as_str().as_bytes()].concat()
    }
}

/// Compares two secrets in constant time.
fn is_same(known: &str, candidate: &str) -> bool {
    verify_slices_are_equal(known.as_bytes(), candidate.as_bytes()).is_ok()
}

/// Checks the end of a door's link.
fn check_end(event: &Event, expires_at: Option<Timestamp>, now: Timestamp) -> Result<(), Invalid> {
    let end = expires_at.unwrap_or(event.terms.expires_at);
    if end <= now {
        let problem =
            if expires_at.is_some() { "must be in the future" } else { "is required, because the event has ended" };
        return Err(Invalid::one("expires_at", problem));
    }
    if end > event.terms.expires_at.max(now) + DOOR_AFTER_END_MAX {
        return Err(Invalid::one("expires_at", "must be at most 24 hours after the end of the event"));
    }
    Ok(())
}

/// Opens or closes a door of an event.
async fn change_doors(service: &Service, event: &Event, change: DoorChange) -> Result<(), ServiceError> {
    let patch = EventPatch { door: Some(change), ..EventPatch::default() };
    match service.events.patch(event.id, event.app.clone(), patch).await? {
        PatchEventOutcome::Patched(_) => Ok(()),
        PatchEventOutcome::Refused(_) => Err(TOO_MANY),
        PatchEventOutcome::PreconditionFailed | PatchEventOutcome::NotFound => Err(ServiceError::NotFound("event")),
    }
}
