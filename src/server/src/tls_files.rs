//! TLS files of the listeners, read at the start, when they change and on SIGHUP. Unusable files are an error at the
//! start; later, the current certificates stay in use.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use metrics::{counter, gauge};
use sakshi_web::listener::{ListenerPem, ListenerTls, ListenerTlsError};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::interval;
use zeroize::Zeroizing;

use crate::settings::{ListenerFiles, Server};

/// Interval between checks of the files.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Error of a listener's TLS files.
#[derive(Debug, thiserror::Error)]
pub enum TlsFileError {
    /// A file cannot be read.
    #[error("{path} cannot be read: {error}")]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        error: std::io::Error,
    },
    /// The files cannot be used.
    #[error("server.{listener}tls_cert: {error}")]
    Unusable {
        /// Prefix of the listener's settings.
        listener: &'static str,
        /// Cause.
        error: ListenerTlsError,
    },
}

/// The TLS configurations of the listeners; `None` for a listener without TLS.
#[derive(Clone, Debug)]
pub(crate) struct Listeners {
    pub(crate) public: Option<ListenerTls>,
    pub(crate) internal: Option<ListenerTls>,
    pub(crate) connectors: Option<ListenerTls>,
    /// Stamps of the files of each listener, in this order. They are older than what was read.
    stamps_before: [Stamps; 3],
}

impl Listeners {
    /// Reads the files.
    ///
    /// # Errors
    /// The first file that cannot be used.
    pub(crate) fn read(server: &Server) -> Result<Self, TlsFileError> {
        let stamps_before = [&server.tls, &server.internal_tls, &server.connector_tls]
            .map(|files| files.as_ref().map(stamps).unwrap_or_default());
        let read =
            |files: &Option<ListenerFiles>| files.as_ref().map(|files| load(files, ListenerTls::new)).transpose();
        Ok(Self {
            stamps_before,
            public: read(&server.tls)?,
            internal: read(&server.internal_tls)?,
            connectors: read(&server.connector_tls)?,
        })
    }

    /// Returns the listeners with TLS, and the stamps of the files that they use.
    fn watched(&self, server: &Server) -> Vec<WatchedListener> {
        let pairs = [
            (&self.public, &server.tls),
            (&self.internal, &server.internal_tls),
            (&self.connectors, &server.connector_tls),
        ];
        pairs
            .into_iter()
            .zip(&self.stamps_before)
            .filter_map(|((tls, files), stamps)| {
                Some(WatchedListener { tls: tls.clone()?, files: files.clone()?, last_stamps: stamps.clone() })
            })
            .collect()
    }

    /// Starts watching the files for changes since they were read, on the current arbiter.
    ///
    /// # Errors
    /// The signal handler cannot be installed.
    pub(crate) fn watch(&self, server: &Server) -> std::io::Result<()> {
        let mut watched = self.watched(server);
        if watched.is_empty() {
            return Ok(());
        }
        let mut hangups = signal(SignalKind::hangup())?;
        actix_rt::spawn(async move {
            let mut checks = interval(CHECK_INTERVAL);
            loop {
                let is_forced = tokio::select! {
                    _ = checks.tick() => false,
                    _ = hangups.recv() => true,
                };
                for listener in &mut watched {
                    listener.reload_if_changed(is_forced);
                }
            }
        });
        Ok(())
    }
}

/// Returns the URL of a listener.
pub(crate) fn url(tls: &Option<ListenerTls>, address: SocketAddr) -> String {
    format!("{}://{address}", if tls.is_some() { "https" } else { "http" })
}

/// Modification time and length of each file.
type Stamps = Vec<Option<(SystemTime, u64)>>;

/// A listener whose files are watched.
struct WatchedListener {
    tls: ListenerTls,
    files: ListenerFiles,
    /// Stamps of the files at the last read.
    last_stamps: Stamps,
}

impl WatchedListener {
    /// Reads the files again if they have changed, or in any case if `is_forced`.
    fn reload_if_changed(&mut self, is_forced: bool) {
        let stamps = stamps(&self.files);
        if stamps == self.last_stamps && !is_forced {
            return;
        }
        self.last_stamps = stamps;
        let result = match load(&self.files, |pem| self.tls.replace(pem)) {
            Ok(()) => {
                tracing::info!(listener.files = ?self.files, "the certificate of a listener was read again");
                "replaced"
            }
            Err(error) => {
                tracing::error!(%error, "a listener's certificate could not be reloaded; the current one stays in use");
                "failed"
            }
        };
        counter!("sakshi_tls_certificates_read_total", "result" => result).increment(1);
    }
}

/// Reads the files of a listener, builds its TLS configuration from them, and publishes the certificate's expiry.
fn load<T>(
    files: &ListenerFiles,
    build: impl FnOnce(ListenerPem<'_>) -> Result<T, ListenerTlsError>,
) -> Result<T, TlsFileError> {
    let read = |path: &PathBuf| fs::read(path).map_err(|error| TlsFileError::Unreadable { path: path.clone(), error });
    let (certificate, key) = (read(&files.certificate)?, Zeroizing::new(read(&files.key)?));
    let authorities = files.client_authorities.as_ref().map(read).transpose()?;
    let pem = ListenerPem {
        certificate: &certificate,
        key: &key,
        client_authorities: authorities.as_deref(),
        probes_without_certificate: files.has_probes,
    };
    let built = build(pem).map_err(|error| TlsFileError::Unusable { listener: files.listener, error })?;
    publish_expiry(files.listener, &certificate);
    Ok(built)
}

/// Sets the metric of a certificate's expiry. `prefix` is the prefix of the listener's settings, empty for the public
/// listener.
fn publish_expiry(prefix: &'static str, certificate: &[u8]) {
    let listener = prefix.strip_suffix('_').unwrap_or("public");
    if let Some(at) = ListenerTls::expires_at(certificate) {
        // Gauges are floats by their format.
        #[allow(clippy::cast_precision_loss)]
        gauge!("sakshi_tls_certificate_expiry_timestamp_seconds", "listener" => listener).set(at.seconds() as f64);
    }
}

fn stamps(files: &ListenerFiles) -> Stamps {
    [Some(&files.certificate), Some(&files.key), files.client_authorities.as_ref()]
        .into_iter()
        .flatten()
        .map(|path| stamp(path))
        .collect()
}

/// Returns the modification time and length of a file; `None` when there is none.
pub(crate) fn stamp(path: &Path) -> Option<(SystemTime, u64)> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

#[cfg(test)]
mod tests {
    use sakshi_kit::tls::Authority;

    use super::*;
    use crate::settings::{Sources, load};

    #[test]
    fn files_that_change_during_the_start_are_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let [certificate, key] = ["public.pem", "public.key"].map(|name| directory.path().join(name));
        let identity = Authority::create().issue(&["localhost"]);
        fs::write(&certificate, &identity.certificate).unwrap();
        fs::write(&key, &identity.key).unwrap();
        let overrides = [("server.tls_cert", &certificate), ("server.tls_key", &key)]
            .map(|(name, path)| (name.to_owned(), path.display().to_string()));
        let settings = load(&Sources { overrides: overrides.into(), ..Sources::default() }).unwrap().settings;
        let listeners = Listeners::read(&settings.server).unwrap();
        // Another length, because both files may have the same time.
        fs::write(&certificate, format!("{}\n", identity.certificate)).unwrap();
        let mut watched = listeners.watched(&settings.server);
        assert!(stamps(&watched[0].files) != watched[0].last_stamps, "the change is noticed");
        watched[0].reload_if_changed(false);
        assert!(stamps(&watched[0].files) == watched[0].last_stamps && watched.len() == 1);
    }
}
