//! The PKCS#11 library of a token, and sessions with a key on the token.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

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
    #[error("the token does not provide the modulus and the exponent of the key")]
    NoPublicHalf,
    /// The public half does not verify the token's signatures.
    #[error("the public half of the key does not verify the token's signature")]
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

/// A PKCS#11 library: locked for writing while it restarts, for reading while it is called.
type Library = RwLock<Option<Pkcs11>>;

/// Every library of this process, by path. All keys share a started library. It is never unloaded: some cannot be.
static LIBRARIES: Mutex<BTreeMap<PathBuf, Arc<Library>>> = Mutex::new(BTreeMap::new());

/// Finalises every library once no call is in flight: some libraries crash a process that exits without. Afterwards no
/// key can be used.
pub fn finalize_libraries() {
    for library in LIBRARIES.lock().unwrap_or_else(PoisonError::into_inner).values() {
        let mut library = library.write().unwrap_or_else(PoisonError::into_inner);
        ARE_FINALIZED.store(true, Ordering::Release);
        if let Some(started) = library.take() {
            // The process ends whatever the result.
            drop(started.finalize());
        }
    }
}

/// True once libraries are finalised; they never restart.
static ARE_FINALIZED: AtomicBool = AtomicBool::new(false);

/// A token, as its library names it. Several URIs can name the same token.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct TokenName {
    /// Path of the library.
    module: PathBuf,
    label: String,
    serial: String,
}

/// By token: true once it has refused a PIN. The lock of a token lets one session at a time log in.
static PINS_REFUSED: Mutex<BTreeMap<TokenName, Arc<Mutex<bool>>>> = Mutex::new(BTreeMap::new());

/// The library of a key on a token, shared by the sessions of the key.
pub(super) struct Module {
    uri: KeyUri,
    library: Arc<Library>,
}

/// A session, and the handle of the key in it.
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
        Ok(Arc::new(Self { uri: uri.clone(), library }))
    }

    /// Calls the library while no other thread restarts it.
    ///
    /// # Errors
    /// A call fails, or the library does not start.
    pub(super) fn call<T>(&self, use_library: impl FnOnce(&Pkcs11) -> Result<T, TokenError>) -> Result<T, TokenError> {
        let library = self.library.read().unwrap_or_else(PoisonError::into_inner);
        use_library(library.as_ref().ok_or_else(|| TokenError::Failed("the library does not start".to_owned()))?)
    }

    /// Closes a session, unless the library is finalised: calling it would crash the process.
    pub(super) fn close(&self, session: KeySession) {
        let library = self.library.read().unwrap_or_else(PoisonError::into_inner);
        if library.is_some() { drop(session) } else { std::mem::forget(session) }
    }

    /// Restarts the library, because some libraries find a returned token only then. All sessions end.
    pub(super) fn restart(&self) -> Result<(), TokenError> {
        let mut library = self.library.write().unwrap_or_else(PoisonError::into_inner);
        if ARE_FINALIZED.load(Ordering::Acquire) {
            return Err(TokenError::Failed("the process is shutting down".to_owned()));
        }
        if let Some(old) = library.take() {
            // The restart goes on whatever the result.
            drop(old.finalize());
        }
        *library = Some(start(&self.uri)?);
        Ok(())
    }

    /// Opens a session, logs in, and finds the key.
    pub(super) fn open(&self, library: &Pkcs11) -> Result<KeySession, TokenError> {
        let (slot, token) = self.find_slot(library)?;
        let session = library.open_ro_session(slot)?;
        if let Some(pin) = self.uri.pin()? {
            log_in_once(token, || session.login(UserType::User, Some(&pin)))?;
        }
        let mut template = vec![Attribute::Class(ObjectClass::PRIVATE_KEY)];
        template.extend(self.uri.object.as_ref().map(|label| Attribute::Label(label.clone().into_bytes())));
        template.extend(self.uri.id.clone().map(Attribute::Id));
        let keys = session.find_objects(&template)?;
        let [key] = keys[..] else { return Err(TokenError::NoKey) };
        Ok(KeySession { session, key })
    }

    /// Finds the only slot whose token the URI names, and the token.
    fn find_slot(&self, library: &Pkcs11) -> Result<(Slot, TokenName), TokenError> {
        let mut slots = Vec::new();
        for slot in library.get_slots_with_token()? {
            // A token that is being removed gives no information.
            let Ok(token) = library.get_token_info(slot) else { continue };
            let (label, serial) = (token.label().trim_end(), token.serial_number().trim_end());
            let is_match = self.uri.token.as_deref().is_none_or(|wanted| wanted == label)
                && self.uri.serial.as_deref().is_none_or(|wanted| wanted == serial)
                && self.uri.slot.is_none_or(|id| id == slot.id());
            if is_match {
                let module = self.uri.module.clone();
                slots.push((slot, TokenName { module, label: label.to_owned(), serial: serial.to_owned() }));
            }
        }
        let found = slots.pop().filter(|_| slots.is_empty());
        found.ok_or(TokenError::NoToken)
    }
}

/// Logs in to a token, unless it has refused a PIN before: a further attempt, also for another key, would lock it.
fn log_in_once(token: TokenName, log_in: impl FnOnce() -> Result<(), Error>) -> Result<(), TokenError> {
    let of_token = Arc::clone(PINS_REFUSED.lock().unwrap_or_else(PoisonError::into_inner).entry(token).or_default());
    let mut pin_refused = of_token.lock().unwrap_or_else(PoisonError::into_inner);
    if *pin_refused {
        return Err(TokenError::PinRefused);
    }
    match log_in() {
        // The login belongs to the process, not to the session.
        Ok(()) | Err(Error::Pkcs11(RvError::UserAlreadyLoggedIn, _)) => Ok(()),
        Err(error) => {
            let error = TokenError::from(error);
            *pin_refused = error == TokenError::PinRefused;
            Err(error)
        }
    }
}

/// Loads and initialises the library of a key.
fn start(uri: &KeyUri) -> Result<Pkcs11, TokenError> {
    let unusable = |error: Error| TokenError::Library { path: uri.module.clone(), error: error.to_string() };
    let library = Pkcs11::new(&uri.module).map_err(unusable)?;
    library.initialize(CInitializeArgs::new(CInitializeFlags::OS_LOCKING_OK)).map_err(unusable)?;
    Ok(library)
}

impl KeySession {
    /// Returns the modulus and the exponent, from the private key or from the public key with the same id or label.
    pub(super) fn public_numbers(&self) -> Result<RsaPublicNumbers, TokenError> {
        let numbers_in = |attributes: Vec<Attribute>| {
            let (mut modulus, mut exponent) = (Vec::new(), Vec::new());
            for attribute in attributes {
                match attribute {
                    Attribute::Modulus(bytes) => modulus = bytes,
                    Attribute::PublicExponent(bytes) => exponent = bytes,
                    Attribute::KeyType(kind) if kind != KeyType::RSA => return Err(TokenError::OtherType),
                    _ => {}
                }
            }
            let numbers =
                RsaPublicNumbers { modulus: without_leading_zeros(modulus), exponent: without_leading_zeros(exponent) };
            Ok(Some(numbers).filter(|numbers| !numbers.modulus.is_empty() && !numbers.exponent.is_empty()))
        };
        const PUBLIC_ATTRIBUTES: [AttributeType; 3] =
            [AttributeType::KeyType, AttributeType::Modulus, AttributeType::PublicExponent];
        if let Some(numbers) = numbers_in(self.session.get_attributes(self.key, &PUBLIC_ATTRIBUTES)?)? {
            return Ok(numbers);
        }
        let names = self.session.get_attributes(self.key, &[AttributeType::Id, AttributeType::Label])?;
        let mut template = vec![Attribute::Class(ObjectClass::PUBLIC_KEY)];
        template.extend(
            names
                .into_iter()
                .filter(|name| !matches!(name, Attribute::Id(bytes) | Attribute::Label(bytes) if bytes.is_empty())),
        );
        let keys = self.session.find_objects(&template)?;
        let [public] = keys[..] else { return Err(TokenError::NoPublicHalf) };
        numbers_in(self.session.get_attributes(public, &PUBLIC_ATTRIBUTES)?)?.ok_or(TokenError::NoPublicHalf)
    }
}

fn without_leading_zeros(bytes: Vec<u8>) -> Vec<u8> {
    bytes.into_iter().skip_while(|byte| *byte == 0).collect()
}

#[cfg(test)]
mod tests {
    use cryptoki::context::Function;

    use super::*;

    #[test]
    fn a_refused_pin_is_not_tried_again_for_another_key_on_the_token() {
        let token = |serial: &str| TokenName {
            module: "/usr/lib/m.so".into(),
            label: "Bank HSM".to_owned(),
            serial: serial.to_owned(),
        };
        let mut attempts = 0;
        let mut log_in = |serial: &str, result: Result<(), Error>| {
            log_in_once(token(serial), || {
                attempts += 1;
                result
            })
        };
        let error_of = |error: RvError| Err(Error::Pkcs11(error, Function::Login));
        assert_eq!(log_in("1", error_of(RvError::UserAlreadyLoggedIn)), Ok(()));
        assert_eq!(log_in("1", error_of(RvError::PinIncorrect)), Err(TokenError::PinRefused));
        for _ in 0..2 {
            assert_eq!(log_in("1", Ok(())), Err(TokenError::PinRefused), "it is not tried");
        }
        assert_eq!(log_in("2", Ok(())), Ok(()), "another token");
        assert_eq!(attempts, 3);
    }
}
