//! Signs the guests' credentials.
//!
//! A thread signs them ahead, each with its own salts. The holder's key binding names the transaction, so it is signed when
//! the transaction is known. How long guests wait for a credential is recorded: it is the tester's delay, not the service's.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use sakshi_authority::intent::IntentClaims;
use sakshi_domain::claims::ClaimSet;
use sakshi_domain::clock::{Clock as _, SystemClock};
use sakshi_sandbox::issuer::{HolderKey, SandboxIssuer};
use sakshi_sandbox::keys::KeyError;
use sakshi_sandbox::residents::Resident;
use thiserror::Error;
use tokio::sync::Mutex as AsyncMutex;
use tokio::sync::mpsc::{self, Receiver};
use tokio::time::Instant;

use crate::record::SharedLatencies;

/// What guests are asked for, by the API's names.
pub(crate) const CLAIMS: [&str; 3] = ["name", "dob", "gender"];
/// Credentials that are signed ahead; one thread signs about 30,000 a second.
const STOCK: usize = 2_048;

/// Why no credential can be signed.
#[derive(Debug, Error)]
pub(crate) enum SignerError {
    #[error("the sandbox issuer's key {0} cannot be read ({1}); it lies under the store.path of a sandbox node")]
    File(String, std::io::Error),
    #[error("the sandbox issuer's key: {0}")]
    Key(#[from] KeyError),
    #[error("the sandbox has no resident with the claims that are asked for")]
    Nobody,
    #[error("the signing thread has ended")]
    Ended,
    #[error("no thread for signing: {0}")]
    Thread(#[from] std::io::Error),
}

#[derive(Debug)]
pub(crate) struct CredentialSigner {
    stock: AsyncMutex<Receiver<Result<String, KeyError>>>,
    holder: Arc<HolderKey>,
    /// How long guests waited for their credentials.
    pub(crate) waits: SharedLatencies,
}

impl CredentialSigner {
    /// Begins to sign ahead.
    ///
    /// # Errors
    /// Without a key, a resident or a thread.
    pub(crate) fn new(issuer: &str, key: &Path) -> Result<Self, SignerError> {
        let bytes = std::fs::read(key).map_err(|error| SignerError::File(key.display().to_string(), error))?;
        let issuer = SandboxIssuer::from_pkcs8(issuer, &bytes)?;
        let holder = Arc::new(HolderKey::generate()?);
        let claims = ClaimSet::parse(&CLAIMS).map_err(|_| SignerError::Nobody)?;
        let now = SystemClock.now();
        let has_all = |resident: &&'static Resident| claims.iter().all(|claim| resident.has(claim, now));
        let resident = Resident::all().iter().find(has_all).ok_or(SignerError::Nobody)?;
        let (fill, stock) = mpsc::channel(STOCK);
        let signing_holder = Arc::clone(&holder);
        // Ends when the stock is dropped.
        let sign = move || while fill.blocking_send(issuer.issue(resident, claims, &signing_holder, SystemClock.now())).is_ok() {};
        thread::Builder::new().name("signer".to_owned()).spawn(sign)?;
        Ok(Self { stock: AsyncMutex::new(stock), holder, waits: SharedLatencies::default() })
    }

    /// A credential that was never used, bound to the intent's transaction.
    pub(crate) async fn credential(&self, intent: &IntentClaims) -> Result<String, SignerError> {
        let began = Instant::now();
        let bare = self.stock.lock().await.recv().await.ok_or(SignerError::Ended)??;
        let bound = self.holder.bind(&bare, &intent.txn, &intent.aud, SystemClock.now())?;
        self.waits.add(began.elapsed());
        Ok(bound)
    }
}

/// How often an answer is posted again when nothing came back, and how long after.
pub(crate) const REDELIVERIES: [Duration; 3] = [Duration::from_millis(100), Duration::from_millis(500), Duration::from_secs(2)];
