//! Single bits that flip in Redis data: fields of hashes, entries of lists, members and scores of sorted sets.

use sakshi_kit::random::Random;

use super::server::RedisServer;
use super::server::resp::Reply;
use super::{key_names, test_store};
use crate::conformance::flips::{Effect, Effects, flip_bit};
use crate::conformance::reading::Reading;
use crate::conformance::workload::Workload;
use crate::conformance::{TestStore as _, run};
use crate::engine::redis::parse_name_in;
use crate::engine::{Form, Key};
use crate::records::ALL;

/// A key with its content as Redis dumps it, and its expiry.
struct Dump {
    name: Vec<u8>,
    content: Vec<u8>,
    /// Time of expiry in milliseconds; 0 for never.
    expires_at_ms: i64,
}

/// A value in which a bit can flip.
struct Value {
    name: Vec<u8>,
    /// The kind of record and the field, as `table.field`.
    location: String,
    kind: Kind,
}

/// The part of a key that has the value.
enum Kind {
    /// A field of a hash, and its value.
    Field(Vec<u8>, Vec<u8>),
    /// An entry of a list, by its index.
    Entry(usize, Vec<u8>),
    /// A member of a sorted set, and its score.
    Member(Vec<u8>, Vec<u8>),
    /// The score of a member of a sorted set.
    Score(Vec<u8>, f64),
}

fn dump(server: &RedisServer, name: Vec<u8>) -> Dump {
    let content = server.answer(&[b"DUMP", &name[..]]).bytes().unwrap().to_vec();
    let expires_at_ms = server.answer(&[b"PEXPIRETIME", &name[..]]).integer().unwrap().max(0);
    Dump { name, content, expires_at_ms }
}

/// Restores a key from its dump.
fn restore(server: &RedisServer, dump: &Dump) {
    let expires_at_ms = dump.expires_at_ms.to_string();
    server.answer(&[b"RESTORE", &dump.name[..], expires_at_ms.as_bytes(), &dump.content, b"REPLACE", b"ABSTTL"]);
}

/// Returns the values of a key.
fn values(server: &RedisServer, key: &Key, name: &[u8]) -> Vec<Value> {
    let bytes = |reply: &Reply| reply.bytes().unwrap().to_vec();
    let reply_to = |command: &[&[u8]]| server.answer(command).members().iter().map(bytes).collect::<Vec<_>>();
    let value = |part: &str, kind| Value { name: name.to_vec(), location: format!("{}.{part}", key.table.name), kind };
    match key.table.form {
        Form::Record => {
            let pairs = reply_to(&[b"HGETALL", name]);
            pairs
                .chunks(2)
                .map(|pair| value(&String::from_utf8_lossy(&pair[0]), Kind::Field(pair[0].clone(), pair[1].clone())))
                .collect()
        }
        Form::List => {
            let entries = reply_to(&[b"LRANGE", name, b"0", b"-1"]).into_iter().enumerate();
            entries.map(|(number, entry)| value("values", Kind::Entry(number, entry))).collect()
        }
        Form::Index => reply_to(&[b"ZRANGE", name, b"0", b"-1", b"WITHSCORES"])
            .chunks(2)
            .flat_map(|pair| {
                let (member, score) = (pair[0].clone(), String::from_utf8_lossy(&pair[1]).into_owned());
                [
                    value("member", Kind::Member(member.clone(), pair[1].clone())),
                    value("score", Kind::Score(member, score.parse().unwrap())),
                ]
            })
            .collect(),
    }
}

/// Returns the values of a key as bytes, for comparison.
pub(super) fn value_bytes(server: &RedisServer, key: &Key, name: &[u8]) -> Vec<Vec<u8>> {
    let bytes = |value: Value| match value.kind {
        Kind::Field(first, second) | Kind::Member(first, second) => [first, b"=".to_vec(), second].concat(),
        Kind::Entry(number, entry) => [&number.to_be_bytes(), &entry[..]].concat(),
        Kind::Score(..) => vec![],
    };
    values(server, key, name).into_iter().map(bytes).collect()
}

/// Flips a bit of a value; `None` if no valid value would be left.
fn flip(server: &RedisServer, value: &Value, random: &mut Random) -> Option<()> {
    let name = &value.name[..];
    match &value.kind {
        Kind::Field(field, bytes) => server.answer(&[b"HSET", name, &field[..], &flip_bit(bytes, random)?[..]]),
        Kind::Entry(number, bytes) => {
            server.answer(&[b"LSET", name, number.to_string().as_bytes(), &flip_bit(bytes, random)?[..]])
        }
        Kind::Member(member, score) => {
            server.answer(&[b"ZREM", name, &member[..]]);
            server.answer(&[b"ZADD", name, &score[..], &flip_bit(member, random)?[..]])
        }
        Kind::Score(member, score) => {
            let score = f64::from_bits(score.to_bits() ^ (1 << random.below(64)));
            let score = Some(score).filter(|score| score.is_finite())?;
            server.answer(&[b"ZADD", name, format!("{score:?}").as_bytes(), &member[..]])
        }
    };
    Some(())
}

/// Returns the number of bits to flip.
fn flip_count() -> usize {
    let is_long = std::env::var("SAKSHI_STORAGE").is_ok_and(|form| form == "long");
    let number = std::env::var("SAKSHI_REDIS_FLIPS").ok().and_then(|number| number.parse().ok());
    number.unwrap_or(if is_long { 10_000 } else { 60 })
}

#[test]
fn a_flipped_bit_in_redis_is_detected_or_harmless_or_in_a_listed_field() {
    let test = test_store();
    let (_, mut random) = Random::of_this_run();
    run(async {
        let mut workload = Workload::create(&test, &mut ()).await;
        workload.run_round(&test, &mut ()).await;
        workload.run_round(&test, &mut ()).await;
        let (server, now) = (&test.server, test.now());
        let reference = Reading::take(test.store(), &workload, now).await;
        assert_eq!(reference.refusals().count(), 0);
        let records: Vec<(Key, Vec<u8>)> =
            key_names(server).into_iter().filter_map(|name| Some((parse_name_in(ALL, &name)?, name))).collect();
        let dumps: Vec<Dump> = records.iter().map(|(_, name)| dump(server, name.clone())).collect();
        let all: Vec<Value> = records.iter().flat_map(|(key, name)| values(server, key, name)).collect();
        let mut effects = Effects::default();
        for _ in 0..flip_count() {
            let value = &all[usize::try_from(random.below(all.len() as u64)).unwrap()];
            if flip(server, value, &mut random).is_none() {
                continue;
            }
            let (effect, differences) = Effect::compare(&reference, &Reading::take(test.store(), &workload, now).await);
            effects.count(&value.location, effect, &differences);
            if effect == Effect::None {
                restore(server, dumps.iter().find(|dump| dump.name == value.name).unwrap());
            } else {
                // Reading damaged data may have removed other data.
                dumps.iter().for_each(|dump| restore(server, dump));
            }
        }
        assert!(
            reference.differences(&Reading::take(test.store(), &workload, now).await).is_empty(),
            "all values are restored"
        );
        eprintln!("{} values: {effects}", all.len());
        effects.assert_allowed();
    });
}
