//! Signs with a key on a token, on dedicated threads with one session each. A failed signature is retried once in a new
//! session, because a restart of the token ends all sessions. Then the key is unavailable until the token signs again.
//! An idle token is probed, so that the node notices its loss.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::signature::{RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents};
use cryptoki::mechanism::Mechanism;
use sakshi_authority::intent::{IntentKey, IntentKeyError, RemoteKey, RsaPublicNumbers, SignatureFuture};
use tokio::sync::oneshot;

use super::module::{KeySession, Module, TokenError};
use super::uri::KeyUri;

/// Number of sessions of a key, each on its own thread: a token on the network answers after milliseconds.
const SESSIONS: usize = 8;
/// Maximum number of requests that wait for a session.
const QUEUE_MAX: usize = 1_024;
/// Interval between probes of an idle token.
const PROBE_INTERVAL: Duration = Duration::from_secs(5);
/// Pause before an unavailable token is retried.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// Length in bytes up to which the token itself hashes a message.
const MESSAGE_BYTES_MAX: usize = 4_096;
/// Prefix of a SHA-256 digest for signature (RFC 8017 §9.2).
const DIGEST_INFO: &[u8] = &[0x30, 0x31, 0x30, 0x0d, 6, 9, 0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1, 5, 0, 4, 0x20];
/// Message that an idle token signs.
const PROBE: &[u8] = b"sakshi asks whether the token signs";

/// A request for a signature.
struct Job {
    message: Vec<u8>,
    /// Receives the signature; dropped if there is none.
    answer: oneshot::Sender<Vec<u8>>,
}

/// A key on a token.
pub(crate) struct TokenKey {
    jobs: SyncSender<Job>,
    is_available: Arc<AtomicBool>,
}

impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenKey(available: {})", self.is_available())
    }
}

impl TokenKey {
    /// Opens the key, checks one of its signatures, and starts its threads.
    ///
    /// # Errors
    /// The token or the key cannot be used.
    pub(crate) fn open(uri: &KeyUri) -> Result<IntentKey, TokenError> {
        let (module, public) = open_and_verify(uri)?;
        let (jobs, queue) = sync_channel(QUEUE_MAX);
        let (queue, is_available) = (Arc::new(Mutex::new(queue)), Arc::new(AtomicBool::new(true)));
        for number in 0..SESSIONS {
            let thread = SigningThread {
                module: Arc::clone(&module),
                queue: Arc::clone(&queue),
                is_available: Arc::clone(&is_available),
            };
            let started = thread::Builder::new().name(format!("token-{number}")).spawn(move || thread.run());
            started.map_err(|error| TokenError::Failed(error.to_string()))?;
        }
        metrics::gauge!("sakshi_signer_available").set(1);
        Ok(IntentKey::remote(Arc::new(Self { jobs, is_available }), public)?)
    }
}

/// Opens a key and checks one of its signatures.
///
/// # Errors
/// The token or the key cannot be used.
pub(crate) fn check(uri: &KeyUri) -> Result<(), TokenError> {
    open_and_verify(uri).map(drop)
}

/// Returns the module of a key, after its public half has verified a signature.
fn open_and_verify(uri: &KeyUri) -> Result<(Arc<Module>, RsaPublicNumbers), TokenError> {
    let module = Module::load(uri)?;
    let (public, signature) = module.call(|library| {
        let session = module.open(library)?;
        Ok((session.public_numbers()?, session.sign(PROBE)?))
    })?;
    let key = RsaPublicKeyComponents { n: &public.modulus, e: &public.exponent };
    let verified = key.verify(&RSA_PKCS1_2048_8192_SHA256, PROBE, &signature);
    verified.map_err(|_| TokenError::Unverified)?;
    Ok((module, public))
}

impl From<IntentKeyError> for TokenError {
    fn from(error: IntentKeyError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl RemoteKey for TokenKey {
    fn sign(&self, message: Vec<u8>) -> SignatureFuture {
        let (answer, signature) = oneshot::channel();
        let is_queued = self.is_available() && self.jobs.try_send(Job { message, answer }).is_ok();
        Box::pin(async move { if is_queued { signature.await.ok() } else { None } })
    }

    fn is_available(&self) -> bool {
        self.is_available.load(Ordering::Acquire)
    }
}

impl KeySession {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, TokenError> {
        if message.len() <= MESSAGE_BYTES_MAX {
            return Ok(self.session.sign(&Mechanism::Sha256RsaPkcs, self.key, message)?);
        }
        // Tokens limit the bytes hashed in one call, and evidence may hold a photo.
        let hashed = [DIGEST_INFO, digest(&SHA256, message).as_ref()].concat();
        Ok(self.session.sign(&Mechanism::RsaPkcs, self.key, &hashed)?)
    }
}

/// A thread that signs the queued messages in a session of its own.
struct SigningThread {
    module: Arc<Module>,
    queue: Arc<Mutex<Receiver<Job>>>,
    is_available: Arc<AtomicBool>,
}

impl SigningThread {
    /// Signs until the queue is closed.
    fn run(self) {
        let mut session = None;
        loop {
            let job = {
                let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
                queue.recv_timeout(PROBE_INTERVAL)
            };
            match job {
                Ok(job) if job.answer.is_closed() => {}
                Ok(Job { message, answer }) => match self.sign_with_retry(&mut session, &message) {
                    // The requester may have stopped waiting.
                    Some(signature) => drop(answer.send(signature)),
                    None => {
                        drop(answer);
                        self.recover(&mut session);
                    }
                },
                // Only one thread at a time waits for jobs, so the token is probed once per interval.
                Err(RecvTimeoutError::Timeout) => {
                    if self.sign_with_retry(&mut session, PROBE).is_none() {
                        self.recover(&mut session);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    session.into_iter().for_each(|session| self.module.close(session));
                    return;
                }
            }
        }
    }

    /// Signs, and retries once in a new session. Logs a failure.
    fn sign_with_retry(&self, session: &mut Option<KeySession>, message: &[u8]) -> Option<Vec<u8>> {
        let signature = self.try_to_sign(session, message).or_else(|_| self.try_to_sign(session, message));
        signature.inspect_err(|error| tracing::error!(%error, "the token that signs intents failed to sign")).ok()
    }

    /// Marks the token unavailable. The first thread to do so waits until the token signs again.
    fn recover(&self, session: &mut Option<KeySession>) {
        if self.is_available.swap(false, Ordering::AcqRel) {
            metrics::gauge!("sakshi_signer_available").set(0);
            self.wait_for_token(session);
            self.is_available.store(true, Ordering::Release);
            metrics::gauge!("sakshi_signer_available").set(1);
            tracing::info!("the token that signs intents is available again");
        }
    }

    /// Signs a probe again and again, with a restart of the library in between, until the token signs.
    fn wait_for_token(&self, session: &mut Option<KeySession>) {
        loop {
            thread::park_timeout(RETRY_PAUSE);
            let probe = self.try_to_sign(session, PROBE).or_else(|_| {
                self.module.restart()?;
                self.try_to_sign(session, PROBE)
            });
            if probe.is_ok() {
                return;
            }
        }
    }

    /// Signs in the open session, or opens a session. A failed session is closed.
    fn try_to_sign(&self, session: &mut Option<KeySession>, message: &[u8]) -> Result<Vec<u8>, TokenError> {
        self.module.call(|library| {
            let open_session = match session.take() {
                Some(open_session) => open_session,
                None => self.module.open(library)?,
            };
            let signature = open_session.sign(message)?;
            *session = Some(open_session);
            Ok(signature)
        })
    }
}
