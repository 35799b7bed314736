//! Every kind of key of a store in Redis: the kinds of records, and the store's own marks, which are not records. Tests
//! compare it with a server's keys.

use crate::engine::redis::{name, parse_name};
use crate::engine::{Form, Key, Life, Table};
use crate::records::{self, client, console, credential, installation, session, tenancy, user};

/// The expiry of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Expiry {
    /// The key stays until it is removed.
    Never,
    /// The key always has a time to live.
    Always,
    /// The key has a time to live, unless its record has an unfinished delivery.
    AfterDelivery,
    /// The key has the time to live of the record with the same id in this table.
    WithRecord(&'static Table),
}

/// A kind of key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyKind {
    /// Name of a mark, or of a kind of record, followed by a colon and an id.
    pub(crate) name: &'static str,
    /// Type, as Redis names it.
    pub(crate) redis_type: &'static str,
    /// Expiry of such a key.
    pub(crate) expiry: Expiry,
    /// Kind of record; `None` for a mark.
    pub(crate) table: Option<&'static Table>,
}

/// Describes a key that is not a record.
const fn mark_kind(name: &'static str, redis_type: &'static str, expiry: Expiry) -> KeyKind {
    KeyKind { name, redis_type, expiry, table: None }
}

/// Keys of a store besides its records. The canary is a sealed text that shows whether a node has the store's
/// encryption keys; starts, losses and the schema share its slot. On a cluster each partition also has a copy of the
/// schema number once an upgrade was finished.
const MARKS: [KeyKind; 12] = [
    mark_kind("canary", "string", Expiry::Never),
    mark_kind("{canary}starts", "string", Expiry::Never),
    mark_kind("{canary}steps", "string", Expiry::Never),
    mark_kind("{canary}started", "string", Expiry::Never),
    mark_kind("{canary}lost", "string", Expiry::Never),
    mark_kind("{canary}acceptances", "string", Expiry::Never),
    mark_kind("{canary}schema", "string", Expiry::Never),
    mark_kind("installation", "string", Expiry::Never),
    mark_kind("moving", "string", Expiry::Never),
    mark_kind("{nodes}beats", "zset", Expiry::Always),
    mark_kind("{nodes}schemas", "hash", Expiry::Always),
    mark_kind("probe", "string", Expiry::Always),
];

/// Kinds whose records are found by their ids alone, each in its own slot. The others are in partitions.
const OWN_SLOT: [&Table; 12] = [
    &tenancy::APP,
    &tenancy::API_KEY,
    &tenancy::API_KEY_ID,
    &tenancy::LOGO,
    &session::SESSION,
    &console::CONSOLE_SESSION,
    &console::PROVIDER_LOGOUT,
    &credential::CREDENTIAL,
    &user::USER,
    &user::USER_EMAIL,
    &user::USER_INVITE,
    &user::USER_SESSIONS,
];

/// Kinds without keys in Redis: expired keys disappear, so no sweep is recorded.
const UNUSED: [&Table; 1] = [&installation::SWEPT];

/// Returns every kind of key.
pub(crate) fn kinds() -> impl Iterator<Item = KeyKind> {
    let is_used = |table: &&&'static Table| UNUSED.iter().all(|unused| unused.name != table.name);
    records::ALL.iter().filter(is_used).map(|table| record_kind(table)).chain(MARKS)
}

/// Describes the keys of a kind of record.
fn record_kind(table: &'static Table) -> KeyKind {
    let redis_type = match table.form {
        Form::Record => "hash",
        Form::List => "list",
        Form::Index => "zset",
    };
    let expiry = match table.life {
        Life::Stays => Expiry::Never,
        Life::Ends(_) if table.column("delivery").is_some() => Expiry::AfterDelivery,
        Life::Ends(_) => Expiry::Always,
        Life::With(record) => Expiry::WithRecord(record),
    };
    KeyKind { name: table.name, redis_type, expiry, table: Some(table) }
}

impl KeyKind {
    /// Returns true if a key with this name is of the kind.
    pub(crate) fn includes(&self, key: &[u8]) -> bool {
        self.table.map_or(key == self.name.as_bytes(), |table| parse_name(table, key).is_some())
    }

    /// Returns true if records of the kind have their own slots.
    pub(crate) fn has_own_slot(&self) -> bool {
        OWN_SLOT.iter().any(|table| table.name == self.name)
    }
}

#[test]
fn a_key_name_belongs_to_exactly_one_kind() {
    for kind in kinds() {
        let owner = sakshi_domain::ids::ClientId::generate();
        let name_in = |table| name(&Key { table, ..client::key_of_client(&owner) });
        let key = kind.table.map_or_else(|| kind.name.as_bytes().to_vec(), name_in);
        assert_eq!(
            kinds().filter(|other| other.includes(&key)).map(|other| other.name).collect::<Vec<_>>(),
            [kind.name]
        );
    }
}
