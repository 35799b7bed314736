//! The kinds of records, each with its key, fields, lifetime and invariants. Engines, moves between stores, erasure and
//! resealing follow these declarations.

pub(crate) mod audit;
pub(crate) mod client;
pub(crate) mod client_log;
pub(crate) mod consent;
pub(crate) mod console;
pub(crate) mod credential;
pub(crate) mod day;
pub(crate) mod delivery;
pub(crate) mod event;
pub(crate) mod evidence;
pub(crate) mod flow;
pub(crate) mod idempotency;
pub(crate) mod installation;
pub(crate) mod node;
pub(crate) mod operator;
pub(crate) mod refusal;
pub(crate) mod session;
pub(crate) mod tenancy;
pub(crate) mod transaction;
pub(crate) mod user;

use sakshi_domain::ids::Partition;

use crate::engine::{Key, Place, Table};

/// Declares a kind of record with its invariants. `since` is the schema number of a kind or field that was added after
/// the first release, `numbered` is for indexes with unique scores, `large` for fields that an engine may store apart,
/// and `and` for the invariants that several kinds share.
macro_rules! table {
    ($(#[$doc:meta])* $constant:ident = $name:literal,
        $form:ident $life:ident $(($($with:ident),*))? $(since $since:literal)? {
        $(
            $(#[$field_attribute:meta])*
            $field:ident: $kind:ident $(($($owner:tt)*))? $(since $field_since:literal)?
        ),* $(,)?
    } $(numbered $numbered:literal)? $(large($($large:ident),*))?
    $(always { $($rule:expr),* $(,)? } $(and $shared_rules:path)?)?) => {
        $(#[$doc])*
        pub(crate) static $constant: $crate::engine::Table = $crate::engine::Table {
            name: $name,
            numbered: $($numbered ||)? false,
            large: &[$($(stringify!($large)),*)?],
            form: $crate::engine::Form::$form,
            life: table!(@life $life $(($($with),*))?),
            since: table!(@since $($since)?),
            fields: &[$($(#[$field_attribute])* $crate::engine::Column {
                name: stringify!($field),
                kind: $crate::engine::ColumnKind::$kind $(($crate::engine::Owner::$($owner)*))?,
                since: table!(@since $($field_since)?),
            }),*],
            rules: {
                #[allow(unused_imports)]
                use $crate::invariants::{KeyRule, Need, Rule::*};
                &[$(&[$($rule),*], $($shared_rules)?)?]
            },
        };
    };
    (@since) => { $crate::schema::FIRST };
    (@since $since:literal) => { $since };
    (@life Stays) => { $crate::engine::Life::Stays };
    (@life Ends) => { $crate::engine::Life::Ends(&[]) };
    (@life Ends ($($child:ident),*)) => { $crate::engine::Life::Ends(&[$(&$child),*]) };
    (@life With ($parent:ident)) => { $crate::engine::Life::With(&$parent) };
}
use table;

/// Every kind of record. Only personal and secret data is sealed. A kind comes before the kinds that copy from it.
pub(crate) static ALL: &[&Table] = &[
    &installation::INTENT_KEY,
    &installation::SWEPT,
    &node::WATCH,
    &node::SNAPSHOT,
    &operator::OPERATOR,
    &operator::OPERATORS,
    &operator::OPERATOR_TOKEN,
    &user::EMAIL_SECRET,
    &user::USER,
    &user::USERS,
    &user::USER_EMAIL,
    &user::USER_INVITE,
    &user::USER_SESSIONS,
    &client::CLIENT,
    &client::CLIENTS,
    &client::LEDGER,
    &client::REFERENCE,
    &tenancy::APP,
    &tenancy::APPS,
    &tenancy::API_KEY,
    &tenancy::API_KEY_ID,
    &tenancy::API_KEYS,
    &tenancy::LOGO,
    &event::EVENT,
    &event::GUESTS,
    &event::SHARED,
    &event::PEOPLE,
    &event::WAITING,
    &event::EVENTS,
    &event::EVENT_ENDS,
    &transaction::TRANSACTION,
    &evidence::EVIDENCE,
    &idempotency::IDEMPOTENCY,
    &idempotency::ORDER_LEASE,
    &credential::CREDENTIAL,
    &flow::FLOW,
    &flow::FLOWS,
    &flow::WEBHOOKS,
    &flow::REPORT,
    &flow::WEBHOOK_NAME,
    &flow::LAPSING,
    &delivery::NUMBERS,
    &delivery::OUTBOX,
    &delivery::HOLDERS,
    &session::SESSION,
    &console::CONSOLE_SESSION,
    &console::PROVIDER_LOGOUT,
    &console::GRANT_REQUEST,
    &console::GRANT_REQUESTS,
    &refusal::REFUSALS,
    &refusal::REFUSAL,
    &audit::AUDIT_LOG,
    &audit::AUDIT_PUSH,
    &day::DAY,
    &consent::CONSENT_WEEK,
    &consent::CONSENTS,
    &client_log::CLIENT_LOG_MONTH,
    &client_log::CLIENT_LOG,
];

/// Returns true if a record of the kind may have many megabytes. Each is read and written alone, because a server must
/// answer within the time limit of a call.
pub(crate) fn is_large(table: &Table) -> bool {
    table.name == flow::REPORT.name
}

/// Returns the key of a record in a partition.
const fn key_in_partition(table: &'static Table, partition: Partition, id: Vec<u8>) -> Key {
    Key { table, place: Place::Partition(partition), id }
}

/// Returns the key of a record outside the partitions, which is found without knowing its client.
const fn key_outside_partitions(table: &'static Table, id: Vec<u8>) -> Key {
    Key { table, place: Place::Alone, id }
}

/// Returns the key of a record of the whole installation. These few records share the first partition.
fn key_of_installation(table: &'static Table, id: Vec<u8>) -> Key {
    let place = Partition::all().next().map_or(Place::Alone, Place::Partition);
    Key { table, place, id }
}

#[cfg(test)]
mod tests {
    use super::ALL;
    use crate::engine::Life;

    #[test]
    fn kinds_have_unique_names_and_parents_and_children_name_each_other() {
        for (index, table) in ALL.iter().enumerate() {
            assert!(ALL[..index].iter().all(|other| other.name != table.name), "{table:?}");
            for child in table.children() {
                assert!(matches!(child.life, Life::With(parent) if parent.name == table.name), "{child:?}");
            }
            if let Life::With(parent) = table.life {
                assert!(parent.children().iter().any(|child| child.name == table.name), "{table:?}");
            }
        }
    }
}
