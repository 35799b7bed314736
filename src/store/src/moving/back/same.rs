//! What of a key's content a move carries. The rest belongs to nodes and calls that are over, or is numbered anew.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sakshi_domain::clock::{Clock as _, SystemClock};
use sakshi_domain::limits::REFUSAL_TTL;

use super::super::Content;
use super::origin::parts;

/// Characters of the number that an event has before its id in the lists of its app.
pub(super) const PLACE: usize = 12;

/// What was concluded on the way.
#[derive(Default)]
pub(super) struct Settled {
    /// The events that are carried.
    pub(super) events: BTreeSet<String>,
    /// By event, the scans whose transactions are gone: they count as abandoned now.
    pub(super) abandoned: HashMap<String, BTreeSet<Vec<u8>>>,
}

/// The part of a content that must be the same on both sides; `settled` for the side that is moved.
pub(super) fn comparable(name: &[u8], content: Content, settled: Option<&Settled>) -> Content {
    let (kind, id) = parts(name);
    match (kind, content) {
        ("t", Content::Hash(fields)) => Content::Hash(delivered(without(fields, &["m", "y", "j", "i"]))),
        ("fr", Content::Hash(fields)) => Content::Hash(delivered(without(fields, &["y", "j", "i"]))),
        // How many events it has had.
        ("c", Content::Hash(fields)) => Content::Hash(without(fields, &["i"])),
        ("e", Content::Hash(fields)) => {
            let mut fields = without(fields, &["i"]);
            let before = fields.get(b"b".as_slice()).and_then(|count| std::str::from_utf8(count).ok()?.parse::<usize>().ok());
            let more = settled.and_then(|settled| settled.abandoned.get(id)).map_or(0, BTreeSet::len);
            fields.insert(b"b".to_vec(), (before.unwrap_or(0) + more).to_string().into_bytes());
            Content::Hash(fields)
        }
        ("w", Content::Sorted(mut scans)) => {
            if let Some(abandoned) = settled.and_then(|settled| settled.abandoned.get(id)) {
                scans.retain(|scan, _| !abandoned.contains(scan));
            }
            Content::Sorted(scans)
        }
        ("ae" | "ax", Content::Sorted(events)) => {
            let mut events: Vec<_> = events.into_iter().collect();
            events.sort_by(|(one, at), (other, then)| (at, one).cmp(&(then, other)));
            let ids = events.into_iter().map(|(event, _)| event.get(PLACE..).unwrap_or_default().to_vec());
            let mut ids: Vec<_> = ids.filter(|id| settled.is_none_or(|settled| is_carried(settled, id))).collect();
            if kind == "ax" {
                // By when they go, which the settings decide.
                ids.sort_unstable();
            }
            Content::List { from: 0, entries: ids, is_last: true }
        }
        ("cred", Content::Text(memory)) => {
            // The transaction and the end; the call that wrote it is over.
            Content::Text([memory.get(..16).unwrap_or_default(), memory.get(33..).unwrap_or_default()].concat())
        }
        ("rf", Content::Sorted(mut refused)) => {
            let lasting = i64::try_from(REFUSAL_TTL.as_millis()).unwrap_or(i64::MAX);
            let oldest = SystemClock.now().millis() - lasting;
            refused.retain(|_, at| *at > oldest);
            Content::Sorted(refused)
        }
        ("out", Content::Queue(queue)) => {
            Content::Queue(queue.into_iter().map(|(_, subject, origin)| (String::new(), subject, origin)).collect())
        }
        (_, content) => content,
    }
}

fn is_carried(settled: &Settled, event: &[u8]) -> bool {
    std::str::from_utf8(event).is_ok_and(|event| settled.events.contains(event))
}

fn without(mut fields: BTreeMap<Vec<u8>, Vec<u8>>, others: &[&str]) -> BTreeMap<Vec<u8>, Vec<u8>> {
    fields.retain(|field, _| !others.iter().any(|other| other.as_bytes() == field.as_slice()));
    fields
}

/// Of an attempt that had begun nobody knows whether it arrived.
fn delivered(mut fields: BTreeMap<Vec<u8>, Vec<u8>>) -> BTreeMap<Vec<u8>, Vec<u8>> {
    if fields.contains_key(b"k".as_slice()) && !fields.contains_key(b"w".as_slice()) {
        fields.extend([(b"w".to_vec(), b"unknown".to_vec()), (b"n".to_vec(), Vec::new()), (b"l".to_vec(), b"0".to_vec())]);
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(fields: &[(&str, &str)]) -> Content {
        Content::Hash(fields.iter().map(|(field, value)| (field.as_bytes().to_vec(), value.as_bytes().to_vec())).collect())
    }

    fn sorted(members: &[(&str, i64)]) -> Content {
        Content::Sorted(members.iter().map(|(member, score)| (member.as_bytes().to_vec(), *score)).collect())
    }

    /// Whether what is on the server is what the new store has.
    fn is_same(name: &str, held: Content, settled: &Settled, written: Content) -> bool {
        comparable(name.as_bytes(), held, Some(settled)) == comparable(name.as_bytes(), written, None)
    }

    #[test]
    fn an_attempt_that_had_begun_is_unknown_and_any_other_is_as_it_was() {
        let unknown = [("k", "1"), ("w", "unknown"), ("n", ""), ("l", "0")];
        let same = |held: &[(&str, &str)], written: &[(&str, &str)]| {
            ["{p01}t:1", "{p01}fr:1"].map(|name| is_same(name, hash(held), &Settled::default(), hash(written)))
        };
        assert_eq!(same(&[("k", "1")], &unknown), [true; 2]);
        assert_eq!(same(&[("k", "1"), ("i", "9")], &unknown), [true; 2], "its number in the outbox is a new one");
        assert_eq!(same(&[("k", "2")], &unknown), [false; 2]);
        assert_eq!(same(&[("k", "1"), ("w", "delivered")], &unknown), [false; 2]);
        assert_eq!(same(&[("k", "1"), ("w", "delivered")], &[("k", "1"), ("w", "delivered")]), [true; 2]);
        assert_eq!(same(&[("s", "queued")], &[("s", "queued")]), [true; 2]);
        assert_eq!(same(&[("s", "queued")], &unknown), [false; 2]);
    }

    #[test]
    fn scans_whose_transactions_are_gone_are_abandoned_and_no_more_waited_for() {
        let gone = BTreeSet::from([b"one".to_vec(), b"two".to_vec()]);
        let settled = Settled { abandoned: HashMap::from([("7".to_owned(), gone)]), ..Settled::default() };
        let counted = |held: &[(&str, &str)], written: &str| is_same("{p01}e:7", hash(held), &settled, hash(&[("b", written)]));
        assert!(counted(&[("b", "3")], "5") && counted(&[], "2"));
        assert!(!counted(&[("b", "3")], "3") && !counted(&[("b", "3")], "6"));
        let waiting =
            |written: &[(&str, i64)]| is_same("{p01}w:7", sorted(&[("one", 1), ("two", 2), ("three", 3)]), &settled, sorted(written));
        assert!(waiting(&[("three", 3)]) && !waiting(&[("three", 4)]) && !waiting(&[("one", 1), ("three", 3)]));
    }

    #[test]
    fn events_that_are_carried_keep_their_order() {
        let settled = Settled { events: ["a", "b"].map(str::to_owned).into(), ..Settled::default() };
        let held = || sorted(&[("000000000001b", 5), ("000000000002a", 6), ("000000000003gone", 7)]);
        let same = |kind: &str, written: &[(&str, i64)]| is_same(&format!("{{p01}}{kind}:app"), held(), &settled, sorted(written));
        for kind in ["ae", "ax"] {
            assert!(same(kind, &[("000000000000b", 5), ("000000000001a", 6)]), "they are numbered anew");
            assert!(!same(kind, &[("000000000000b", 5)]) && !same(kind, &[("000000000000b", 5), ("000000000001c", 6)]));
        }
        let swapped = [("000000000000a", 5), ("000000000001b", 6)];
        assert!(!same("ae", &swapped) && same("ax", &swapped), "when they go is for the settings to say");
    }

    #[test]
    fn refusals_are_compared_while_they_are_kept() {
        let (now, lasting) = (SystemClock.now().millis(), i64::try_from(REFUSAL_TTL.as_millis()).unwrap());
        let same =
            |held: &[(&str, i64)], written: &[(&str, i64)]| is_same("{p01}rf:app", sorted(held), &Settled::default(), sorted(written));
        assert!(same(&[("new", now), ("old", now - lasting)], &[("new", now)]));
        assert!(!same(&[("new", now)], &[]) && !same(&[("new", now)], &[("new", now - 1)]));
    }
}
