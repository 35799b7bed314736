//! Settings: layered, typed and checked before anything starts.
//!
//! `config/default.toml` documents every key. A problem names the key and the accepted values; all problems are
//! reported together. Secrets are never shown.

mod authority;
mod console;
pub(crate) mod endpoints;
mod flows;
mod layers;
mod outbound;
mod pages;
mod problem;
mod reader;
mod rules;
mod secret_key;
mod sections;
mod store;

use sakshi_domain::profile::Profile;
use sakshi_service::page_settings::PageSettings;

pub use authority::{Authority, FurtherKey, KeyPlace};
pub use console::ConsoleSettings;
pub use endpoints::{InternalEndpoint, internal_endpoint, profile, public_endpoint};
pub use flows::{Flows, Upstreams};
pub use layers::Sources;
pub use outbound::Outbound;
pub use problem::{Problem, Problems};
pub use sakshi_authority::sdjwt::KeyBinding;
pub use secret_key::SecretKey;
pub(crate) use sections::WORKERS_MAX;
pub use sections::{Admin, AuditLog, Limits, ListenerFiles, LogFormat, Ovse, Server, Telemetry, Webhooks};
pub use store::{KeySource, RedisSettings, StoreKind, StoreSettings};

use reader::Reader;

/// All settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The profile.
    pub profile: Profile,
    /// Listeners and their workers.
    pub server: Server,
    /// The durable store.
    pub store: StoreSettings,
    /// Tokens of the internal listener.
    pub admin: Admin,
    /// The console of operators.
    pub console: ConsoleSettings,
    /// The agreement with the identity authority.
    pub authority: Authority,
    /// Times of a verification.
    pub ovse: Ovse,
    /// Names and links on the pages.
    pub pages: PageSettings,
    /// Sending of webhooks.
    pub webhooks: Webhooks,
    /// Outbound connections.
    pub outbound: Outbound,
    /// Upstreams of flows.
    pub upstreams: Upstreams,
    /// Retention of flows.
    pub flows: Flows,
    /// Sizes, rates and depths.
    pub limits: Limits,
    /// Logs, metrics and traces.
    pub telemetry: Telemetry,
    /// The operators' audit log.
    pub audit_log: AuditLog,
}

/// Valid settings, with warnings and effective values.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The settings; boxed, because they are large and futures hold them.
    pub settings: Box<Settings>,
    /// Warnings of settings that are allowed but risky.
    pub warnings: Vec<Problem>,
    /// Every key with its effective value, in the order of the sections. Secrets are withheld.
    pub effective: Vec<(String, String)>,
}

/// Names of the sections and keys that a command uses.
pub(crate) type SettingNames = &'static [&'static str];

/// Settings of a command that works on the store's files.
pub(crate) const SETTINGS_OF_FILES: SettingNames = &["profile", "store"];
/// Settings of a command that moves or migrates a store.
pub(crate) const SETTINGS_OF_MOVE: SettingNames = &["profile", "store", "authority.issuer", "ovse", "limits"];

/// Reads, types and checks the settings.
///
/// # Errors
/// All problems.
pub fn load(sources: &Sources) -> Result<Loaded, Problems> {
    read(sources, |_| true)
}

/// Reads, types and checks the settings for a command that uses only `names`. Other settings may be missing or invalid.
///
/// # Errors
/// Every problem of the settings in `names`.
pub(crate) fn load_used(sources: &Sources, names: SettingNames) -> Result<Loaded, Problems> {
    read(sources, |problem| names.iter().any(|name| problem.is_within(name)))
}

/// Reads and checks all settings; problems and warnings that are not relevant are ignored.
fn read(sources: &Sources, is_relevant: impl Fn(&Problem) -> bool) -> Result<Loaded, Problems> {
    let (profile, table) = layers::merge(sources)?;
    let mut reader = Reader::new(table);
    reader.text("profile");
    let server = Server::read(&mut reader);
    let store = StoreSettings::read(&mut reader);
    let admin = Admin::read(&mut reader);
    let console = ConsoleSettings::read(&mut reader);
    let authority = Authority::read(&mut reader, profile);
    let ovse = Ovse::read(&mut reader);
    let pages = pages::read(&mut reader);
    let webhooks = Webhooks::read(&mut reader);
    let outbound = Outbound::read(&mut reader);
    let upstreams = Upstreams::read(&mut reader);
    let flows = Flows::read(&mut reader);
    let limits = Limits::read(&mut reader);
    let telemetry = Telemetry::read(&mut reader);
    let audit_log = AuditLog::read(&mut reader, telemetry.otlp_endpoint.as_ref());
    reader.refuse_unknown_keys();
    let Reader { mut problems, effective, secrets, .. } = reader;
    let exposure = sources.file.as_deref().and_then(|file| layers::exposure_warning(file, &secrets));
    let settings = Settings {
        profile,
        server,
        store,
        admin,
        console,
        authority,
        ovse,
        pages,
        webhooks,
        outbound,
        upstreams,
        flows,
        limits,
        telemetry,
        audit_log,
    };
    rules::check(&settings, &mut problems);
    problems.0.retain(&is_relevant);
    if !problems.0.is_empty() {
        return Err(problems);
    }
    let mut warnings = rules::warnings(&settings);
    warnings.extend(exposure);
    warnings.retain(is_relevant);
    Ok(Loaded { warnings, settings: Box::new(settings), effective })
}

#[cfg(test)]
mod tests;
