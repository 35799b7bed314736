//! Fills the outbox of a node and reads the outcomes of its webhooks. Each transaction is opened and completed with
//! eight claims, without HTTP and signatures.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use sakshi::node::Node;
use sakshi_actors::{Complete, CompleteReply, Transactions};
use sakshi_authority::claims::credential_name;
use sakshi_domain::claims::ClaimSet;
use sakshi_domain::clock::{Clock as _, SystemClock};
use sakshi_domain::delivery::{DeliveryOutcome, Subject};
use sakshi_domain::http_url::{Schemes, WebhookUrl};
use sakshi_domain::ids::TxnId;
use sakshi_domain::limits::CREDITS_PER_VERIFICATION;
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::{Answer, AnswerDigest, CredentialIdentity, VerifiedClaims};
use sakshi_sandbox::residents::Resident;
use sakshi_store::OpenOutcome;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::transactions::Opener;
use crate::{Failure, requests};

const RESIDENT: &str = "asha";
/// Number of transactions opened and completed at the same time.
const CONCURRENT: usize = 256;
const DAY: Duration = Duration::from_secs(86_400);
/// Time limit for all attempts to be recorded.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Pause between two reads of a record.
const INTERVAL: Duration = Duration::from_millis(5);

/// Transactions whose webhooks have not been read yet.
#[derive(Default)]
pub(crate) struct Backlog(Vec<TxnId>);

impl Backlog {
    /// Opens and completes `count` transactions with a webhook to the URL `to`.
    pub(crate) async fn queue(
        &mut self,
        shards: &[Transactions],
        opener: &Opener,
        count: usize,
        to: &str,
    ) -> Result<(), Failure> {
        let url = WebhookUrl::parse(to, Schemes::HttpAndHttps).map_err(|_| "not a webhook's URL")?;
        let claims = claims()?;
        let tasks = (0..CONCURRENT).map(|task| {
            let (shard, url, claims) = (&shards[task % shards.len()], &url, &claims);
            async move {
                let mut ids = Vec::new();
                for _ in 0..count / CONCURRENT + usize::from(task < count % CONCURRENT) {
                    ids.push(open_and_complete(shard, opener, url, claims).await?);
                }
                Ok::<_, Failure>(ids)
            }
        });
        for ids in join_all(tasks).await {
            self.0.append(&mut ids?);
        }
        Ok(())
    }

    /// Adds transactions that were completed over HTTP.
    pub(crate) fn add_completed(&mut self, ids: &[Value]) -> Result<(), Failure> {
        let ids =
            ids.iter().map(|id| id.as_str().and_then(|id| id.parse().ok()).ok_or("no transaction has such an id"));
        self.0.extend(ids.collect::<Result<Vec<TxnId>, _>>()?);
        Ok(())
    }

    /// Waits until every attempt is recorded. Returns the number of delivered webhooks, the rates of completions and of
    /// webhooks, and the 99th percentile of the delay between the two.
    pub(crate) async fn wait_until_settled(&mut self, node: &Node) -> Result<Value, Failure> {
        let deadline = Instant::now() + TIMEOUT;
        let mut delivered = 0;
        let mut spans = Vec::with_capacity(self.0.len());
        for id in self.0.drain(..) {
            let attempt = loop {
                let record = node.store.load_delivery(Subject::Transaction(id)).await?;
                match record.and_then(|record| Some((record.queued_at, record.claimed_at?, record.attempt?))) {
                    Some((queued, claimed, attempt)) => {
                        spans.push((queued, claimed + Duration::from_millis(attempt.duration_ms.into())));
                        break attempt;
                    }
                    None if Instant::now() > deadline => return Err("a webhook's attempt was never recorded".into()),
                    None => sleep(INTERVAL).await,
                }
            };
            delivered += usize::from(attempt.outcome == DeliveryOutcome::Delivered);
        }
        let Some(start) = spans.iter().map(|(queued, _)| *queued).min() else {
            return Err("nothing was delivered".into());
        };
        let rate = |last: Option<Timestamp>| {
            spans.len() as f64 / last.map_or(0.0, |last| last.since(start).as_secs_f64()).max(0.001)
        };
        let mut delays: Vec<Duration> = spans.iter().map(|(queued, ended)| ended.since(*queued)).collect();
        delays.sort_unstable();
        let p99 = delays[(delays.len() * 99 / 100).min(delays.len() - 1)];
        Ok(json!({
            "delivered": delivered,
            "completions": rate(spans.iter().map(|(queued, _)| *queued).max()),
            "webhooks": rate(spans.iter().map(|(_, ended)| *ended).max()),
            "p99_ms": p99.as_secs_f64() * 1e3,
        }))
    }
}

fn claims() -> Result<Arc<VerifiedClaims>, Failure> {
    let resident = Resident::find(RESIDENT).ok_or("no such resident")?;
    let now = SystemClock.now();
    let requested = ClaimSet::parse(&requests::CLAIMS)?;
    let disclosed =
        requested.iter().filter_map(|claim| Some((credential_name(claim).to_owned(), resident.claim(claim, now)?)));
    Ok(Arc::new(VerifiedClaims::new(disclosed.collect())))
}

/// Opens a transaction, completes it, and returns its id.
async fn open_and_complete(
    shard: &Transactions,
    opener: &Opener,
    url: &WebhookUrl,
    claims: &Arc<VerifiedClaims>,
) -> Result<TxnId, Failure> {
    let mut transaction = opener.transaction_on(shard, CREDITS_PER_VERIFICATION);
    Arc::make_mut(&mut transaction.pending).terms.webhook_url = Some(url.clone());
    let id = transaction.pending.id;
    if !matches!(shard.open(transaction).await?, OpenOutcome::Opened { .. }) {
        return Err("a transaction was not opened".into());
    }
    let mut unique = [0; 32];
    unique[..16].copy_from_slice(id.as_bytes());
    let answer = Answer::Credential {
        claims: Arc::clone(claims),
        missing: ClaimSet::default(),
        malformed: ClaimSet::default(),
        holder_bound: true,
        identity: CredentialIdentity(unique),
        digest: AnswerDigest(unique),
    };
    match shard
        .complete(
            id,
            Complete {
                answer,
                known: None,
                evidence: None,
                guest: sakshi_store::GuestDetails::default(),
                replay_window: DAY,
                result_ttl: DAY,
            },
        )
        .await?
    {
        CompleteReply::Accepted => Ok(id),
        other => Err(format!("a transaction was not completed: {other:?}").into()),
    }
}
