//! Signs the guests' credentials.
//!
//! A thread prepares people, each with a name, a device key and a signed credential. Two things are signed later: the
//! holder's key binding, because it names the transaction, and new credentials of returning people. The times for which
//! guests wait for a credential are recorded: the tester causes these delays, not the service.

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

/// Claims that are requested from guests, by their names in the API.
pub(crate) const CLAIMS: [&str; 3] = ["name", "dob", "gender"];
/// Number of people with a prepared credential. One thread signs about 29,000 credentials a second.
const PREPARED_MAX: usize = 2_048;

/// The reason why a credential cannot be signed.
#[derive(Debug, Error)]
pub(crate) enum SignerError {
    #[error("the sandbox issuer's key {0} cannot be read ({1}); it lies under the store.path of a sandbox node")]
    File(String, std::io::Error),
    #[error("the sandbox issuer's key: {0}")]
    Key(#[from] KeyError),
    #[error("the sandbox has no resident with the requested claims")]
    NoResident,
    #[error("the signing thread has ended")]
    Ended,
    #[error("no thread for signing: {0}")]
    Thread(#[from] std::io::Error),
}

/// A person with an unused credential.
type SignedPerson = (Person, String);

/// Prepares people with credentials, and binds the credentials to transactions.
#[derive(Debug)]
pub(crate) struct CredentialSigner {
    prepared: AsyncMutex<Receiver<Result<SignedPerson, KeyError>>>,
    issuer: Arc<SandboxIssuer>,
    claims: ClaimSet,
    /// The people so far, if people can come again.
    known_people: Option<KnownPeople>,
    /// Times for which guests waited for their credentials.
    pub(crate) waits: SharedLatencies,
}

impl CredentialSigner {
    /// Starts to prepare credentials. If `has_returning_people`, the people are stored.
    ///
    /// # Errors
    /// [`SignerError`] if there is no key, no suitable resident or no thread.
    pub(crate) fn new(issuer: &str, key: &Path, has_returning_people: bool) -> Result<Self, SignerError> {
        let bytes = std::fs::read(key).map_err(|error| SignerError::File(key.display().to_string(), error))?;
        let issuer = Arc::new(SandboxIssuer::from_pkcs8(issuer, &bytes)?);
        let claims = ClaimSet::parse(&CLAIMS).map_err(|_| SignerError::NoResident)?;
        let now = SystemClock.now();
        let has_all = |resident: &&'static Resident| claims.iter().all(|claim| resident.has(claim, now));
        let resident = Resident::all().iter().find(has_all).ok_or(SignerError::NoResident)?;
        let (sender, prepared) = mpsc::channel(PREPARED_MAX);
        let thread_issuer = Arc::clone(&issuer);
        let prepare_all = move || {
            let prepare = |number| {
                let person = Person::from_resident(resident, number)?;
                let credential = thread_issuer.issue(&person.resident, claims, &person.holder, SystemClock.now())?;
                Ok((person, credential))
            };
            // Ends when the receiver is dropped.
            for number in 0.. {
                if sender.blocking_send(prepare(number)).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().name("signer".to_owned()).spawn(prepare_all)?;
        let known_people = has_returning_people.then(KnownPeople::default);
        let prepared = AsyncMutex::new(prepared);
        Ok(Self { prepared, issuer, claims, known_people, waits: SharedLatencies::default() })
    }

    /// Returns an unused credential of this person, bound to the transaction of the intent.
    pub(crate) async fn credential(&self, person: u64, intent: &IntentClaims) -> Result<String, SignerError> {
        let started_at = Instant::now();
        let (person, credential) = self.unbound_credential(person).await?;
        let bound = person.holder.bind(&credential, &intent.txn, &intent.aud, SystemClock.now())?;
        self.waits.add(started_at.elapsed());
        Ok(bound)
    }

    /// Returns a person and an unused credential that is not bound to a transaction yet.
    async fn unbound_credential(&self, number: u64) -> Result<(Arc<Person>, String), SignerError> {
        if let Some(person) = self.known_people.as_ref().and_then(|known| known.get(number)) {
            return Ok((Arc::clone(&person), self.issue_again(&person)?));
        }
        let (new, credential) = self.prepared.lock().await.recv().await.ok_or(SignerError::Ended)??;
        let new = Arc::new(new);
        let Some(known) = &self.known_people else { return Ok((new, credential)) };
        let person = known.get_or_insert(number, Arc::clone(&new));
        let credential = if Arc::ptr_eq(&person, &new) { credential } else { self.issue_again(&person)? };
        Ok((person, credential))
    }

    /// Issues a new credential for a returning person.
    fn issue_again(&self, person: &Person) -> Result<String, KeyError> {
        self.issuer.issue(&person.resident, self.claims, &person.holder, SystemClock.now())
    }
}

/// Pauses before the retries of a callback that got no final response.
pub(crate) const REDELIVERIES: [Duration; 3] =
    [Duration::from_millis(100), Duration::from_millis(500), Duration::from_secs(2)];
