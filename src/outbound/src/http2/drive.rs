//! Keeps a connection going until nobody needs it any more.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{MissedTickBehavior, interval};

use super::{Driven, Pulse};
use crate::origin::{ConnectionId, Origin};

/// How often is looked whether it is still needed.
const LOOK: Duration = Duration::from_millis(250);
/// Looks for which a connection without requests, or one to which nothing can be written, may take to end.
const LOOKS_TO_END: u32 = 4;

/// Drives a connection. It is closed soon after its origin has let go of it and its last request
/// has ended, whether the receiver takes note or not.
pub(crate) async fn drive<Io>(mut connection: Box<Driven<Io>>, pulse: Arc<Pulse>, origin: Arc<Origin>, id: ConnectionId)
where
    Io: AsyncRead + AsyncWrite + Unpin,
{
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut ending = 0;
    let ended = loop {
        tokio::select! {
            ended = &mut *connection => break Some(ended),
            _ = looks.tick() => {
                // The connection itself and this function hold it as well.
                let needed = origin.keeps(id) || Arc::strong_count(&pulse) > 2;
                ending = if needed && !pulse.is_lost() { 0 } else { ending + 1 };
                if ending > LOOKS_TO_END {
                    break None;
                }
            }
        }
    };
    origin.retire(id);
    if let Some(Err(error)) = ended
        && error.is_library()
    {
        origin.distrust();
    }
}
