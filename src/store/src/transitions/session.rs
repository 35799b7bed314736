//! Sessions of people who have signed in.

use sakshi_domain::time::Timestamp;

use crate::engine::{Batch, Guard, Op, Record};
use crate::records::session::session;
use crate::sessions::{SessionDigest, SessionRecord};

/// The batch that keeps a session with this sealed grant.
#[must_use]
pub(crate) fn open(opened: &SessionRecord, grant: Vec<u8>) -> Batch {
    let SessionRecord { digest, idle_until, ends_at, .. } = opened;
    let (key, idle_until) = (session(digest), (*idle_until).min(*ends_at));
    let fields = vec![("idle_until", idle_until.into()), ("ends_at", (*ends_at).into()), ("grant", grant.into())];
    let ops = vec![Op::Put(key.clone(), fields), Op::ExpireAt(key.clone(), idle_until.into())];
    Batch::new(vec![Guard::Absent(key)], ops)
}

/// The batch that keeps a session until then, at most until its own end. It is refused for one that is kept for longer, and for one
/// that has ended.
#[must_use]
pub(crate) fn prolong(digest: &SessionDigest, known: &Record, until: Timestamp) -> Batch {
    let (key, until) = (session(digest), until.millis().min(known.integer("ends_at")));
    let ops = vec![Op::Set(key.clone(), vec![("idle_until", until.into())]), Op::ExpireAt(key.clone(), until.into())];
    Batch::on_full(vec![Guard::AtMost(key, "idle_until", until)], ops)
}
