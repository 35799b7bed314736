//! Scans of keys: a cursor is of no use to another process of a server, which has another hash seed.

use std::collections::BTreeSet;
use std::sync::Arc;

use sakshi_domain::flow::dedup::DedupDigest;
use sakshi_domain::ids::ClientId;

use super::server::DURABLE;
use super::test_store_with_config;
use crate::conformance::fixture::RETENTION;
use crate::conformance::run;
use crate::engine::redis::RedisEngine;
use crate::engine::{Batch, Engine as _, Key, Op, ScanFrom};
use crate::records::flow::{WEBHOOK_NAME, key_of_webhook_name};

#[test]
fn a_scan_finds_every_key_although_redis_restarts_meanwhile() {
    let test = test_store_with_config(DURABLE, RETENTION);
    run(async {
        let (engine, partition) = (RedisEngine::new(Arc::clone(&test.store.shared)), ClientId::generate().partition());
        let key = |number: u128| key_of_webhook_name(partition, DedupDigest(number.to_be_bytes()));
        let put = |key: Key| Batch::new(vec![], vec![Op::Put(key, vec![("flow", vec![7_u8; 16].into())])]);
        engine.commit((0..400).map(key).map(put).collect()).await.unwrap();
        let (mut found, mut next, mut steps) = (BTreeSet::new(), Some(ScanFrom::default()), 0);
        while let Some(from) = next {
            let scanned = engine.scan(&WEBHOOK_NAME, from, 20).await.unwrap();
            found.extend(scanned.keys.into_iter().map(|key| key.id));
            next = scanned.next;
            steps += 1;
            if steps == 10 {
                assert!((1..400).contains(&found.len()), "the restart comes in the middle: {}", found.len());
                test.server.restart();
            }
        }
        assert_eq!(found.len(), 400);
    });
}
