//! Every kind of key of a store in Redis: the kinds of records, and the store's own marks, which are not records. Tests
//! compare it with a server's keys.

use crate::engine::redis::{name, named};
use crate::engine::{Form, Key, Life, Table};
use crate::records::{self, client, console, credential, installation, session, tenancy, user};

/// The end of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ends {
    /// No end: it stays until it is removed.
    Never,
    /// A time to live, always.
    Always,
    /// A time to live, unless it has an unfinished delivery.
    AfterDelivery,
    /// The time to live of the record with its id of another kind.
    With(&'static Table),
}

/// A kind of key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyKind {
    /// Name of a mark, or of a kind of record, followed by a colon and an id.
    pub(crate) name: &'static str,
    /// Type, as Redis names it.
    pub(crate) of_type: &'static str,
    /// End of such a key.
    pub(crate) ends: Ends,
    /// Kind of record; `None` for a mark.
    pub(crate) table: Option<&'static Table>,
}

const fn mark(name: &'static str, of_type: &'static str, ends: Ends) -> KeyKind {
    KeyKind { name, of_type, ends, table: None }
}

/// Keys of a store besides its records. Those of starts, losses and the schema share the slot of the canary. On a
/// cluster each partition has a copy of the schema number once an upgrade was finished.
const MARKS: [KeyKind; 12] = [
    mark("canary", "string", Ends::Never),
    mark("{canary}starts", "string", Ends::Never),
    mark("{canary}steps", "string", Ends::Never),
    mark("{canary}started", "string", Ends::Never),
    mark("{canary}lost", "string", Ends::Never),
    mark("{canary}acceptances", "string", Ends::Never),
    mark("{canary}schema", "string", Ends::Never),
    mark("installation", "string", Ends::Never),
    mark("moving", "string", Ends::Never),
    mark("{nodes}beats", "zset", Ends::Always),
    mark("{nodes}schemas", "hash", Ends::Always),
    mark("probe", "string", Ends::Always),
];

/// Kinds whose records are found by their ids alone, each in a slot of its own. The others are in partitions.
const ALONE: [&Table; 12] = [
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

/// Kinds that may be empty in a store shared by many nodes: none sweeps it.
const UNUSED: [&Table; 1] = [&installation::SWEPT];

/// Returns every kind of key.
pub(crate) fn kinds() -> impl Iterator<Item = KeyKind> {
    let is_used = |table: &&&'static Table| UNUSED.iter().all(|unused| unused.name != table.name);
    records::ALL.iter().filter(is_used).map(|table| of_records(table)).chain(MARKS)
}

fn of_records(table: &'static Table) -> KeyKind {
    let of_type = match table.form {
        Form::Record => "hash",
        Form::List => "list",
        Form::Index => "zset",
    };
    let ends = match table.life {
        Life::Stays => Ends::Never,
        Life::Ends(_) if table.column("delivery").is_some() => Ends::AfterDelivery,
        Life::Ends(_) => Ends::Always,
        Life::With(record) => Ends::With(record),
    };
    KeyKind { name: table.name, of_type, ends, table: Some(table) }
}

impl KeyKind {
    /// Returns true if a key with this name is of the kind.
    pub(crate) fn has(&self, key: &[u8]) -> bool {
        self.table.map_or(key == self.name.as_bytes(), |table| named(table, key).is_some())
    }

    /// Returns true if records of the kind are in slots of their own.
    pub(crate) fn is_alone(&self) -> bool {
        ALONE.iter().any(|alone| alone.name == self.name)
    }
}

#[test]
fn the_name_of_a_key_is_of_its_kind_and_of_no_other() {
    for kind in kinds() {
        let owner = sakshi_domain::ids::ClientId::generate();
        let of = |table| name(&Key { table, ..client::client(&owner) });
        let key = kind.table.map_or_else(|| kind.name.as_bytes().to_vec(), of);
        assert_eq!(kinds().filter(|other| other.has(&key)).map(|other| other.name).collect::<Vec<_>>(), [kind.name]);
    }
}
