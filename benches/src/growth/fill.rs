//! Fills a node faster than over HTTP: inside the process, it calls the same actor shards as the HTTP handlers, without
//! signatures and credentials. Actors, store, outbox and dispatcher do their usual work.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use sakshi::node::Node;
use sakshi_actors::{Complete, CompleteReply, Transactions};
use sakshi_authority::callback::failure_answer;
use sakshi_authority::claims::credential_name;
use sakshi_domain::claims::ClaimSet;
use sakshi_domain::clock::{Clock as _, SystemClock};
use sakshi_domain::http_url::{Schemes, WebhookUrl};
use sakshi_domain::ids::{EventId, TxnId};
use sakshi_domain::limits::CREDITS_PER_VERIFICATION;
use sakshi_domain::transaction::{Answer, AnswerDigest, CredentialIdentity, Failure as Declined, VerifiedClaims};
use sakshi_sandbox::residents::Resident;
use sakshi_store::OpenOutcome;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::process::own_memory;
use crate::requests::CLAIMS;
use crate::transactions::Opener;
use crate::{Failure, load};

/// Number of transactions opened, or opened and completed, at the same time.
const CONCURRENT: usize = 512;
const DAY: Duration = Duration::from_secs(86_400);
const NO_EVENT: Option<EventId> = None;
const NO_WEBHOOK: Option<WebhookUrl> = None;

/// The filler of the node in this process.
pub(crate) struct Filler<'a> {
    pub(crate) node: &'a Node,
    pub(crate) opener: &'a Opener,
    /// The window of the transactions.
    pub(crate) window: Duration,
}

impl Filler<'_> {
    /// Carries out a command and returns the node's status. Its `ids` are an even sample of the opened transactions.
    pub(crate) async fn carry_out(&self, command: &Value) -> Result<Value, Failure> {
        let count = usize::try_from(command["count"].as_u64().unwrap_or(0))?;
        let ids = match command["fill"].as_str() {
            Some("live") => self.open(count, usize::try_from(command["sample"].as_u64().unwrap_or(0))?).await?,
            Some("guests") => self.register(command["event"].as_str().unwrap_or_default().parse()?, count).await?,
            Some("backlog") => self.queue(command["url"].as_str().unwrap_or_default(), count).await?,
            _ => Vec::new(),
        };
        Ok(json!({
            "ids": ids.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "live": self.node.tree.live_transactions(),
            "resident": own_memory("VmRSS")?,
        }))
    }

    /// Opens transactions; returns about `sample` of their ids.
    async fn open(&self, count: usize, sample: usize) -> Result<Vec<TxnId>, Failure> {
        let interval = count.checked_div(sample).unwrap_or(usize::MAX).max(1);
        let ids = self.run_in_tasks(count, async |shard, number| {
            let id = self.open_one(shard, NO_EVENT, NO_WEBHOOK).await?;
            Ok((number % interval == 0).then_some(id))
        });
        ids.await
    }

    /// Registers guests of an event.
    async fn register(&self, event: EventId, count: usize) -> Result<Vec<TxnId>, Failure> {
        let claims = claims()?;
        let ids = self.run_in_tasks(count, async |shard, _| {
            let id = self.open_one(shard, Some(event), NO_WEBHOOK).await?;
            let answer = Answer::Credential {
                claims: claims.clone().into(),
                missing: ClaimSet::default(),
                malformed: ClaimSet::default(),
                holder_bound: true,
                identity: CredentialIdentity(random_bytes()),
                digest: AnswerDigest(random_bytes()),
            };
            complete(shard, id, answer).await.map(|()| None)
        });
        ids.await
    }

    /// Opens and completes transactions with webhooks to a URL.
    async fn queue(&self, url: &str, count: usize) -> Result<Vec<TxnId>, Failure> {
        let url = WebhookUrl::parse(url, Schemes::HttpAndHttps)?;
        let ids = self.run_in_tasks(count, async |shard, _| {
            let id = self.open_one(shard, NO_EVENT, Some(url.clone())).await?;
            complete(shard, id, failure_answer(id, Declined::new("User Reject", Some("301")))).await.map(|()| None)
        });
        ids.await
    }

    /// Opens a transaction and returns its id.
    async fn open_one(
        &self,
        shard: &Transactions,
        event: Option<EventId>,
        webhook: Option<WebhookUrl>,
    ) -> Result<TxnId, Failure> {
        let mut transaction = self.opener.transaction_on(shard, CREDITS_PER_VERIFICATION);
        let pending = Arc::make_mut(&mut transaction.pending);
        pending.expires_at = pending.opened_at + self.window;
        pending.event = event;
        pending.terms.webhook_url = webhook;
        let id = pending.id;
        match shard.open(transaction).await? {
            OpenOutcome::Opened { .. } => Ok(id),
            other => Err(format!("a transaction was not opened: {other:?}").into()),
        }
    }

    /// Repeats some work in many tasks over all shards; returns the ids that it returned.
    async fn run_in_tasks(
        &self,
        count: usize,
        work: impl AsyncFn(&Transactions, usize) -> Result<Option<TxnId>, Failure>,
    ) -> Result<Vec<TxnId>, Failure> {
        let shards: Vec<Transactions> =
            (0..load::cores()).map(|shard| self.node.tree.handles(shard).transactions).collect();
        let (shards, work) = (&shards, &work);
        let task = |task: usize| async move {
            let shard = &shards[task % shards.len()];
            let mut ids = Vec::new();
            for number in (task..count).step_by(CONCURRENT) {
                ids.extend(work(shard, number).await?);
            }
            Ok::<_, Failure>(ids)
        };
        let tasks: Result<Vec<Vec<TxnId>>, Failure> = join_all((0..CONCURRENT).map(task)).await.into_iter().collect();
        Ok(tasks?.concat())
    }
}

async fn complete(shard: &Transactions, id: TxnId, answer: Answer) -> Result<(), Failure> {
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
        CompleteReply::Accepted => Ok(()),
        other => Err(format!("a transaction was not completed: {other:?}").into()),
    }
}

/// Returns the claims in a guest's credential.
fn claims() -> Result<VerifiedClaims, Failure> {
    let (resident, now) = (Resident::find("asha").ok_or("no such resident")?, SystemClock.now());
    let requested = ClaimSet::parse(&CLAIMS)?;
    let disclosed =
        requested.iter().filter_map(|claim| Some((credential_name(claim).to_owned(), resident.claim(claim, now)?)));
    Ok(VerifiedClaims::new(disclosed.collect()))
}

/// Returns random bytes, for digests that must differ.
fn random_bytes() -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[..16].copy_from_slice(Uuid::new_v4().as_bytes());
    bytes[16..].copy_from_slice(Uuid::new_v4().as_bytes());
    bytes
}
