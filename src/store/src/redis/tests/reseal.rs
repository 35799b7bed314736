//! Sealing anew: no value stays under the old key, none is forgotten, and no key lives longer for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{RedisTestStore, options, standalone, test_store, test_store_on};
use crate::Vault;
use crate::conformance::fixture::{RETENTION, client_with, opened};
use crate::conformance::reseal::{filled, pass, read};
use crate::conformance::{TestStore, run};
use crate::redis::key_table::KEYS;
use crate::redis::keys;
use crate::redis::reseal::SealedKey;
use crate::redis::script::REPLACE_SEALED;
use crate::redis::{RedisOptions, RedisStore};
use crate::vault::test_vault;

/// Another node with these keys, of which the first seals. It has taken over what waited for the one before.
async fn successor(test: &RedisTestStore, before: &RedisStore, keys: &[u8]) -> (RedisStore, Arc<Vault>) {
    let vault = Arc::new(test_vault(keys));
    let options = options(standalone(&test.server.url()), Arc::clone(&test.clock), RETENTION);
    let store = RedisStore::open(RedisOptions { vault: Arc::clone(&vault), ..options }).await.unwrap();
    store.shared.take_over(&before.shared.node).await.unwrap();
    (store, vault)
}

/// What the server has written to its disk, uncompressed.
fn dump(test: &RedisTestStore) -> Vec<u8> {
    test.server.answer(&["SAVE"]);
    let directory = test.server.answer(&["CONFIG", "GET", "dir"]).field("dir").unwrap();
    std::fs::read(std::path::Path::new(&directory).join("dump.rdb")).unwrap()
}

/// Every key with its time to live, whether it has one or not.
fn lifetimes(test: &RedisTestStore) -> BTreeMap<String, Option<String>> {
    let names = test.server.answer(&["KEYS", "*"]);
    let names = names.members().iter().filter_map(|name| name.text()).filter(|name| name != "{nodes}beats");
    names.map(|name| (name.clone(), test.server.answer(&["PEXPIRETIME", &name]).text())).collect()
}

#[test]
fn after_a_pass_everything_is_read_with_the_new_key_alone() {
    let test = test_store_on(&["rdbcompression no"], RETENTION);
    let old = test_vault(&[7]);
    let has_old = || dump(&test).windows(4).any(|window| window == old.sealing_key().0);
    run(async {
        let filled = filled(&test, &old).await;
        let before = read(test.store(), &old, &filled).await;
        assert!(has_old());
        let (store, both) = successor(&test, &test.store, &[8, 7]).await;
        let lifetimes_before = lifetimes(&test);
        assert_eq!(read(&store, &both, &filled).await, before);
        let first = pass(&store).await;
        assert!(first.resealed > 0 && first.left.is_empty(), "{first:?}");
        assert!(!has_old());
        assert_eq!(lifetimes(&test), lifetimes_before);
        let second = pass(&store).await;
        assert!(second.resealed == 0 && second.left.is_empty() && second.looked_at > 60, "{second:?}");
        let (store, new) = successor(&test, &store, &[8]).await;
        assert_eq!(read(&store, &new, &filled).await, before);
    });
}

#[test]
fn every_key_of_the_table_that_has_something_sealed_is_known() {
    for kind in KEYS {
        let digest = "01".repeat(32);
        let uuid = uuid::Uuid::nil().to_string();
        let event = sakshi_domain::ids::EventId::from_bytes([0; 12]).to_string();
        let id = match kind.pattern.trim_start_matches("{p*}").split_once(':').map(|(name, _)| name) {
            Some("t" | "f") => uuid,
            Some("fr") => format!("{uuid}:{}", "01".repeat(16)),
            Some("e" | "r" | "w") => event,
            _ => digest,
        };
        let name = kind.pattern.replacen("{p*}", "{p07}", 1).replace("*:*", "*").replace('*', &id);
        assert_eq!(SealedKey::named(name.as_bytes()).is_some(), kind.holds.contains("sealed"), "{name}");
    }
}

#[test]
fn a_value_that_changed_meanwhile_stays_and_one_that_no_key_opens_is_told_of() {
    let test = test_store();
    run(async {
        let client = client_with(&test, 5).await;
        let pending = opened(&test, &client).await;
        let key = keys::transaction(pending.id);
        let name = String::from_utf8(key.clone()).unwrap();
        let args = |before: &str, after: &str| ["hash", "s", before, after].map(|text| text.as_bytes().to_vec()).to_vec();
        let shared = &test.store.shared;
        let replaced = shared.call(&REPLACE_SEALED, vec![key.clone()], args("what was read", "anew")).await.unwrap();
        assert!(!replaced.succeeded().unwrap());
        test.server.answer(&["HSET", &name, "s", "what was read"]);
        for _ in 0..2 {
            let replaced = shared.call(&REPLACE_SEALED, vec![key.clone()], args("what was read", "anew")).await.unwrap();
            assert!(replaced.succeeded().unwrap(), "the second time its reply was lost");
        }
        assert_eq!(test.server.answer(&["HGET", &name, "s"]).text().as_deref(), Some("anew"));
        test.server.answer(&["HSET", &name, "s", "four bytes and some more"]);
        let told = pass(test.store()).await;
        let left: Vec<_> = told.left.into_iter().map(|(key, values)| (key.to_string(), values)).collect();
        assert_eq!(left, [("666f7572".to_owned(), 1)]);
    });
}
