//! Keeps the issuer's keys up to date while the node serves.
//!
//! The file is read again when it changes and on SIGHUP. With a URL, keys are fetched at the start, periodically and on
//! SIGHUP, and the file stores the last valid set. A credential with an unknown key triggers another read. A failed
//! read is repeated each minute. An invalid set is ignored; unusual keys in a set are skipped.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use metrics::{counter, gauge};
use sakshi_authority::sdjwt::{JwkProblem, Jwks, JwksError};
use sakshi_domain::limits::JWKS_BYTES_MAX;
use sakshi_outbound::Egress;
use sakshi_outbound::document::{DocumentClient, DocumentError};
use sakshi_service::authority::AuthorityContext;
use tempfile::NamedTempFile;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, interval};
use url::Url;

use crate::settings::Settings;
use crate::tls_files::stamp;

/// Interval between checks of the file.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// Interval between reads after a failure, so that a lasting failure shows as more than one.
const RETRY_INTERVAL: Duration = Duration::from_secs(60);
/// Timeout of a fetch; it is shorter than the time that a callback waits for keys.
const FETCH_TIMEOUT: Duration = Duration::from_secs(4);

/// Error of a read of the keys.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be read.
    #[error("authority.jwks_path: {path}: {error}")]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        error: std::io::Error,
    },
    /// The URL cannot be fetched.
    #[error("authority.jwks_url: {0}")]
    Url(#[from] DocumentError),
    /// The content is not a key set.
    #[error("the issuer's keys: {0}")]
    Jwks(#[from] JwksError),
}

/// Source of the keys: a file, or a URL whose keys are copied to the file.
#[derive(Debug)]
pub(crate) struct Source {
    issuer: String,
    path: PathBuf,
    /// URL of the keys, and the client that fetches it.
    remote: Option<(Url, DocumentClient)>,
    /// Interval between fetches.
    refresh: Duration,
    /// Content of the last read.
    bytes: Vec<u8>,
    /// True if the file has this content. False while fetched keys cannot be written.
    is_stored: bool,
    /// Modification time and length of the file at the last read.
    last_stamp: Option<(SystemTime, u64)>,
    /// True if the last read failed.
    has_failed: bool,
}

impl Source {
    /// Returns the source, or `None` when no issuer is set.
    fn from_settings(settings: &Settings, egress: &Egress) -> Option<Self> {
        let authority = &settings.authority;
        let (issuer, path) = (authority.issuer.clone()?, authority.jwks_path.clone()?);
        let remote = authority.jwks_url.clone().map(|url| (url, DocumentClient::new(FETCH_TIMEOUT, egress)));
        // A change between the two is noticed later: the stamp is the older one.
        let last_stamp = stamp(&path);
        let bytes = fs::read(&path).unwrap_or_default();
        let refresh = authority.jwks_refresh;
        Some(Self { issuer, path, remote, refresh, bytes, is_stored: true, last_stamp, has_failed: false })
    }

    /// Reads the keys from the URL if there is one, otherwise from the file. Returns `None` if they are unchanged.
    async fn read(&mut self) -> Result<Option<Jwks>, ReadError> {
        let read = self.try_read().await;
        self.has_failed = read.is_err();
        read
    }

    /// Reads the keys as [`Source::read`] does, without noting a failure.
    async fn try_read(&mut self) -> Result<Option<Jwks>, ReadError> {
        let bytes = match &self.remote {
            Some((url, client)) => {
                client.fetch(url, "application/jwk-set+json, application/json", JWKS_BYTES_MAX).await?
            }
            None => {
                self.last_stamp = stamp(&self.path);
                fs::read(&self.path).map_err(|error| ReadError::File { path: self.path.clone(), error })?
            }
        };
        self.accept(bytes)
    }

    /// Takes the content of a read. Returns `None` if it is unchanged.
    fn accept(&mut self, bytes: Vec<u8>) -> Result<Option<Jwks>, ReadError> {
        let mut jwks = None;
        if bytes != self.bytes {
            jwks = Some(Jwks::parse(&bytes)?);
            self.bytes = bytes;
            self.is_stored = self.remote.is_none();
        }
        if !self.is_stored {
            // After a failure, the next read tries again.
            let written = write_atomically(&self.path, &self.bytes);
            if let Err(error) = &written {
                tracing::warn!(%error, "the issuer's keys are in use, but authority.jwks_path could not be written");
            }
            self.is_stored = written.is_ok();
        }
        Ok(jwks)
    }

    /// Returns the key set of the URL: the fetched one, or the copy of an earlier fetch. Returns `None` without a URL.
    pub(crate) fn published_keys(&self) -> Option<&[u8]> {
        self.remote.is_some().then_some(self.bytes.as_slice())
    }

    /// Returns true if the file has changed since it was read. A source with a URL ignores the file.
    fn has_changed(&self) -> bool {
        self.remote.is_none() && stamp(&self.path) != self.last_stamp
    }

    /// Returns true if the keys must be read again, when the last read began this long ago.
    fn is_due(&self, age: Duration) -> bool {
        let is_refreshed = self.remote.is_some() && age >= self.refresh;
        is_refreshed || (self.has_failed && age >= RETRY_INTERVAL) || self.has_changed()
    }
}

fn write_atomically(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut draft = NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
    draft.write_all(bytes)?;
    draft.as_file().sync_all()?;
    draft.persist(path).map(drop).map_err(|error| error.error)
}

/// Opens the source of the keys before the node reads them, and fetches the keys if there is a URL. Returns `None` when
/// no issuer is set. [`watch`] compares with the content at this time, so it notices changes during the start.
///
/// # Errors
/// The fetch failed, and there is no copy of an earlier fetch.
pub(crate) async fn prepare(settings: &Settings, egress: &Egress) -> Result<Option<Source>, ReadError> {
    let Some(mut source) = Source::from_settings(settings, egress) else { return Ok(None) };
    if source.remote.is_some() {
        match source.read().await {
            Err(error) if source.bytes.is_empty() => return Err(error),
            Err(error) => {
                tracing::warn!(%error, "the issuer's keys could not be fetched; the last fetched keys are used");
            }
            Ok(_) => {}
        }
    }
    // Content that is no key set ends the start elsewhere.
    if let Ok(jwks) = Jwks::parse(&source.bytes) {
        report_odd_keys(&jwks);
    }
    Ok(Some(source))
}

/// Starts keeping the keys of `authority` up to date, on the current arbiter. The source is that of [`prepare`].
///
/// # Errors
/// The signal handler cannot be installed.
pub(crate) fn watch(source: Option<Source>, authority: Arc<AuthorityContext>) -> std::io::Result<()> {
    let mut hangups = signal(SignalKind::hangup())?;
    if source.is_some() {
        authority.issuer_keys.set_has_reader();
    }
    actix_rt::spawn(async move {
        let Some(mut source) = source else {
            // SIGHUP must not end a node that reads no keys.
            while hangups.recv().await.is_some() {}
            return;
        };
        let mut read_at = Instant::now();
        let mut checks = interval(CHECK_INTERVAL);
        loop {
            tokio::select! {
                _ = checks.tick() => {
                    if !source.is_due(read_at.elapsed()) {
                        continue;
                    }
                }
                _ = hangups.recv() => {}
                () = authority.issuer_keys.wait_for_request() => {}
            }
            read_at = Instant::now();
            authority.issuer_keys.begin_read();
            let changed = refresh(&mut source, &authority).await;
            authority.issuer_keys.finish_read(changed);
        }
    });
    Ok(())
}

/// Reads the keys and replaces those in use. Returns true if they have changed.
async fn refresh(source: &mut Source, authority: &AuthorityContext) -> bool {
    let read = source.read().await;
    let result = match &read {
        Ok(Some(jwks)) => {
            authority.verifier.replace_keys(&source.issuer, jwks);
            report_odd_keys(jwks);
            tracing::info!(issuer.keys = ?jwks, "the issuer's keys were replaced");
            "changed"
        }
        Ok(None) => "same",
        Err(error) => {
            tracing::error!(%error, "the issuer's keys could not be read again; the current keys stay");
            "failed"
        }
    };
    counter!("sakshi_issuer_keys_read_total", "result" => result).increment(1);
    matches!(read, Ok(Some(_)))
}

/// Logs and counts the unusual keys of a set, by reason.
fn report_odd_keys(jwks: &Jwks) {
    for reason in JwkProblem::ALL {
        let count = jwks.problems().iter().filter(|problem| **problem == reason).count();
        gauge!("sakshi_issuer_keys_odd", "reason" => reason.code()).set(count as f64);
        if count > 0 {
            tracing::warn!(reason = reason.code(), count, "unusual keys in the issuer's key set: {reason}");
        }
    }
}

#[cfg(test)]
mod tests {
    use sakshi_kit::issuer::TestIssuer;
    use serde_json::json;

    use super::*;
    use crate::settings::{Sources, load};
    use crate::telemetry::PrometheusRecorder;

    /// Returns the settings of a sandbox that trusts an issuer with its keys in this file, and further settings.
    fn settings(path: &Path, further: &[(&str, &str)]) -> Settings {
        let path = path.display().to_string();
        let own = [("authority.issuer", "https://issuer.example"), ("authority.jwks_path", path.as_str())];
        let overrides = own.iter().chain(further).map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let loaded = load(&Sources { overrides: overrides.collect(), ..Sources::default() }).unwrap();
        *loaded.settings
    }

    #[test]
    fn fetched_keys_that_could_not_be_stored_are_stored_by_a_later_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("missing").join("jwks.json");
        let settings = settings(&path, &[("authority.jwks_url", "http://127.0.0.1:9/jwks.json")]);
        let mut source = Source::from_settings(&settings, &Egress::default()).unwrap();
        let keys = TestIssuer::generate().jwks().to_string().into_bytes();
        assert!(source.accept(keys.clone()).unwrap().is_some() && !path.exists(), "the keys are used nevertheless");
        fs::create_dir(path.parent().unwrap()).unwrap();
        assert!(source.accept(keys.clone()).unwrap().is_none(), "the issuer still publishes the same keys");
        assert_eq!(fs::read(&path).unwrap(), keys);
    }

    #[tokio::test]
    async fn a_file_that_changes_during_the_start_is_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("jwks.json");
        fs::write(&path, TestIssuer::generate().jwks().to_string()).unwrap();
        let mut source = prepare(&settings(&path, &[]), &Egress::default()).await.unwrap().unwrap();
        assert!(!source.has_changed());
        // Another length, because both files may have the same time.
        fs::write(&path, format!(" {}", TestIssuer::generate().jwks())).unwrap();
        assert!(source.has_changed());
        assert!(source.read().await.unwrap().is_some(), "the keys differ from those of the start");
        assert!(source.read().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_failed_read_is_repeated_after_a_minute_until_one_succeeds() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("jwks.json");
        let keys = TestIssuer::generate().jwks().to_string();
        fs::write(&path, &keys).unwrap();
        let mut source = prepare(&settings(&path, &[]), &Egress::default()).await.unwrap().unwrap();
        assert!(!source.is_due(RETRY_INTERVAL));
        fs::write(&path, "{\"keys\": []}").unwrap();
        assert!(source.is_due(Duration::ZERO), "the file has changed");
        assert!(source.read().await.is_err());
        assert!(!source.is_due(Duration::ZERO), "the file has not changed since");
        assert!(source.is_due(RETRY_INTERVAL));
        fs::write(&path, &keys).unwrap();
        assert!(source.read().await.unwrap().is_none(), "the keys in use are in the file again");
        assert!(!source.is_due(RETRY_INTERVAL));
    }

    #[tokio::test]
    async fn odd_keys_are_counted_at_the_start() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("jwks.json");
        let mut keys = TestIssuer::generate().jwks();
        keys["keys"].as_array_mut().unwrap().push(json!({"kty": "LWE", "kid": "quantum"}));
        fs::write(&path, keys.to_string()).unwrap();
        let recorder = PrometheusRecorder::default();
        let _guard = metrics::set_default_local_recorder(&recorder);
        prepare(&settings(&path, &[]), &Egress::default()).await.unwrap().unwrap();
        let page = recorder.render();
        assert!(page.contains("sakshi_issuer_keys_odd{reason=\"other_type\"} 1\n"), "{page}");
        assert!(page.contains("sakshi_issuer_keys_odd{reason=\"key_id_missing\"} 0\n"), "{page}");
    }
}
