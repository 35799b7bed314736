//! What callers read of the answers; other members are ignored.

use serde::Deserialize;
use serde_json::Value;

/// A transaction that was opened.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Opened {
    /// Its id.
    pub txn_id: String,
    /// The signed intent for the identity app.
    pub intent_jwt: String,
}

/// An event that was created.
#[derive(Clone, Debug, Deserialize)]
pub struct Created {
    /// Its id.
    pub event_id: String,
    /// What its QR code leads to.
    pub qr_url: String,
}

/// An event as its organiser sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Event {
    /// Whether guests can register, and if not, why.
    pub status: String,
    /// Its places.
    pub max_guests: u64,
    /// Registered guests.
    pub registration_count: u64,
    /// Scans.
    pub scan_count: u64,
    /// Scans that expired without an answer.
    pub abandoned_count: u64,
}

/// A page of the registered guests.
#[derive(Clone, Debug, Deserialize)]
pub struct Registrations {
    /// How many there are on all pages.
    pub total: u64,
    /// The guests.
    pub registrations: Vec<Guest>,
}

/// A registered guest.
#[derive(Clone, Debug, Deserialize)]
pub struct Guest {
    /// The transaction of the registration.
    pub txn_id: String,
}

/// A client that was created.
#[derive(Clone, Debug, Deserialize)]
pub struct NewClient {
    /// Its id.
    pub client_id: String,
}

/// An app that was created.
#[derive(Clone, Debug, Deserialize)]
pub struct NewApp {
    /// Its id.
    pub app_id: String,
}

/// An app.
#[derive(Clone, Debug, Deserialize)]
pub struct App {
    /// Its id.
    pub app_id: String,
    /// Whose it is.
    pub client_id: String,
    /// Its name.
    pub name: String,
}

/// A key, shown once.
#[derive(Deserialize)]
pub struct IssuedKey {
    /// Its id.
    pub key_id: String,
    /// The key itself.
    pub api_key: String,
}

/// A balance.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Balance {
    /// Credits.
    pub balance: i64,
}

/// A page of a ledger.
#[derive(Clone, Debug, Deserialize)]
pub struct Statement {
    /// How many entries there are on all pages.
    pub total: u64,
    /// The entries.
    pub entries: Vec<LedgerEntry>,
}

/// An entry of a ledger.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct LedgerEntry {
    /// Its number, from 1.
    pub seq: i64,
    /// `grant`, `debit` or `adjust`.
    pub kind: String,
    /// Credits.
    pub amount: i64,
    /// What was left.
    pub balance_after: i64,
    /// The transaction, of a debit.
    pub reference: String,
}

/// What the service made of a report.
#[derive(Clone, Debug, Deserialize)]
pub struct Reported {
    /// `accepted` or `repeated`.
    pub result: String,
}

/// The webhook of a transaction.
#[derive(Clone, Debug, Deserialize)]
pub struct Delivery {
    /// How the one attempt went, once it has ended.
    pub attempt: Option<Value>,
}
