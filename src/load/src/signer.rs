//! The identity app of every guest: signs credentials.
//!
//! Each credential is signed anew, with salts of its own, by threads that keep a stock of them ahead
//! of the guests. What must name the transaction, the holder's key binding, is signed when it is
//! known. How long a guest had to wait for either is counted: it is the tester's delay, not the service's.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
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

use crate::record::{Latencies, add};

/// What guests are asked for, by the API's names.
pub const CLAIMS: [&str; 3] = ["name", "dob", "gender"];
/// Credentials that are signed ahead.
const STOCK: usize = 2_048;
/// Threads that sign; one does about 30,000 a second.
const SIGNERS: usize = 1;

/// Why no credential can be signed.
#[derive(Debug, Error)]
pub enum SignerError {
    /// The key file.
    #[error("the sandbox issuer's key {0} cannot be read ({1}); it lies under the store.path of a sandbox node")]
    File(String, std::io::Error),
    /// What is in it.
    #[error("the sandbox issuer's key: {0}")]
    Key(#[from] KeyError),
    /// The sandbox knows nobody.
    #[error("the sandbox has no resident with the claims that are asked for")]
    Nobody,
    /// The signing threads have ended.
    #[error("nobody signs credentials any more")]
    Ended,
    /// The system has no thread left.
    #[error("no thread for signing: {0}")]
    Thread(#[from] std::io::Error),
}

/// Signs for everybody.
#[derive(Debug)]
pub struct CredentialSigner {
    stock: AsyncMutex<Receiver<Result<String, KeyError>>>,
    holder: Arc<HolderKey>,
    waits: Mutex<Latencies>,
}

impl CredentialSigner {
    /// Begins to sign ahead.
    ///
    /// # Errors
    /// Without a key, a resident or a thread.
    pub fn new(issuer: &str, key: &Path, waits: Latencies) -> Result<Self, SignerError> {
        let bytes = std::fs::read(key).map_err(|error| SignerError::File(key.display().to_string(), error))?;
        let issuer = Arc::new(SandboxIssuer::from_pkcs8(issuer, &bytes)?);
        let holder = Arc::new(HolderKey::generate()?);
        let claims = ClaimSet::parse(&CLAIMS).map_err(|_| SignerError::Nobody)?;
        let now = SystemClock.now();
        let has_all = |resident: &&'static Resident| claims.iter().all(|claim| resident.has(claim, now));
        let resident = Resident::all().iter().find(has_all).ok_or(SignerError::Nobody)?;
        let (fill, stock) = mpsc::channel(STOCK);
        for _ in 0..SIGNERS {
            let (fill, issuer, holder) = (fill.clone(), Arc::clone(&issuer), Arc::clone(&holder));
            // Ends when the stock is dropped.
            let sign = move || while fill.blocking_send(issuer.issue(resident, claims, &holder, SystemClock.now())).is_ok() {};
            thread::Builder::new().name("signer".to_owned()).spawn(sign)?;
        }
        Ok(Self { stock: AsyncMutex::new(stock), holder, waits: Mutex::new(waits) })
    }

    /// A credential that was never used, bound to the intent's transaction.
    ///
    /// # Errors
    /// When it cannot be signed.
    pub async fn credential(&self, intent: &IntentClaims) -> Result<String, SignerError> {
        let began = Instant::now();
        let bare = self.stock.lock().await.recv().await.ok_or(SignerError::Ended)??;
        let bound = self.holder.bind(&bare, &intent.txn, &intent.aud, SystemClock.now())?;
        add(&mut self.waits.lock().unwrap_or_else(PoisonError::into_inner), began.elapsed());
        Ok(bound)
    }

    /// How long guests waited for their credentials.
    #[must_use]
    pub fn waits(&self) -> Latencies {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// How often an answer is posted again when nothing came back, and how long after.
pub const REDELIVERIES: [Duration; 3] = [Duration::from_millis(100), Duration::from_millis(500), Duration::from_secs(2)];
