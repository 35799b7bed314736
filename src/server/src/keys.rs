//! Keys and trusted issuers, read before anything else starts. A sandbox generates missing keys once, under the store's
//! directory.

use std::fs::{DirBuilder, File};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::{hmac, rand};
use sakshi_authority::intent::{FurtherIntentKey, IntentKey, IntentKeyError};
use sakshi_authority::sdjwt::{Jwks, JwksError, TrustedIssuer};
use sakshi_domain::profile::Profile;
use sakshi_outbound::{ClientError, Egress, EgressOptions};
use sakshi_store::{Vault, VaultError, embedded};
use secrecy::ExposeSecret as _;
use tempfile::NamedTempFile;
use url::Url;
use zeroize::Zeroizing;

use crate::key_command::{self, KeyCommandError};
use crate::pkcs11::{self, TokenError, TokenKey};
use crate::sandbox;
use crate::settings::{FurtherKey, KeyPlace, KeySource, Outbound, Settings};
use crate::tls_files::{Listeners, TlsFileError};

/// File name of the encryption key that a sandbox generates.
const ENCRYPTION_KEY_FILE: &str = "encryption.key";

/// Keys and trusted issuers.
#[derive(Debug)]
pub struct KeyMaterial {
    /// Encrypts personal data.
    pub vault: Arc<Vault>,
    /// Secrets in callback addresses, derived from the encryption keys. The first makes new addresses; addresses of
    /// all secrets are accepted.
    pub callback_secrets: Vec<Zeroizing<Vec<u8>>>,
    /// Signs intents.
    pub intent_key: IntentKey,
    /// Intent keys that sign at other times.
    pub further_intent_keys: Vec<FurtherIntentKey>,
    /// Issuers whose credentials are accepted.
    pub issuers: Vec<TrustedIssuer>,
    /// The sandbox's own issuer; only in the sandbox profile.
    pub sandbox_issuer: Option<Arc<sandbox::Issuer>>,
}

/// Error of reading the keys.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// A file cannot be read.
    #[error("{key}: the file cannot be read: {path}: {error}")]
    Unreadable {
        /// Setting that names the file.
        key: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        error: std::io::Error,
    },
    /// A file cannot be written.
    #[error("{path} cannot be written: {error}")]
    Unwritable {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        error: std::io::Error,
    },
    /// The sandbox's store exists, but its key is missing.
    #[error(
        "store.encryption_key: {0} is missing, and the store beside it is encrypted with it; restore the file, or set \
            the key"
    )]
    KeyLost(PathBuf),
    /// An intent key cannot be read.
    #[error("{key}: {error}")]
    IntentKey {
        /// Setting that names the key.
        key: &'static str,
        /// Cause.
        error: IntentKeyError,
    },
    /// A key on a token cannot be used.
    #[error("{key}: {error}")]
    Token {
        /// Setting that names the key.
        key: &'static str,
        /// Cause.
        error: TokenError,
    },
    /// The key is not RSA; the authority reads RS256 only.
    #[error("{key}: must be an RSA key outside the sandbox profile: the authority reads RS256 only")]
    IntentKeyAlgorithm {
        /// Setting that names the key.
        key: &'static str,
    },
    /// The issuer's keys are not a key set.
    #[error("authority.jwks_path: {0}")]
    Jwks(#[from] JwksError),
    /// The command for the encryption key failed.
    #[error("store.encryption_key_command: {0}")]
    KeyCommand(#[from] KeyCommandError),
    /// An encryption key is invalid.
    #[error("store.encryption_key: {0}")]
    Vault(#[from] VaultError),
    /// The sandbox issuer's key cannot be used.
    #[error("the sandbox issuer's key: {0}")]
    Sandbox(#[from] sandbox::IssuerError),
    /// A listener's TLS files cannot be used.
    #[error(transparent)]
    Listener(#[from] TlsFileError),
    /// A certificate of `[outbound]` cannot be used.
    #[error(transparent)]
    Outbound(#[from] ClientError),
    /// A key that is required outside the sandbox is not set.
    #[error("{0} must be set outside the sandbox profile")]
    Missing(&'static str),
}

/// Reads all keys, and generates missing ones in a sandbox. `published_keys` is the key set of `authority.jwks_url`;
/// without it, the issuer's keys are those of `authority.jwks_path`.
///
/// # Errors
/// A key is missing, unreadable or invalid.
pub fn read_all(settings: &Settings, published_keys: Option<&[u8]>) -> Result<KeyMaterial, KeyError> {
    let sandbox_keys = SandboxKeys::from_settings(settings, MissingKeys::Generate);
    let keys = encryption_keys(settings, sandbox_keys.as_ref())?.ok_or(KeyError::Missing("store.encryption_key"))?;
    let callback_secrets = keys.iter().map(|key| derive(key, b"sakshi callback capability 1")).collect();
    let vault = Arc::new(Vault::new(&keys)?);
    let intent_key = intent_key(settings, sandbox_keys.as_ref(), TokenUse::Sign)?
        .ok_or(KeyError::Missing("authority.intent_key"))?;
    let further_intent_keys = further_intent_keys(settings, TokenUse::Sign)?;
    let mut issuers: Vec<TrustedIssuer> = trusted_issuer(settings, published_keys)?.into_iter().collect();
    let sandbox = sandbox_issuer(sandbox_keys.as_ref())?;
    let sandbox_issuer = sandbox.map(|(issuer, trusted)| {
        issuers.push(trusted);
        Arc::new(issuer)
    });
    Ok(KeyMaterial { vault, callback_secrets, intent_key, further_intent_keys, issuers, sandbox_issuer })
}

/// Returns the vault that the settings describe; generates nothing.
///
/// # Errors
/// The key is missing, unreadable or invalid.
pub(crate) fn vault(settings: &Settings) -> Result<Vault, KeyError> {
    let sandbox_keys = SandboxKeys::from_settings(settings, MissingKeys::Leave);
    let keys = encryption_keys(settings, sandbox_keys.as_ref())?.ok_or(KeyError::Missing("store.encryption_key"))?;
    Ok(Vault::new(&keys)?)
}

/// Returns every error that [`read_all`] would find, and writes nothing. Keys that the sandbox would generate may be
/// missing.
#[must_use]
pub fn check_all(settings: &Settings) -> Vec<KeyError> {
    let sandbox_keys = SandboxKeys::from_settings(settings, MissingKeys::Leave);
    let vault = encryption_keys(settings, sandbox_keys.as_ref())
        .and_then(|keys| Ok(keys.map(|keys| Vault::new(&keys)).transpose()?));
    let errors = [
        vault.err(),
        intent_key(settings, sandbox_keys.as_ref(), TokenUse::Check).err(),
        further_intent_keys(settings, TokenUse::Check).err(),
        egress(settings).err(),
        Listeners::read(&settings.server).err().map(KeyError::from),
        trusted_issuer(settings, None).err(),
        sandbox_issuer(sandbox_keys.as_ref()).err(),
    ];
    errors.into_iter().flatten().collect()
}

/// Returns the key that encrypts new records, then the keys that decrypt older records. Returns `None` if there is no
/// key yet.
fn encryption_keys(
    settings: &Settings,
    sandbox_keys: Option<&SandboxKeys>,
) -> Result<Option<Vec<Zeroizing<Vec<u8>>>>, KeyError> {
    let store = &settings.store;
    let mut keys = match (&store.encryption_key, sandbox_keys) {
        (Some(KeySource::Inline(key)), _) => vec![key.bytes().clone()],
        (Some(KeySource::Command(command)), _) => {
            key_command::run(command)?.iter().map(|key| key.bytes().clone()).collect()
        }
        (Some(KeySource::Wrapped { keys, unwrapping_key }), _) => {
            let unwrapped: Result<_, _> = keys.iter().map(|key| pkcs11::unwrap_key(unwrapping_key, key)).collect();
            unwrapped.map_err(|error| KeyError::Token { key: "store.encryption_key_wrapped", error })?
        }
        (None, Some(sandbox_keys)) => {
            let path = sandbox_keys.path(ENCRYPTION_KEY_FILE);
            if !path.exists() && embedded::exists(&store.path) {
                return Err(KeyError::KeyLost(path));
            }
            match sandbox_keys.read_or_generate(ENCRYPTION_KEY_FILE, random_key)? {
                Some(key) => vec![key],
                None => return Ok(None),
            }
        }
        (None, None) => return Ok(None),
    };
    keys.extend(store.previous_encryption_keys.iter().map(|key| key.bytes().clone()));
    Ok(Some(keys))
}

/// Returns the key that signs intents by default; `None` if there is none yet, or it was only checked.
fn intent_key(
    settings: &Settings,
    sandbox_keys: Option<&SandboxKeys>,
    token_use: TokenUse,
) -> Result<Option<IntentKey>, KeyError> {
    const SETTING: &str = "authority.intent_key";
    match (&settings.authority.intent_key, sandbox_keys) {
        (Some(place), _) => read_intent_key(settings, SETTING, place, token_use),
        (None, Some(sandbox_keys)) => {
            let pem = sandbox_keys.read_or_generate("intent.pem", || Ok(generate_intent_key()?.into_bytes()))?;
            pem.map(|pem| {
                IntentKey::from_pem(&String::from_utf8_lossy(&pem)).map_err(|error| intent_key_error(SETTING, error))
            })
            .transpose()
        }
        (None, None) => Ok(None),
    }
}

fn generate_intent_key() -> Result<String, KeyError> {
    IntentKey::generate_rs256().map(|(_, pem)| pem).map_err(|error| intent_key_error("authority.intent_key", error))
}

/// Purpose for which a key on a token is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TokenUse {
    /// Signs intents from now on.
    Sign,
    /// Signs once, to check the settings.
    Check,
}

/// Reads a private key for intents. Returns `None` for a key on a token that was only checked.
fn read_intent_key(
    settings: &Settings,
    setting: &'static str,
    place: &KeyPlace,
    token_use: TokenUse,
) -> Result<Option<IntentKey>, KeyError> {
    match place {
        KeyPlace::File(path) => {
            let pem = read(setting, path)?;
            let key = IntentKey::from_pem(&String::from_utf8_lossy(&pem))
                .map_err(|error| intent_key_error(setting, error))?;
            let is_readable = key.algorithm() == "RS256" || settings.profile == Profile::Sandbox;
            if is_readable { Ok(Some(key)) } else { Err(KeyError::IntentKeyAlgorithm { key: setting }) }
        }
        KeyPlace::Token(uri) => {
            let key = match token_use {
                TokenUse::Sign => TokenKey::open(uri).map(Some),
                TokenUse::Check => pkcs11::check(uri).map(|()| None),
            };
            key.map_err(|error| KeyError::Token { key: setting, error })
        }
    }
}

fn intent_key_error(key: &'static str, error: IntentKeyError) -> KeyError {
    KeyError::IntentKey { key, error }
}

/// Returns the intent keys that sign from a later time, or when operators choose them.
fn further_intent_keys(settings: &Settings, token_use: TokenUse) -> Result<Vec<FurtherIntentKey>, KeyError> {
    let read = |FurtherKey { kid, place, not_before }: &FurtherKey| {
        let key = read_intent_key(settings, "authority.further_intent_keys", place, token_use)?;
        Ok(key.map(|key| FurtherIntentKey { kid: kid.clone(), key, not_before: *not_before }))
    };
    settings.authority.further_intent_keys.iter().filter_map(|key| read(key).transpose()).collect()
}

/// Returns the outbound network configuration of the settings.
///
/// # Errors
/// A file cannot be read or used.
pub(crate) fn egress(settings: &Settings) -> Result<Egress, KeyError> {
    let Outbound { proxy, no_proxy, ca_file, client_cert, client_key } = &settings.outbound;
    let file = |key, path: &Option<PathBuf>| path.as_deref().map(|path| read(key, path)).transpose();
    let (chain, key) = (file("outbound.client_cert", client_cert)?, file("outbound.client_key", client_key)?);
    Ok(Egress::new(&EgressOptions {
        proxy: proxy.as_ref().and_then(|url| Url::parse(url.expose_secret()).ok()),
        no_proxy: no_proxy.clone(),
        roots_pem: file("outbound.ca_file", ca_file)?.map(|pem| pem.to_vec()),
        identity_pem: chain.zip(key).map(|(chain, key)| (chain.to_vec(), key)),
        pinned_pem: None,
    })?)
}

/// Returns the issuer of the settings with its keys; `None` if none is set, or its keys are not fetched yet.
fn trusted_issuer(settings: &Settings, published_keys: Option<&[u8]>) -> Result<Option<TrustedIssuer>, KeyError> {
    let (Some(issuer), Some(path)) = (&settings.authority.issuer, &settings.authority.jwks_path) else {
        return Ok(None);
    };
    let jwks = match published_keys {
        Some(published_keys) => Jwks::parse(published_keys)?,
        // The node fetches them at the start.
        None if settings.authority.jwks_url.is_some() && !path.exists() => return Ok(None),
        None => Jwks::parse(&read("authority.jwks_path", path)?)?,
    };
    Ok(Some(TrustedIssuer { issuer: issuer.clone(), jwks }))
}

/// Returns the sandbox's issuer, for signing credentials and for trusting them.
fn sandbox_issuer(sandbox_keys: Option<&SandboxKeys>) -> Result<Option<(sandbox::Issuer, TrustedIssuer)>, KeyError> {
    let Some(sandbox_keys) = sandbox_keys else { return Ok(None) };
    let Some(pkcs8) = sandbox_keys.read_or_generate("issuer.p8", || Ok(sandbox::new_issuer_key()?))? else {
        return Ok(None);
    };
    let issuer = sandbox::issuer(&pkcs8)?;
    let trusted = TrustedIssuer { issuer: sandbox::ISSUER.into(), jwks: Jwks::parse(issuer.jwks_json().as_bytes())? };
    Ok(Some((issuer, trusted)))
}

/// Derives a key for one purpose from the main key (HMAC as a PRF).
fn derive(key: &[u8], purpose: &[u8]) -> Zeroizing<Vec<u8>> {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), purpose);
    Zeroizing::new(tag.as_ref().to_vec())
}

/// Returns 32 random bytes.
fn random_key() -> Result<Vec<u8>, KeyError> {
    let mut bytes = vec![0; 32];
    let no_random_bytes = |_| KeyError::Unreadable {
        key: "store.encryption_key",
        path: "/dev/urandom".into(),
        error: ErrorKind::Other.into(),
    };
    rand::fill(&mut bytes).map_err(no_random_bytes)?;
    Ok(bytes)
}

/// Reads a file that the setting `key` names.
fn read(key: &'static str, path: &Path) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    let mut bytes = Zeroizing::new(Vec::new());
    let outcome = File::open(path).and_then(|mut file| file.read_to_end(&mut bytes));
    outcome.map_err(|error| KeyError::Unreadable { key, path: path.to_owned(), error })?;
    Ok(bytes)
}

/// Handling of keys that the sandbox has not generated yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MissingKeys {
    Generate,
    Leave,
}

/// Files with the keys that the sandbox generates.
struct SandboxKeys {
    directory: PathBuf,
    missing: MissingKeys,
}

impl SandboxKeys {
    /// Returns `None` outside the sandbox profile.
    fn from_settings(settings: &Settings, missing: MissingKeys) -> Option<Self> {
        (settings.profile == Profile::Sandbox)
            .then(|| Self { directory: settings.store.path.join("sandbox-keys"), missing })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Returns the bytes of a file. A missing file is written with a key of `generate`, or left, as `missing` says.
    fn read_or_generate(
        &self,
        name: &str,
        generate: impl FnOnce() -> Result<Vec<u8>, KeyError>,
    ) -> Result<Option<Zeroizing<Vec<u8>>>, KeyError> {
        let path = self.path(name);
        if !path.exists() {
            if self.missing == MissingKeys::Leave {
                return Ok(None);
            }
            let bytes = Zeroizing::new(generate()?);
            self.write(&path, &bytes).map_err(|error| KeyError::Unwritable { path: path.clone(), error })?;
        }
        read("store.path", &path).map(Some)
    }

    /// Writes the file atomically, under a temporary name first, and never over an existing one.
    fn write(&self, path: &Path, bytes: &[u8]) -> std::io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        let mut draft = NamedTempFile::new_in(&self.directory)?;
        draft.write_all(bytes)?;
        draft.as_file().sync_all()?;
        match draft.persist_noclobber(path).map_err(|error| error.error) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            written => written.map(drop),
        }
    }
}
