//! Check-ins of guests at a door, by the code on their page or by name.
//!
//! The page of a guest shows a code with a proof that changes every 30 seconds, so that a screenshot is detected. An
//! offline door sends its scans later, with their times.

use std::sync::Arc;

use sakshi_authority::capability::Purpose;
use sakshi_domain::event::{CheckIn, CheckInId, Event, EventSecret, EventText, RegistrationCode};
use sakshi_domain::ids::{AppId, EventId, TxnId};
use sakshi_domain::time::Timestamp;
use sakshi_store::{CheckInOutcome, Guest, Rows, Store, Vault};
use sakshi_wire::guests::{CheckInRequest, CheckInResponse, RegistrationRow};

use crate::authority::AuthorityContext;
use crate::budget::OwnerPath;
use crate::error::ServiceError;
use crate::events::own_event;
use crate::guest_list::open_registration;
use crate::registration_codes::{code_of, number_of};
use crate::service::Service;

/// Milliseconds for which the page of a guest shows one proof.
pub const PROOF_SHOWN_MS: i64 = 30_000;
/// Period of the key of a ticket page, which does not change.
const NO_PERIOD: i64 = 0;
/// Prefix of the path in a ticket's code; the registration code, a full stop and the proof follow.
pub const TICKETS: &str = "/d/t/";
/// Number of guests read at a time; their names are small.
const GUESTS_PER_READ: u32 = 1_000;

/// A guest in the list of a door.
#[derive(Clone, Debug)]
pub struct ListedGuest {
    /// The number among the guests of the event, from 1.
    pub number: u64,
    /// The guest's transaction.
    pub txn: TxnId,
    /// The code.
    pub code: RegistrationCode,
    /// The name; empty if none was shared.
    pub name: String,
    /// The time of registration.
    pub verified_at: Timestamp,
    /// The check-in, if there was one.
    pub check_in: Option<CheckIn>,
    /// The transaction of an earlier guest who may be the same person.
    pub duplicate_of: Option<TxnId>,
}

/// Part of an event's guests.
#[derive(Clone, Debug)]
pub struct Guests {
    /// The guests of this part.
    pub items: Vec<ListedGuest>,
    /// Number of all guests of the event.
    pub total: u64,
}

impl AuthorityContext {
    /// Builds the address in the code of a guest's ticket at `now`. A phone at the door opens it.
    #[must_use]
    pub fn ticket_url(&self, event: EventId, code: RegistrationCode, now: Timestamp) -> String {
        format!("{}{TICKETS}{code}.{}", self.public_base, self.ticket_proof(event, code, now))
    }

    /// Makes the key with which a guest's page requests its current code.
    #[must_use]
    pub fn ticket_key(&self, event: EventId, code: RegistrationCode) -> String {
        self.callbacks.capabilities().make(Purpose::TicketPage, &ticket(event, code, NO_PERIOD))
    }

    /// Returns true for a key that [`Self::ticket_key`] has made.
    #[must_use]
    pub fn is_ticket_key(&self, event: EventId, code: RegistrationCode, key: &str) -> bool {
        self.callbacks.capabilities().is_genuine(Purpose::TicketPage, &ticket(event, code, NO_PERIOD), key)
    }

    /// Makes the proof in the ticket page of a guest at `now`.
    #[must_use]
    pub fn ticket_proof(&self, event: EventId, code: RegistrationCode, now: Timestamp) -> String {
        self.callbacks.capabilities().make(Purpose::Ticket, &ticket(event, code, proof_period(now)))
    }

    /// Returns true if the ticket page of the guest showed the proof at `scanned_at`, or one period before or after.
    #[must_use]
    pub fn was_proof_shown(&self, event: EventId, code: RegistrationCode, proof: &str, scanned_at: Timestamp) -> bool {
        let matches =
            |period| self.callbacks.capabilities().is_genuine(Purpose::Ticket, &ticket(event, code, period), proof);
        let period = proof_period(scanned_at);
        [period, period - 1, period + 1].into_iter().any(matches)
    }
}

/// Returns the number of the period in which one proof is shown.
const fn proof_period(at: Timestamp) -> i64 {
    at.millis().div_euclid(PROOF_SHOWN_MS)
}

/// Returns the bytes from which the capabilities of a ticket are made.
fn ticket(event: EventId, code: RegistrationCode, period: i64) -> Vec<u8> {
    [&event.as_bytes()[..], &code.value().to_be_bytes(), &period.to_be_bytes()].concat()
}

/// The outcome of a check-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckInResult {
    /// This request has checked in the guest.
    New,
    /// An earlier delivery of this request has checked in the guest.
    Repeated,
    /// Another request has checked in the guest before.
    AlreadyCheckedIn,
}

/// Checks in the guest with this code. Returns the guest with the check-in.
///
/// # Errors
/// [`ServiceError::NotFound`] if the event has no such guest; any error of the store.
pub async fn check_in(
    service: &Service,
    event: &Event,
    code: RegistrationCode,
    gate: Option<&EventText>,
    (id, at): (CheckInId, Timestamp),
) -> Result<(ListedGuest, CheckInResult), ServiceError> {
    let check_in = CheckIn { id, at, gate: gate.map(|gate| gate.as_str().to_owned()).unwrap_or_default() };
    let (guest, result) =
        match service.events.check_in(event.id, number_of(&event.terms.secret, code), check_in).await? {
            CheckInOutcome::CheckedIn(guest) => (guest, CheckInResult::New),
            CheckInOutcome::Repeated(guest) => (guest, CheckInResult::Repeated),
            CheckInOutcome::AlreadyCheckedIn(guest) => (guest, CheckInResult::AlreadyCheckedIn),
            CheckInOutcome::NotFound => return Err(ServiceError::NotFound("guest")),
        };
    if result == CheckInResult::New {
        tracing::info!(event.id = %event.id, txn.id = %guest.txn, "guest checked in");
    }
    let already = if result == CheckInResult::New { "false" } else { "true" };
    metrics::counter!("sakshi_check_ins_total", "already" => already).increment(1);
    Ok((to_listed(&service.vault, &event.terms.secret, guest)?, result))
}

/// Runs [`check_in`] for an event of this app, and builds the API response.
///
/// # Errors
/// As [`check_in`].
pub async fn check_in_response(
    service: &Service,
    app: &AppId,
    id: &str,
    request: CheckInRequest,
) -> Result<CheckInResponse, ServiceError> {
    let event = own_event(service, app, id).await?;
    let id_and_time = (CheckInId::generate(), service.clock.now());
    let (guest, result) = check_in(service, &event, request.code, request.gate.as_ref(), id_and_time).await?;
    let check_in = guest.check_in.ok_or_else(|| ServiceError::internal("a guest who was checked in is not"))?;
    Ok(CheckInResponse {
        txn_id: guest.txn,
        checked_in_at: check_in.at,
        gate: named_gate(check_in),
        already: result == CheckInResult::AlreadyCheckedIn,
    })
}

/// Returns the name of a check-in's gate, if there is one.
pub(crate) fn named_gate(check_in: CheckIn) -> Option<String> {
    Some(check_in.gate).filter(|gate| !gate.is_empty())
}

/// Finds a guest by code, with the shared details.
///
/// # Errors
/// Any error of the store; [`ServiceError::Internal`] when the registration cannot be decrypted.
pub async fn find_guest(
    service: &Service,
    event: &Event,
    code: RegistrationCode,
) -> Result<Option<RegistrationRow>, ServiceError> {
    let number = number_of(&event.terms.secret, code);
    let stored = service.store.load_registration(event.id, number).await?;
    stored.map(|registration| open_registration(&service.vault, &event.terms.secret, registration)).transpose()
}

/// Finds a guest by code, as in the list.
///
/// # Errors
/// As [`guests_after`].
pub async fn find_listed_guest(
    service: &Service,
    event: &Event,
    code: RegistrationCode,
) -> Result<Option<ListedGuest>, ServiceError> {
    let number = number_of(&event.terms.secret, code);
    let guests = guests_after(service, event, number.saturating_sub(1), 1).await?.items;
    Ok(guests.into_iter().find(|guest| guest.number == number))
}

/// Returns at most `limit` guests after the first `after` guests.
///
/// # Errors
/// Any error of the store; [`ServiceError::Internal`] when a name cannot be decrypted.
pub async fn guests_after(service: &Service, event: &Event, after: u64, limit: u32) -> Result<Guests, ServiceError> {
    let rows = Rows { offset: after, limit, max_bytes: usize::MAX };
    let page = service.store.list_guests(event.id, rows).await?;
    let to_listed = |guest| to_listed(&service.vault, &event.terms.secret, guest);
    Ok(Guests { items: page.items.into_iter().map(to_listed).collect::<Result<_, _>>()?, total: page.total })
}

/// Finds the newest guests, at most `limit`, whose names have parts that begin with the words. If the words are a code,
/// finds the guest with the code.
///
/// # Errors
/// As [`guests_after`].
pub async fn search_guests(
    service: &Service,
    event: &Event,
    words: &str,
    limit: usize,
) -> Result<Vec<ListedGuest>, ServiceError> {
    if let Ok(code) = words.parse()
        && let Some(guest) = find_listed_guest(service, event, code).await?
    {
        return Ok(vec![guest]);
    }
    let words: Arc<[String]> = words.split_whitespace().map(str::to_lowercase).collect();
    let owners = OwnerPath::app(&event.client, &event.app);
    let mut guests = Vec::new();
    let mut unread_end = u64::from(event.counts.registrations);
    while unread_end > 0 && guests.len() < limit {
        let start = unread_end.saturating_sub(GUESTS_PER_READ.into());
        let rows = Rows {
            offset: start,
            limit: u32::try_from(unread_end - start).unwrap_or(GUESTS_PER_READ),
            max_bytes: usize::MAX,
        };
        let slice = service.store.list_guests(event.id, rows).await?.items;
        let (vault, secret, words) = (Arc::clone(&service.vault), event.terms.secret, Arc::clone(&words));
        let work = move || {
            let listed = slice.into_iter().rev().map(|guest| to_listed(&vault, &secret, guest));
            listed
                .filter(|guest| guest.as_ref().map_or(true, |guest| has_words(guest, &words)))
                .collect::<Result<Vec<_>, _>>()
        };
        guests.extend(service.cpu.run(owners.clone(), work).await??);
        unread_end = start;
    }
    guests.truncate(limit);
    Ok(guests)
}

/// Returns true if each word begins a part of the guest's name.
fn has_words(guest: &ListedGuest, words: &[String]) -> bool {
    let name = guest.name.to_lowercase();
    words.iter().all(|word| name.split_whitespace().any(|part| part.starts_with(word)))
}

/// Calls `visit` with every guest of an event, with encrypted names.
///
/// # Errors
/// Any error of the store.
pub async fn for_each_guest(store: &Store, event: EventId, mut visit: impl FnMut(&Guest)) -> Result<(), ServiceError> {
    let mut offset = 0;
    loop {
        let page = store.list_guests(event, Rows { offset, limit: GUESTS_PER_READ, max_bytes: usize::MAX }).await?;
        page.items.iter().for_each(&mut visit);
        offset += page.items.len() as u64;
        if page.items.is_empty() || offset >= page.total {
            return Ok(());
        }
    }
}

/// Builds a guest of the list; decrypts the name.
fn to_listed(vault: &Vault, secret: &EventSecret, guest: Guest) -> Result<ListedGuest, ServiceError> {
    let name = vault.open(guest.txn.as_bytes(), &guest.name).map_err(ServiceError::internal)?;
    let Guest { number, txn, verified_at, check_in, duplicate_of, .. } = guest;
    let name = String::from_utf8_lossy(&name).into_owned();
    Ok(ListedGuest { number, txn, code: code_of(secret, number), name, verified_at, check_in, duplicate_of })
}
