//! Transactions that benches open without HTTP, with terms of an ordinary size and a window longer than any
//! measurement.

use std::sync::Arc;
use std::time::Duration;

use sakshi_actors::Transactions;
use sakshi_domain::channel::Channel;
use sakshi_domain::claims::ClaimSet;
use sakshi_domain::clock::{Clock as _, SystemClock};
use sakshi_domain::http_url::{HttpUrl, Schemes};
use sakshi_domain::ids::{AppId, ClientId, TxnId};
use sakshi_domain::language::Language;
use sakshi_domain::request_id::RequestId;
use sakshi_domain::transaction::{OptionalTerms, Pending, Terms};
use sakshi_store::OpenTransaction;

use crate::Failure;
use crate::requests;

const WINDOW: Duration = Duration::from_secs(4 * 3_600);

/// A builder of transactions for one client and app.
pub(crate) struct Opener {
    client: ClientId,
    app: AppId,
    /// The page that a browser shows after the completion.
    redirect: HttpUrl,
    claims: ClaimSet,
}

impl Opener {
    pub(crate) fn new(client: ClientId, app: AppId) -> Result<Self, Failure> {
        let redirect = HttpUrl::parse("https://shop.example/checkout/verified?order=12345", Schemes::HttpsOnly)?;
        Ok(Self { client, app, redirect, claims: ClaimSet::parse(&requests::CLAIMS)? })
    }

    /// Builds a transaction to open on a shard. It has no webhook, so that its completion sends none. Optional terms
    /// make its record at least as large as with one.
    pub(crate) fn transaction_on(&self, shard: &Transactions, cost: u64) -> OpenTransaction {
        self.transaction(shard.new_id(&self.client), cost)
    }

    /// Builds a transaction to open in the store without a shard.
    pub(crate) fn transaction_in_store(&self, cost: u64) -> OpenTransaction {
        self.transaction(TxnId::generate(self.client.partition(), 0), cost)
    }

    /// Builds a transaction with an id; `cost` is its price in credits.
    fn transaction(&self, id: TxnId, cost: u64) -> OpenTransaction {
        let now = SystemClock.now();
        let extras = OptionalTerms {
            name_hint: None,
            client_reference_id: Some("order-12345".into()),
            redirect_url: Some(self.redirect.clone()),
            ..OptionalTerms::default()
        };
        let terms = Terms {
            claims: self.claims,
            channel: Channel::Web,
            language: Language::ENGLISH,
            face_auth: true,
            webhook_url: None,
            request_id: RequestId::mint(),
            extras: Some(Box::new(extras)),
        };
        let pending = Arc::new(Pending {
            id,
            client: self.client.clone(),
            app: self.app.clone(),
            event: None,
            opened_at: now,
            expires_at: now + WINDOW,
            terms,
        });
        OpenTransaction { pending, cost, idempotency: None, pending_max: None, intent: None }
    }
}
