//! Records: each kind with its key, its fields and when it ends. Engines, moves and erasures derive from this what they do.

pub(crate) mod client;
pub(crate) mod event;
pub(crate) mod idempotency;
pub(crate) mod transaction;

use crate::engine::Table;

/// Declares a kind of record.
macro_rules! table {
    ($(#[$doc:meta])* $constant:ident = $name:literal, $form:ident { $($field:ident: $kind:ident),* $(,)? }) => {
        $(#[$doc])*
        pub(crate) static $constant: $crate::engine::Table = $crate::engine::Table {
            name: $name,
            form: $crate::engine::Form::$form,
            fields: &[$($crate::engine::Column { name: stringify!($field), kind: $crate::engine::ColumnKind::$kind }),*],
        };
    };
}
use table;

/// Every kind of record.
pub(crate) static ALL: &[&Table] = &[
    &client::CLIENT,
    &client::LEDGER,
    &client::REFERENCE,
    &event::EVENT,
    &event::REGISTRATIONS,
    &event::WAITING,
    &idempotency::IDEMPOTENCY,
    &transaction::TRANSACTION,
];
