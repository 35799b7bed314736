//! Records for a store without HTTP.

use std::sync::Arc;
use std::time::Duration;

use sakshi_domain::channel::Channel;
use sakshi_domain::claims::{Claim, ClaimSet};
use sakshi_domain::event::{Event, EventCounts, EventEntry, EventTerms, EventText, MaxGuests};
use sakshi_domain::ids::{AppId, ClientId, EventId, TxnId};
use sakshi_domain::language::Language;
use sakshi_domain::request_id::RequestId;
use sakshi_domain::tenancy::{App, KeyCase};
use sakshi_domain::time::Timestamp;
use sakshi_domain::time_zone::TimeZone;
use sakshi_domain::transaction::{Answer, AnswerDigest, CredentialIdentity, Pending, Terms, VerifiedClaims};
use sakshi_store::OpenTransaction;
use serde_json::json;

/// Time for which a transaction is open.
pub const WINDOW: Duration = Duration::from_secs(900);

pub fn app(app_id: AppId, client_id: ClientId) -> App {
    App {
        app_id,
        client_id,
        name: "Kiosk".into(),
        payload_spelling: KeyCase::default(),
        evidence: false,
        consent_webhook_url: None,
        data_webhook_url: None,
        historical_webhook_url: None,
        created_at: Timestamp::from_millis(0),
    }
}

fn claims() -> ClaimSet {
    [Claim::Name, Claim::AgeAbove18].into_iter().collect()
}

/// Returns a transaction opened now, for a name and an age.
pub fn pending(id: TxnId, client: ClientId, app: AppId, now: Timestamp) -> Pending {
    let terms = Terms {
        claims: claims(),
        channel: Channel::Web,
        language: Language::ENGLISH,
        face_auth: true,
        webhook_url: None,
        request_id: RequestId::mint(),
        extras: None,
    };
    Pending { id, client, app, event: None, opened_at: now, expires_at: now + WINDOW, terms }
}

/// Returns the opening of a transaction for one credit.
pub fn opening(pending: Pending) -> OpenTransaction {
    OpenTransaction { pending: Arc::new(pending), cost: 1, idempotency: None, pending_max: None, intent: None }
}

/// Returns an event for ten guests with this duration.
pub fn event(id: EventId, client: ClientId, app: AppId, now: Timestamp, duration: Duration) -> Event {
    let terms = EventTerms {
        name: EventText::parse("Open day & tour").expect("a name"),
        claims: claims(),
        language: Language::ENGLISH,
        time_zone: TimeZone::INDIA,
        organiser: None,
        purpose: None,
        max_guests: MaxGuests::new(10).expect("a number of guests"),
        max_pending: None,
        credit_budget: None,
        entry: EventEntry::Open,
        starts_at: None,
        place: None,
        expires_at: now + duration,
        webhook_url: None,
        retention: sakshi_domain::retention::ClientRetention::default(),
        on_duplicate: sakshi_domain::event::OnDuplicate::Flag,
        secret: sakshi_domain::event::EventSecret::fixed(1),
        doors: vec![],
        brand: sakshi_domain::brand::Brand::default(),
        is_active: true,
    };
    Event { id, client, app, created_at: now, terms, counts: EventCounts::default(), is_funded: true }
}

/// Returns a credential with all that [`pending`] requests, bound by its holder. Different marks make different
/// credentials.
pub fn credential(mark: [u8; 32]) -> Answer {
    let claims = [("residentName".to_owned(), json!("Asha Rao")), ("ageAbove18".to_owned(), json!(true))];
    Answer::Credential {
        claims: Arc::new(VerifiedClaims::new(claims.into_iter().collect())),
        missing: ClaimSet::default(),
        malformed: ClaimSet::default(),
        holder_bound: true,
        identity: CredentialIdentity(mark),
        digest: AnswerDigest(mark),
    }
}
