//! Keys and trust, gathered before anything starts: what the settings name is read; what the
//! sandbox may lack is generated once and kept under the store's directory.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::{hmac, rand};
use sakshi_authority::intent::{IntentKey, IntentKeyError};
use sakshi_authority::sdjwt::{Jwks, JwksError, TrustedIssuer};
use sakshi_domain::profile::Profile;
use sakshi_sandbox::issuer::SandboxIssuer;
use sakshi_sandbox::keys::KeyError;
use sakshi_store::{Vault, VaultError};
use zeroize::Zeroizing;

use crate::settings::Settings;

/// The `iss` of the sandbox issuer's credentials.
const SANDBOX_ISSUER: &str = "https://issuer.sandbox.invalid";

/// Keys and trust.
#[derive(Debug)]
pub struct Material {
    /// Seals what is personal.
    pub vault: Arc<Vault>,
    /// Make callback addresses unguessable; the same on every node with the same encryption keys.
    /// Those of previous keys are still recognised.
    pub callback_secrets: Vec<Zeroizing<Vec<u8>>>,
    /// Signs intents.
    pub intent_key: IntentKey,
    /// Whose credentials are believed.
    pub issuers: Vec<TrustedIssuer>,
    /// The test issuer; in the sandbox profile only.
    pub sandbox_issuer: Option<Arc<SandboxIssuer>>,
}

/// Why keys and trust could not be gathered.
#[derive(Debug, thiserror::Error)]
pub enum MaterialError {
    /// A file cannot be read or written.
    #[error("{path}: {error}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The intent key is no key.
    #[error("authority.intent_key_path: {0}")]
    IntentKey(#[from] IntentKeyError),
    /// The issuer's keys are no key set.
    #[error("authority.jwks_path: {0}")]
    Jwks(#[from] JwksError),
    /// An encryption key does not fit.
    #[error("store.encryption_key: {0}")]
    Vault(#[from] VaultError),
    /// The sandbox issuer's key cannot be used.
    #[error("the sandbox issuer's key: {0}")]
    Sandbox(#[from] KeyError),
    /// A key is required outside the sandbox and is not set.
    #[error("{0} must be set outside the sandbox profile")]
    Missing(&'static str),
}

/// Gathers everything.
///
/// # Errors
/// What is missing, unreadable or no key.
pub fn gather(settings: &Settings) -> Result<Material, MaterialError> {
    let kept = (settings.profile == Profile::Sandbox).then(|| Kept { directory: settings.store.path.join("sandbox-keys") });
    let main_key = match (&settings.store.encryption_key, &kept) {
        (Some(key), _) => key.bytes().clone(),
        (None, Some(kept)) => kept.read_or_make("encryption.key", random_key)?,
        (None, None) => return Err(MaterialError::Missing("store.encryption_key")),
    };
    let previous = settings.store.previous_encryption_keys.iter().map(|key| key.bytes().clone());
    let keys: Vec<Zeroizing<Vec<u8>>> = std::iter::once(main_key).chain(previous).collect();
    let callback_secrets = keys.iter().map(|key| derive(key, b"sakshi callback capability 1")).collect();
    let vault = Arc::new(Vault::new(&keys)?);

    let intent_pem = match (&settings.authority.intent_key_path, &kept) {
        (Some(path), _) => read(path)?,
        (None, Some(kept)) => kept.read_or_make("intent.pem", || Ok(IntentKey::generate_rs256()?.1.into_bytes()))?,
        (None, None) => return Err(MaterialError::Missing("authority.intent_key_path")),
    };
    let intent_key = IntentKey::from_pem(&String::from_utf8_lossy(&intent_pem))?;

    let mut issuers = Vec::new();
    if let (Some(issuer), Some(path)) = (&settings.authority.issuer, &settings.authority.jwks_path) {
        issuers.push(TrustedIssuer { issuer: issuer.clone(), jwks: Jwks::parse(&read(path)?)? });
    }
    let mut sandbox_issuer = None;
    if let Some(kept) = &kept {
        let pkcs8 = kept.read_or_make("issuer.p8", || Ok(SandboxIssuer::generate(SANDBOX_ISSUER)?.to_pkcs8()?))?;
        let issuer = SandboxIssuer::from_pkcs8(SANDBOX_ISSUER, &pkcs8)?;
        issuers.push(TrustedIssuer { issuer: SANDBOX_ISSUER.into(), jwks: Jwks::parse(issuer.jwks_json().as_bytes())? });
        sandbox_issuer = Some(Arc::new(issuer));
    }
    Ok(Material { vault, callback_secrets, intent_key, issuers, sandbox_issuer })
}

/// A key for one purpose from the main key (HMAC as a PRF).
fn derive(key: &[u8], purpose: &[u8]) -> Zeroizing<Vec<u8>> {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), purpose);
    Zeroizing::new(tag.as_ref().to_vec())
}

fn random_key() -> Result<Vec<u8>, MaterialError> {
    let mut bytes = vec![0; 32];
    let failed = |_| MaterialError::File { path: "/dev/urandom".into(), error: ErrorKind::Other.into() };
    rand::fill(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>, MaterialError> {
    let mut bytes = Zeroizing::new(Vec::new());
    let read = File::open(path).and_then(|mut file| file.read_to_end(&mut bytes));
    read.map_err(|error| MaterialError::File { path: path.to_owned(), error })?;
    Ok(bytes)
}

/// Where the sandbox keeps what it generated.
struct Kept {
    directory: PathBuf,
}

impl Kept {
    /// The file's bytes; made now, for the owner alone, when there is no such file.
    fn read_or_make(&self, name: &str, make: impl FnOnce() -> Result<Vec<u8>, MaterialError>) -> Result<Zeroizing<Vec<u8>>, MaterialError> {
        let path = self.directory.join(name);
        if path.exists() {
            return read(&path);
        }
        let bytes = Zeroizing::new(make()?);
        self.write(&path, &bytes).map_err(|error| MaterialError::File { path: path.clone(), error })?;
        read(&path)
    }

    /// Writes a whole file or none: under another name first, and never over an existing one.
    fn write(&self, path: &Path, bytes: &[u8]) -> std::io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        let draft = path.with_extension(format!("draft-{}", std::process::id()));
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        let placed = match std::fs::hard_link(&draft, path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            placed => placed,
        };
        std::fs::remove_file(&draft)?;
        placed
    }
}
