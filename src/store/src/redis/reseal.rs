//! Sealing again what is sealed under an old key. A server is gone through with SCAN; a script finds the values of a key that are
//! under another one, and another script replaces them while they are still what was read.

use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use redis::cmd;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::ids::{EventId, TxnId};
use tokio::task::spawn_blocking;

use super::arguments::{Argument as _, arguments};
use super::keys;
use super::reply::Reply;
use super::script::{FIND_SEALED, REPLACE_SEALED};
use super::shared::Shared;
use super::store::RedisStore;
use crate::canary;
use crate::error::{StoreError, StoreFuture};
use crate::reseal::{Reseal, ResealCursor, Resealed, sealed_anew};
use crate::vault::EncryptionKeyId;

/// Keys that are looked at at the same time.
const TOGETHER: usize = 16;
/// Entries of a list that one call looks at; each may hold a photo.
const ENTRIES: u64 = 16;
/// Bytes that a step seals anew of one key before it ends; the next step goes on with the same keys.
const KEY_BYTES: usize = 32 * 1_024 * 1_024;

/// The sealed values of a key.
#[derive(Debug)]
pub(super) struct SealedKey {
    of_type: &'static str,
    /// The fields of a hash; a `*` stands for the rest of a name.
    fields: &'static [&'static str],
    /// Bytes in the clear before what is sealed; `None` for a registration, whose time has no fixed length.
    clear: Option<u64>,
    owner: Owner,
}

/// For whom a value is sealed.
#[derive(Debug)]
enum Owner {
    /// The same for all values of the key.
    Key(Vec<u8>),
    /// A transaction; the address of its webhook is that of its event.
    Transaction(TxnId),
    /// A report; the address of its webhook is that of its flow.
    Report { flow: FlowId, report: Vec<u8> },
    /// The transaction with which a registration begins.
    Guest,
    /// The field's name.
    Field,
    /// The entry's number.
    AuditEntry,
}

impl SealedKey {
    /// What is sealed in the key with this name; `None` when nothing is.
    pub(super) fn named(name: &[u8]) -> Option<Self> {
        let name = std::str::from_utf8(name).ok()?;
        let in_hash = |fields, owner| Some(Self { of_type: "hash", fields, clear: Some(0), owner });
        if name.as_bytes() == keys::canary() {
            return Some(Self { of_type: "string", fields: &[], clear: Some(0), owner: Owner::Key(canary::OWNER.to_vec()) });
        }
        if name.as_bytes() == keys::audit_log() {
            return Some(Self { of_type: "list", fields: &[], clear: Some(72), owner: Owner::AuditEntry });
        }
        if name.as_bytes() == keys::operators() {
            return Some(Self { of_type: "hash", fields: &["*"], clear: Some(32), owner: Owner::Field });
        }
        // What a client owns is named by its partition first.
        let (kind, id) = name.strip_prefix("{p").map_or(Some(name), |rest| rest.get(3..))?.split_once(':')?;
        match kind {
            "t" => in_hash(&["s", "r", "h"], Owner::Transaction(id.parse().ok()?)),
            "e" => in_hash(&["s", "h"], Owner::Key(id.parse::<EventId>().ok()?.as_bytes().to_vec())),
            "i" => in_hash(&["a"], Owner::Key(keys::parse_digest(id)?.0.to_vec())),
            "f" => in_hash(&["s", "d*"], Owner::Key(id.parse::<FlowId>().ok()?.as_bytes().to_vec())),
            "fr" => {
                let (flow, report) = id.split_once(':')?;
                let flow: FlowId = flow.parse().ok()?;
                let report = [&flow.as_bytes()[..], &keys::parse_bytes(report)?].concat();
                in_hash(&["r", "h"], Owner::Report { flow, report })
            }
            "a" => in_hash(&["r", "w"], Owner::Key(id.as_bytes().to_vec())),
            "s" => in_hash(&["s"], Owner::Key(keys::parse_digest(id)?.0.to_vec())),
            "r" => Some(Self { of_type: "list", fields: &[], clear: None, owner: Owner::Guest }),
            "rf" => Some(Self { of_type: "zset", fields: &[], clear: Some(0), owner: Owner::Key(id.as_bytes().to_vec()) }),
            _ => None,
        }
    }
}

/// A value under an old key, whole.
struct Old {
    place: Vec<u8>,
    clear: usize,
    value: Vec<u8>,
}

impl Reseal for RedisStore {
    fn reseal(&self, from: ResealCursor, limit: usize) -> StoreFuture<Resealed> {
        self.run(move |store| async move {
            let command = cmd("SCAN").arg(from.number).arg("COUNT").arg(limit).to_owned();
            let Some(found) = store.link.ask_server(from.part, command).await? else { return Ok(Resealed::default()) };
            let mut found = Reply::new("a scan", found).fields()?;
            let (number, names) = (found.parsed::<u64>()?, found.value()?.fields()?);
            let names = names.rest().map(|name| Ok(name.bytes()?.unwrap_or_default())).collect::<Result<Vec<_>, StoreError>>()?;
            let keys = names.into_iter().filter_map(|name| SealedKey::named(&name).map(|key| (name, key)));
            let work = keys.map(|(name, key)| Arc::clone(&store).reseal_key(name, key));
            let steps: Vec<_> = stream::iter(work).buffer_unordered(TOGETHER).try_collect().await?;
            let mut step = Resealed::default();
            let mut is_over = true;
            for of_key in steps {
                is_over &= of_key.next.is_none();
                step.add(of_key);
            }
            step.next = match number {
                _ if !is_over => Some(from),
                0 => Some(ResealCursor { part: from.part + 1, ..ResealCursor::default() }),
                number => Some(ResealCursor { number, ..from }),
            };
            Ok(step)
        })
    }

    fn sealing_key(&self) -> EncryptionKeyId {
        self.shared.vault.sealing_key()
    }
}

impl Shared {
    /// Seals the values of a key anew; with a `next` when there are more.
    async fn reseal_key(self: Arc<Self>, name: Vec<u8>, key: SealedKey) -> Result<Resealed, StoreError> {
        let (mut step, mut from, mut room) = (Resealed::default(), 0, KEY_BYTES);
        loop {
            let mut args = arguments![key.of_type, &self.vault.sealing_key().0, from, ENTRIES, key.clear];
            args.extend(key.fields.iter().map(|field| field.argument()));
            let mut found = self.call(&FIND_SEALED, vec![name.clone()], args).await?.fields()?;
            step.looked_at += found.parsed::<u64>()?;
            let mut old = Vec::new();
            for value in found.value()?.fields()?.rest() {
                let mut value = value.fields()?;
                let (place, clear, value) = (value.optional()?.unwrap_or_default(), value.parsed()?, value.bytes()?);
                room = room.saturating_sub(value.len());
                old.push(Old { place, clear, value });
            }
            let on: Option<u64> = found.optional_parsed()?;
            if !old.is_empty() {
                self.replace_sealed(&name, &key, old, &mut step).await?;
            }
            match on {
                Some(_) if room == 0 => {
                    step.next = Some(ResealCursor::default());
                    return Ok(step);
                }
                Some(on) => from = on,
                None => return Ok(step),
            }
        }
    }

    async fn replace_sealed(self: &Arc<Self>, name: &[u8], key: &SealedKey, old: Vec<Old>, step: &mut Resealed) -> Result<(), StoreError> {
        let mut owned = Vec::with_capacity(old.len());
        for old in old {
            owned.push((self.owner(name, key, &old).await?, old));
        }
        let store = Arc::clone(self);
        let work = move || {
            let sealed = |(owner, old): (Vec<u8>, Old)| {
                let (clear, sealed) = old.value.split_at_checked(old.clear).unwrap_or_default();
                (sealed_anew(&store.vault, &owner, sealed).map(|fresh| [clear, &fresh].concat()), old)
            };
            owned.into_iter().map(sealed).collect::<Vec<_>>()
        };
        let ready = spawn_blocking(work).await.map_err(|_| StoreError::unavailable("the runtime is shutting down"))?;
        for (fresh, Old { place, clear, value }) in ready {
            let head = value.get(clear..clear + 4).unwrap_or_default().to_vec();
            let is_done = match fresh {
                Some(fresh) => {
                    let args = arguments![key.of_type, place, value, fresh];
                    self.call(&REPLACE_SEALED, vec![name.to_vec()], args).await?.succeeded()?
                }
                None => false,
            };
            if is_done {
                step.resealed += 1;
            } else {
                step.leave(&head);
            }
        }
        Ok(())
    }

    /// For whom a value is sealed.
    async fn owner(&self, name: &[u8], key: &SealedKey, old: &Old) -> Result<Vec<u8>, StoreError> {
        Ok(match &key.owner {
            Owner::Key(owner) => owner.clone(),
            Owner::Transaction(_) if old.place == b"h" => {
                let event = self.read("the event of a transaction", cmd("HGET").arg(name).arg("e")).await?;
                event.optional_parsed::<EventId>()?.map(|event| event.as_bytes().to_vec()).unwrap_or_default()
            }
            Owner::Transaction(id) => id.as_bytes().to_vec(),
            Owner::Report { flow, .. } if old.place == b"h" => flow.as_bytes().to_vec(),
            Owner::Report { report, .. } => report.clone(),
            Owner::Guest => old.value.get(..16).unwrap_or_default().to_vec(),
            Owner::Field => old.place.clone(),
            Owner::AuditEntry => {
                let number = old.value.first_chunk().map(|number| u64::from_be_bytes(*number));
                crate::sealing::audit_owner(number.unwrap_or_default())
            }
        })
    }
}
