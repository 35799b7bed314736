//! The newest refused requests of an app, in a fixed number of places, used in turn.

use sakshi_domain::ids::{AppId, Partition};

use super::{in_partition, table};
use crate::engine::Key;
use crate::invariants::is_id;

table! {
    /// The number of refused requests recorded for an app so far.
    REFUSALS = "refusals", Record Ends {
        kept: Integer,
    } always {
        Needed(&["kept"]),
        Within("kept", 1, i64::MAX),
        Rises(&["kept"]),
        New,
        Home(Home::OfAppFirst),
    }
}

table! {
    /// A refused request, by app and place. The names of fields and ids in it are the client's own.
    REFUSAL = "refusal", Record Ends {
        app: Text,
        refused: Sealed(Field("app")),
    } always {
        Needed(&["app", "refused"]),
        Word("app", is_id),
        Home(Home::OfAppFirst),
    }
}

/// Returns the key of the number of an app's refused requests.
#[must_use]
pub(crate) fn refusals(app: &AppId) -> Key {
    in_partition(&REFUSALS, Partition::of_name(app.as_str()), app.as_str().as_bytes().to_vec())
}

/// Returns the key of a refused request of an app.
#[must_use]
pub(crate) fn refusal(app: &AppId, place: u32) -> Key {
    in_partition(
        &REFUSAL,
        Partition::of_name(app.as_str()),
        [app.as_str().as_bytes(), b" ", place.to_string().as_bytes()].concat(),
    )
}
