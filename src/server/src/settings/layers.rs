//! Merges the layers of settings; later ones win: defaults, profile, file, environment, command line.
//!
//! The result has no types yet; [`super::reader`] gives it them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use config::{Config, ConfigError, Environment, File, FileFormat, Map, Value, ValueKind};
use sakshi_domain::profile::Profile;

use super::problem::Problems;

const DEFAULT: &str = include_str!("../../../../config/default.toml");
const SANDBOX: &str = include_str!("../../../../config/sandbox.toml");
const STAGE: &str = include_str!("../../../../config/stage.toml");
const PRODUCTION: &str = include_str!("../../../../config/production.toml");

/// Where settings come from, besides the files that are built into the binary.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The operator's file.
    pub file: Option<PathBuf>,
    /// The environment; only names that begin with `SAKSHI__` are read.
    pub environment: HashMap<String, String>,
    /// Names (such as `store.path`) and values from the command line; they override everything else.
    pub overrides: Vec<(String, String)>,
}

impl Sources {
    /// The process's environment and an optional file.
    #[must_use]
    pub fn from_process(file: Option<PathBuf>) -> Self {
        let as_text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
        Self { file, environment: std::env::vars_os().filter_map(as_text).collect(), overrides: Vec::new() }
    }
}

/// The profile and the merged table.
pub(super) fn merge(sources: &Sources) -> Result<(Profile, Map<String, Value>), Problems> {
    let without_profile = build(sources, None)?;
    let profile_name = match without_profile.get("profile").map(|value| &value.kind) {
        Some(ValueKind::String(name)) => name.clone(),
        _ => String::new(),
    };
    let profile: Profile = profile_name.parse().map_err(|message: &str| Problems::one("profile", message))?;
    Ok((profile, build(sources, Some(profile))?))
}

fn build(sources: &Sources, profile: Option<Profile>) -> Result<Map<String, Value>, Problems> {
    let mut layers = Config::builder().add_source(File::from_str(DEFAULT, FileFormat::Toml));
    if let Some(profile) = profile {
        let text = match profile {
            Profile::Sandbox => SANDBOX,
            Profile::Stage => STAGE,
            Profile::Production => PRODUCTION,
        };
        layers = layers.add_source(File::from_str(text, FileFormat::Toml));
    }
    if let Some(path) = &sources.file {
        layers = layers.add_source(File::from_str(&read(path)?, FileFormat::Toml));
    }
    let environment = Environment::with_prefix("SAKSHI").prefix_separator("__").separator("__");
    layers = layers.add_source(environment.source(Some(sources.environment.clone())));
    for (key, value) in &sources.overrides {
        layers = layers.set_override(key, value.as_str()).map_err(|error| Problems::one(key, error.to_string()))?;
    }
    let name = sources.file.as_ref().map_or_else(|| "settings".to_owned(), |path| path.display().to_string());
    let merged = layers.build().map_err(|error| Problems::one(name, explain(&error)))?;
    match merged.cache.kind {
        ValueKind::Table(table) => Ok(table),
        _ => Ok(Map::new()),
    }
}

fn read(path: &Path) -> Result<String, Problems> {
    std::fs::read_to_string(path).map_err(|error| Problems::one(path.display().to_string(), format!("cannot be read: {error}")))
}

/// The place and the reason of a syntax error, without the offending line: it may hold a secret.
fn explain(error: &ConfigError) -> String {
    match error {
        ConfigError::FileParse { cause, .. } => {
            let text = cause.to_string();
            let mut lines = text.lines().filter(|line| !line.trim().is_empty());
            let place = lines.next().unwrap_or("not TOML").to_owned();
            lines.next_back().map_or(place.clone(), |reason| format!("{place}: {reason}"))
        }
        ConfigError::Type { key, expected, .. } => format!("{} must be {expected}", key.as_deref().unwrap_or("a value")),
        _ => "the layers of settings cannot be merged".to_owned(),
    }
}
