//! Mutated callbacks: the service refuses each, or accepts it with the meaning that was signed.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use rand::rngs::SmallRng;
use rand::seq::IteratorRandom as _;
use rand::{RngExt as _, SeedableRng as _};

use sakshi_kit::backend::{Backend, Opened};
use sakshi_kit::identity_app::{CallbackFormat, IdentityApp};
use sakshi_kit::node::TestNode;

/// Concurrent strangers, each with its own seed.
const STRANGERS: u64 = 16;
/// Callbacks of each stranger: `make soak` sends 112,000 in all.
const CALLBACKS: usize = if cfg!(feature = "soak") { 7_000 } else { 100 };
/// Pieces to insert, besides single bytes.
const PIECES: &str = concat!(
    r#"" { } [[[[[[[[ null \u0000 \ud800 -0 1e999 ~ ~~ . == &#0; &lol; <!DOCTYPE <![CDATA[ ]]> </Request> <TxnID> "#,
    "\"errCode\":\"308\", \"response\":\"\", \u{feff} \u{202e}"
);

/// Returns a body with one to three random changes.
fn mutate(body: &[u8], rng: &mut SmallRng) -> Vec<u8> {
    let mut body = body.to_vec();
    for _ in 0..rng.random_range(1..=3) {
        let (at, other) = (rng.random_range(0..=body.len()), rng.random_range(0..=body.len()));
        // At most 24 bytes between the two places.
        let range = (at.min(other))..(at.min(other) + 24).min(at.max(other));
        match rng.random_range(0..6) {
            0 if at < body.len() => body[at] ^= 1 << rng.random_range(0..8),
            1 if at < body.len() => body[at] = rng.random(),
            2 => drop(body.drain(range)),
            3 => drop(body.splice(at..at, body[range].to_vec())),
            4 => body.truncate(at),
            _ => {
                let piece = PIECES.split(' ').choose(rng).unwrap_or_default();
                body.splice(at..at, piece.bytes());
            }
        }
    }
    body
}

/// Sends mutated callbacks, and counts their responses by status.
async fn attack(backend: Backend, identity_app: IdentityApp, seed: u64) -> BTreeMap<u16, usize> {
    let (mut rng, mut statuses) = (SmallRng::seed_from_u64(seed), BTreeMap::new());
    let format = CallbackFormat::BOTH[usize::from(seed.is_multiple_of(2))];
    let open_transaction = async || -> (Opened, String) {
        let opened = backend.open(&["name"]).await;
        let credential = identity_app.credential(&opened, "asha");
        let body = format.success(&opened.txn, &credential);
        (opened, body)
    };
    let (mut opened, mut body) = open_transaction().await;
    for number in 0..CALLBACKS {
        let mutant = mutate(body.as_bytes(), &mut rng);
        let sent_text = String::from_utf8_lossy(&mutant).into_owned();
        let answer = identity_app
            .request(&opened.callback_path(), format.content_type(), mutant)
            .send()
            .await
            .expect("an answer");
        let status = answer.status().as_u16();
        *statuses.entry(status).or_default() += 1;
        assert!(status < 500, "{status} to the callback {number} of seed {seed}: {sent_text}");
        if status == 200 {
            let result = backend.result(&opened.txn).await.ok();
            let claims = &result["data"]["verified_claims"];
            let is_genuine =
                claims["residentName"] == "Asha Rao" && claims.as_object().is_some_and(|claims| claims.len() == 1);
            assert!(
                result["data"]["verification_passed"] != true || is_genuine,
                "callback {number} of seed {seed} became {result}: {sent_text}"
            );
            (opened, body) = open_transaction().await;
        }
    }
    // The original body is still accepted.
    assert_eq!(identity_app.post(&opened, format, body).await.status, 200);
    statuses
}

#[tokio::test]
async fn a_mutated_callback_is_refused_or_keeps_its_signed_meaning() {
    let node = TestNode::start().await;
    let (backend, identity_app) = (node.backend_with_credits(100_000).await, node.identity_app());
    let strangers = (0..STRANGERS).map(|seed| attack(backend.clone(), identity_app.clone(), seed));
    let mut statuses = BTreeMap::new();
    for (status, count) in join_all(strangers).await.into_iter().flatten() {
        *statuses.entry(status).or_insert(0) += count;
    }
    eprintln!("mutated callbacks by status: {statuses:?}");
    let total: usize = statuses.values().sum();
    let refused: usize = statuses.range(400..).map(|(_, count)| count).sum();
    assert!(refused * 10 > total * 9, "at least nine of ten mutations are refused: {statuses:?}");
}
