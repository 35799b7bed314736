//! Every kind of key that a store has in Redis: the kinds of records, and the store's own marks, which are no records. Tests compare it
//! with what a server holds.

use crate::engine::redis::{name, named};
use crate::engine::{Form, Key, Life, Table};
use crate::records::{self, client, console, credential, installation, session, tenancy, user};

/// The end of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ends {
    /// It stays until it is removed.
    Never,
    /// It always has a time to live.
    Always,
    /// It has one, unless it has a delivery that has not ended.
    AfterDelivery,
    /// It has that of the record with its id of another kind.
    With(&'static Table),
}

/// A kind of key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyKind {
    /// The name of a mark, or that of a kind of record, which a colon and an id follow.
    pub(crate) name: &'static str,
    /// The type as Redis names it.
    pub(crate) of_type: &'static str,
    /// The end of such a key.
    pub(crate) ends: Ends,
    /// The kind of record; a mark is none.
    pub(crate) table: Option<&'static Table>,
}

const fn mark(name: &'static str, of_type: &'static str, ends: Ends) -> KeyKind {
    KeyKind { name, of_type, ends, table: None }
}

/// The keys of a store besides its records. Those about starts, losses and the schema share the slot of the canary; on a cluster each
/// partition has a copy of the number of the schema once an upgrade was finished.
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

/// The kinds whose records are found by their ids alone, each in a slot of its own. The others are in partitions.
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

/// The kinds that may have nothing in a store that many nodes share: none sweeps it.
const UNUSED: [&Table; 1] = [&installation::SWEPT];

/// Every kind of key.
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
