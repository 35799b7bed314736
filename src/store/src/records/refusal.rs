//! The newest refused requests of an app, in a ring of numbered slots.

use sakshi_domain::ids::{AppId, Partition};

use super::{key_in_partition, table};
use crate::engine::Key;
use crate::invariants::is_id;

table! {
    /// The number of refused requests recorded for an app, overwritten ones included.
    REFUSALS = "refusals", Record Ends {
        kept: Integer,
    } always {
        Needed(&["kept"]),
        Within("kept", 1, i64::MAX),
        Rises(&["kept"]),
        New,
        Key(KeyRule::OfAppFirst),
    }
}

table! {
    /// A refused request, by app and slot. It is sealed because the client chose the names of its fields and ids.
    REFUSAL = "refusal", Record Ends {
        app: Text,
        refused: Sealed(Field("app")),
    } always {
        Needed(&["app", "refused"]),
        Word("app", is_id),
        Key(KeyRule::OfAppFirst),
    }
}

/// Returns the key of the record that counts an app's refused requests.
#[must_use]
pub(crate) fn key_of_refusals(app: &AppId) -> Key {
    key_in_partition(&REFUSALS, Partition::of_name(app.as_str()), app.as_str().as_bytes().to_vec())
}

/// Returns the key of the refused request in a slot of the app's ring.
#[must_use]
pub(crate) fn key_of_refusal(app: &AppId, slot: u32) -> Key {
    key_in_partition(
        &REFUSAL,
        Partition::of_name(app.as_str()),
        [app.as_str().as_bytes(), b" ", slot.to_string().as_bytes()].concat(),
    )
}
