//! The library of a token, and sessions with a key.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use cryptoki::context::{CInitializeArgs, CInitializeFlags, Pkcs11};
use cryptoki::error::{Error, RvError};
use cryptoki::object::{Attribute, AttributeType, KeyType, ObjectClass, ObjectHandle};
use cryptoki::session::{Session, UserType};
use cryptoki::slot::Slot;
use sakshi_authority::intent::RsaPublicNumbers;

use super::uri::KeyUri;

/// Error of a key on a token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The file of the PIN cannot be read.
    #[error("the PIN cannot be read: {path}: {error}")]
    Pin {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        error: std::io::ErrorKind,
    },
    /// The token refuses the PIN. There is no retry, because a token locks itself after several attempts.
    #[error("the token refuses the PIN, or is locked")]
    PinRefused,
    /// The library cannot be loaded or started.
    #[error("the library {path} cannot be used: {error}")]
    Library {
        /// Path of the library.
        path: PathBuf,
        /// Cause.
        error: String,
    },
    /// No token matches, or several do.
    #[error("there is no such token, or more than one")]
    NoToken,
    /// No key matches, or several do.
    #[error("the token has no such private key, or more than one")]
    NoKey,
    /// The key is not RSA.
    #[error("must be an RSA key: the authority reads RS256 only")]
    OtherType,
    /// The token does not provide the public half of the key.
    #[error("the token does not tell the modulus and the exponent of the key")]
    NoPublicHalf,
    /// The public half does not verify the token's signatures.
    #[error("the token's signature does not fit the public half of the key")]
    Unverified,
    /// The wrapped or unwrapped bytes are not a key.
    #[error("{0}")]
    Unwrapped(&'static str),
    /// Another failure of the token.
    #[error("the token failed: {0}")]
    Failed(String),
}

impl From<Error> for TokenError {
    fn from(error: Error) -> Self {
        match error {
            Error::Pkcs11(
                RvError::PinIncorrect
                | RvError::PinLocked
                | RvError::PinInvalid
                | RvError::PinExpired
                | RvError::PinLenRange,
                _,
            )
            | Error::PinNotSet => Self::PinRefused,
            other => Self::Failed(other.to_string()),
        }
    }
}

/// A library of tokens: locked for writing while it restarts, for reading while it is called.
type Library = RwLock<Option<Pkcs11>>;

/// Every library of this process, by path. Each starts once for all keys and is never unloaded, because some cannot be.
static LIBRARIES: Mutex<BTreeMap<PathBuf, Arc<Library>>> = Mutex::new(BTreeMap::new());

/// Finalises every library once no call is in flight, because some crash a process that exits without. No key can be
/// used afterwards.
pub fn end() {
    for library in LIBRARIES.lock().unwrap_or_else(PoisonError::into_inner).values() {
        let mut library = library.write().unwrap_or_else(PoisonError::into_inner);
        HAS_ENDED.store(true, Ordering::Release);
        if let Some(started) = library.take() {
            // The process ends whatever the result.
            drop(started.finalize());
        }
    }
}

/// True once libraries have ended; they never restart.
static HAS_ENDED: AtomicBool = AtomicBool::new(false);

/// The library of a key, shared by its sessions.
pub(super) struct Module {
    uri: KeyUri,
    library: Arc<Library>,
    /// True once the PIN was refused. One session at a time logs in.
    pin_refused: Mutex<bool>,
}

/// A session, and the key found in it.
pub(super) struct KeySession {
    pub(super) session: Session,
    pub(super) key: ObjectHandle,
}

impl Module {
    /// Loads and starts the library.
    pub(super) fn load(uri: &KeyUri) -> Result<Arc<Self>, TokenError> {
        let mut libraries = LIBRARIES.lock().unwrap_or_else(PoisonError::into_inner);
        let library = match libraries.get(&uri.module) {
            Some(started) => Arc::clone(started),
            None => {
                let started = Arc::new(RwLock::new(Some(start(uri)?)));
                libraries.insert(uri.module.clone(), Arc::clone(&started));
                started
            }
        };
        Ok(Arc::new(Self { uri: uri.clone(), library, pin_refused: Mutex::default() }))
    }

    /// Calls the library, and prevents its restart meanwhile.
    ///
    /// # Errors
    /// A call fails, or the library does not start.
    pub(super) fn call<T>(&self, calls: impl FnOnce(&Pkcs11) -> Result<T, TokenError>) -> Result<T, TokenError> {
        let library = self.library.read().unwrap_or_else(PoisonError::into_inner);
        calls(library.as_ref().ok_or_else(|| TokenError::Failed("its library does not start".to_owned()))?)
    }

    /// Closes a session, unless the library has ended: calling an ended library crashes the process.
    pub(super) fn close(&self, session: KeySession) {
        let library = self.library.read().unwrap_or_else(PoisonError::into_inner);
        if library.is_some() { drop(session) } else { std::mem::forget(session) }
    }

    /// Restarts the library, because some find a returned token only then. All sessions end.
    pub(super) fn restart(&self) -> Result<(), TokenError> {
        let mut library = self.library.write().unwrap_or_else(PoisonError::into_inner);
        if HAS_ENDED.load(Ordering::Acquire) {
            return Err(TokenError::Failed("the process ends".to_owned()));
        }
        if let Some(old) = library.take() {
            // The restart goes on whatever the result.
            drop(old.finalize());
        }
        *library = Some(start(&self.uri)?);
        Ok(())
    }

    fn refused(&self) -> MutexGuard<'_, bool> {
        self.pin_refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a session, logs in, and finds the key.
    pub(super) fn open(&self, library: &Pkcs11) -> Result<KeySession, TokenError> {
        let session = library.open_ro_session(self.slot(library)?)?;
        self.log_in(&session)?;
        let mut wanted = vec![Attribute::Class(ObjectClass::PRIVATE_KEY)];
        wanted.extend(self.uri.object.as_ref().map(|label| Attribute::Label(label.clone().into_bytes())));
        wanted.extend(self.uri.id.clone().map(Attribute::Id));
        let found = session.find_objects(&wanted)?;
        let [key] = found[..] else { return Err(TokenError::NoKey) };
        Ok(KeySession { session, key })
    }

    fn slot(&self, library: &Pkcs11) -> Result<Slot, TokenError> {
        let mut found = Vec::new();
        for slot in library.get_slots_with_token()? {
            // A token that is being removed gives no information.
            let Ok(token) = library.get_token_info(slot) else { continue };
            let is_it = self.uri.token.as_deref().is_none_or(|label| label == token.label().trim_end())
                && self.uri.serial.as_deref().is_none_or(|serial| serial == token.serial_number().trim_end())
                && self.uri.slot.is_none_or(|id| id == slot.id());
            if is_it {
                found.push(slot);
            }
        }
        if let [slot] = found[..] { Ok(slot) } else { Err(TokenError::NoToken) }
    }

    fn log_in(&self, session: &Session) -> Result<(), TokenError> {
        let Some(pin) = self.uri.pin()? else { return Ok(()) };
        let mut refused = self.refused();
        if *refused {
            return Err(TokenError::PinRefused);
        }
        match session.login(UserType::User, Some(&pin)) {
            // The login belongs to the process, not to the session.
            Ok(()) | Err(Error::Pkcs11(RvError::UserAlreadyLoggedIn, _)) => Ok(()),
            Err(error) => {
                let error = TokenError::from(error);
                *refused = error == TokenError::PinRefused;
                Err(error)
            }
        }
    }
}

fn start(uri: &KeyUri) -> Result<Pkcs11, TokenError> {
    let unusable = |error: Error| TokenError::Library { path: uri.module.clone(), error: error.to_string() };
    let library = Pkcs11::new(&uri.module).map_err(unusable)?;
    library.initialize(CInitializeArgs::new(CInitializeFlags::OS_LOCKING_OK)).map_err(unusable)?;
    Ok(library)
}

impl KeySession {
    /// Returns the public numbers of the key: its own, or those of the public key with the same id or label.
    pub(super) fn public_numbers(&self) -> Result<RsaPublicNumbers, TokenError> {
        let of = |attributes: Vec<Attribute>| {
            let (mut modulus, mut exponent) = (Vec::new(), Vec::new());
            for attribute in attributes {
                match attribute {
                    Attribute::Modulus(bytes) => modulus = bytes,
                    Attribute::PublicExponent(bytes) => exponent = bytes,
                    Attribute::KeyType(kind) if kind != KeyType::RSA => return Err(TokenError::OtherType),
                    _ => {}
                }
            }
            let numbers = RsaPublicNumbers { modulus: without_zeros(modulus), exponent: without_zeros(exponent) };
            Ok(Some(numbers).filter(|numbers| !numbers.modulus.is_empty() && !numbers.exponent.is_empty()))
        };
        const WANTED: [AttributeType; 3] =
            [AttributeType::KeyType, AttributeType::Modulus, AttributeType::PublicExponent];
        if let Some(numbers) = of(self.session.get_attributes(self.key, &WANTED)?)? {
            return Ok(numbers);
        }
        let names = self.session.get_attributes(self.key, &[AttributeType::Id, AttributeType::Label])?;
        let mut wanted = vec![Attribute::Class(ObjectClass::PUBLIC_KEY)];
        wanted.extend(
            names
                .into_iter()
                .filter(|name| !matches!(name, Attribute::Id(bytes) | Attribute::Label(bytes) if bytes.is_empty())),
        );
        let found = self.session.find_objects(&wanted)?;
        let [public] = found[..] else { return Err(TokenError::NoPublicHalf) };
        of(self.session.get_attributes(public, &WANTED)?)?.ok_or(TokenError::NoPublicHalf)
    }
}

fn without_zeros(bytes: Vec<u8>) -> Vec<u8> {
    bytes.into_iter().skip_while(|byte| *byte == 0).collect()
}
