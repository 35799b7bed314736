//! `GET /d/{door}/guests` and `GET /d/{door}/photo/{code}`: the guests of an event for the script of a door, for use
//! without a network, and a guest's photo.

use actix_web::http::StatusCode;
use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sakshi_authority::claims::credential_name;
use sakshi_domain::claims::Claim;
use sakshi_domain::event::RegistrationCode;
use sakshi_service::check_ins::{find_guest, for_each_guest, guests_after};
use sakshi_service::doors::OpenDoor;
use sakshi_service::{Service, ServiceError};
use sakshi_web::error::ApiError;
use sakshi_web::html::private;
use sakshi_web::query::Query;
use serde::Serialize;
use serde_json::Value;

use super::find_entered_door;

/// Guests in one response.
const GUESTS_PER_PAGE: u32 = 2_000;
/// Most guests of an event whose door gets a list. At a larger event the door requests guests one by one.
const LISTED_GUESTS_MAX: u32 = 20_000;

/// First bytes of every JPEG file. Nothing else is sent as a photo.
const JPEG_START: &[u8] = b"\xff\xd8\xff";

/// A page of guests, and the check-ins of all guests.
#[derive(Debug, Serialize)]
struct GuestList {
    /// The time in milliseconds since 1970.
    now: i64,
    /// Number of registered guests.
    registered: u32,
    /// Number of guests who are checked in.
    inside: u32,
    /// Codes and names of this page of guests.
    guests: Vec<(RegistrationCode, String)>,
    /// One bit per guest from the first, set once checked in; base64. Absent until the last guest was sent, and while
    /// the counts match the door's.
    #[serde(skip_serializing_if = "Option::is_none")]
    checked_in: Option<String>,
    /// True if the event has more than [`LISTED_GUESTS_MAX`] guests.
    many: bool,
}

/// Responds with the guests after the first `after`, and with the check-ins once the last guest is included. Sends only
/// the counts if `after` and `inside` match them.
///
/// # Errors
/// 401 without the PIN, 404 for an unknown door.
pub(crate) async fn list(
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, ApiError> {
    let open_door = find_entered_door(&service, &request, &path).await?;
    let mut query = Query::parse(request.query_string());
    let after = query.number(&["after"], 0..=u64::from(u32::MAX), 0);
    let known_inside = query.number(&["inside"], 0..=u64::from(u32::MAX), u64::from(u32::MAX));
    query.finish()?;
    let event = &*open_door.event;
    let many = event.counts.registrations > LISTED_GUESTS_MAX;
    let is_new = (after, known_inside) != (event.counts.registrations.into(), event.counts.checked_in.into());
    let (mut guests, mut checked_in) = (Vec::new(), None);
    if !many && is_new {
        let page = guests_after(&service, event, after, GUESTS_PER_PAGE).await?;
        if after + page.items.len() as u64 >= page.total {
            checked_in = Some(check_in_bits(&service, &open_door).await?);
        }
        guests = page.items.into_iter().map(|guest| (guest.code, guest.name)).collect();
    }
    let (now, counts) = (service.clock.now().millis(), event.counts);
    let (registered, inside) = (counts.registrations, counts.checked_in);
    Ok(private(StatusCode::OK).json(GuestList { now, registered, inside, guests, checked_in, many }))
}

/// Returns one bit per guest, as [`GuestList::checked_in`] describes them.
async fn check_in_bits(service: &Service, open_door: &OpenDoor) -> Result<String, ServiceError> {
    let mut bits: Vec<u8> = Vec::new();
    for_each_guest(&service.store, open_door.event.id, |guest| {
        let index = usize::try_from(guest.number - 1).unwrap_or(usize::MAX);
        if index / 8 >= bits.len() {
            bits.push(0);
        }
        if let (Some(byte), true) = (bits.get_mut(index / 8), guest.check_in.is_some()) {
            *byte |= 0x80 >> (index % 8);
        }
    })
    .await?;
    Ok(BASE64_STANDARD.encode(bits))
}

/// Responds with the photo of a guest.
///
/// # Errors
/// 401 without the PIN, 404 for an unknown door, guest or photo.
pub(crate) async fn photo(
    path: Path<(String, String)>,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, ApiError> {
    let (door, code) = path.into_inner();
    let open_door = find_entered_door(&service, &request, &door).await?;
    let no_photo = || ApiError::from(ServiceError::NotFound("photo"));
    let code = code.parse().map_err(|_| no_photo())?;
    let guest = find_guest(&service, &open_door.event, code).await?.ok_or_else(no_photo)?;
    let photo = guest.verified_claims.as_map().get(credential_name(Claim::Photo)).and_then(Value::as_str);
    let bytes = photo
        .and_then(|text| BASE64_STANDARD.decode(text).ok())
        .filter(|bytes| bytes.starts_with(JPEG_START))
        .ok_or_else(no_photo)?;
    Ok(private(StatusCode::OK)
        .content_type("image/jpeg")
        .insert_header(("x-content-type-options", "nosniff"))
        .body(bytes))
}
