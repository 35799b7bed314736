//! Signs the guests' credentials.
//!
//! A thread makes people ahead, each with a name, a device key and a signed credential. The holder's key binding names
//! the transaction, so it is signed later, and so is the new credential of a person who comes again. The waits of
//! guests for a credential are recorded: they are the tester's delay, not the service's.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use sakshi_authority::intent::IntentClaims;
use sakshi_domain::claims::ClaimSet;
use sakshi_domain::clock::{Clock as _, SystemClock};
use sakshi_sandbox::issuer::SandboxIssuer;
use sakshi_sandbox::keys::KeyError;
use sakshi_sandbox::residents::Resident;
use thiserror::Error;
use tokio::sync::Mutex as AsyncMutex;
use tokio::sync::mpsc::{self, Receiver};
use tokio::time::Instant;

use crate::people::{KnownPeople, Person};
use crate::record::SharedLatencies;

/// Claims that guests are asked for, by the API's names.
pub(crate) const CLAIMS: [&str; 3] = ["name", "dob", "gender"];
/// People whose credentials are signed ahead; one thread makes about 29,000 a second.
const STOCK: usize = 2_048;

/// The error when no credential can be signed.
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

/// A person with an unused credential.
type SignedPerson = (Person, String);

#[derive(Debug)]
pub(crate) struct CredentialSigner {
    stock: AsyncMutex<Receiver<Result<SignedPerson, KeyError>>>,
    issuer: Arc<SandboxIssuer>,
    claims: ClaimSet,
    /// The people so far, if any come again.
    known: Option<KnownPeople>,
    /// Waits of guests for their credentials.
    pub(crate) waits: SharedLatencies,
}

impl CredentialSigner {
    /// Begins to sign ahead. People are kept if some of them come again.
    ///
    /// # Errors
    /// There is no key, no resident or no thread.
    pub(crate) fn new(issuer: &str, key: &Path, some_come_again: bool) -> Result<Self, SignerError> {
        let bytes = std::fs::read(key).map_err(|error| SignerError::File(key.display().to_string(), error))?;
        let issuer = Arc::new(SandboxIssuer::from_pkcs8(issuer, &bytes)?);
        let claims = ClaimSet::parse(&CLAIMS).map_err(|_| SignerError::Nobody)?;
        let now = SystemClock.now();
        let has_all = |resident: &&'static Resident| claims.iter().all(|claim| resident.has(claim, now));
        let resident = Resident::all().iter().find(has_all).ok_or(SignerError::Nobody)?;
        let (fill, stock) = mpsc::channel(STOCK);
        let signing = Arc::clone(&issuer);
        let sign = move || {
            let signed = |number| {
                let person = Person::like(resident, number)?;
                let credential = signing.issue(&person.resident, claims, &person.holder, SystemClock.now())?;
                Ok((person, credential))
            };
            // Ends when the stock is dropped.
            for number in 0.. {
                if fill.blocking_send(signed(number)).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().name("signer".to_owned()).spawn(sign)?;
        let known = some_come_again.then(KnownPeople::default);
        Ok(Self { stock: AsyncMutex::new(stock), issuer, claims, known, waits: SharedLatencies::default() })
    }

    /// Returns an unused credential of this person, bound to the intent's transaction.
    pub(crate) async fn credential(&self, person: u64, intent: &IntentClaims) -> Result<String, SignerError> {
        let began = Instant::now();
        let (person, bare) = self.bare(person).await?;
        let bound = person.holder.bind(&bare, &intent.txn, &intent.aud, SystemClock.now())?;
        self.waits.add(began.elapsed());
        Ok(bound)
    }

    async fn bare(&self, number: u64) -> Result<(Arc<Person>, String), SignerError> {
        if let Some(person) = self.known.as_ref().and_then(|known| known.get(number)) {
            return Ok((Arc::clone(&person), self.another(&person)?));
        }
        let (new, bare) = self.stock.lock().await.recv().await.ok_or(SignerError::Ended)??;
        let new = Arc::new(new);
        let Some(known) = &self.known else { return Ok((new, bare)) };
        let person = known.get_or_insert(number, Arc::clone(&new));
        let bare = if Arc::ptr_eq(&person, &new) { bare } else { self.another(&person)? };
        Ok((person, bare))
    }

    /// Issues another credential for a person who has one.
    fn another(&self, person: &Person) -> Result<String, KeyError> {
        self.issuer.issue(&person.resident, self.claims, &person.holder, SystemClock.now())
    }
}

/// Pauses before an answer that got no response is posted again.
pub(crate) const REDELIVERIES: [Duration; 3] =
    [Duration::from_millis(100), Duration::from_millis(500), Duration::from_secs(2)];
