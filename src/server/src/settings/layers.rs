//! Merges the layers of settings, each over the previous: defaults, profile, file, environment, command line.
//! [`super::reader`] reads typed values from the result.

use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use sakshi_domain::profile::Profile;
use toml::{Table, Value};
use url::Url;

use super::problem::{Problem, Problems};

const DEFAULT: &str = include_str!("../../../../config/default.toml");
const SANDBOX: &str = include_str!("../../../../config/sandbox.toml");
const STAGE: &str = include_str!("../../../../config/stage.toml");
const PRODUCTION: &str = include_str!("../../../../config/production.toml");

/// Prefix of the environment variables, in lower case; `SECTION__KEY` follows.
const PREFIX: &str = "sakshi__";

/// Sources of settings, besides the files that are built into the binary.
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
    /// Returns the process's environment and an optional file.
    #[must_use]
    pub fn from_process(file: Option<PathBuf>) -> Self {
        let as_text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self { file, environment: std::env::vars_os().filter_map(as_text).collect(), overrides: Vec::new() }
    }
}

/// Returns the profile and the merged table.
pub(super) fn merge(sources: &Sources) -> Result<(Profile, Table), Problems> {
    // The file, the environment and the command line; the built-in files are layers below them.
    let mut operator_table = sources.file.as_deref().map_or_else(|| Ok(Table::new()), read_file)?;
    let variables: BTreeMap<String, &String> =
        sources.environment.iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
    let environment: Vec<(String, &str)> = variables
        .into_iter()
        .filter_map(|(name, value)| Some((name.strip_prefix(PREFIX)?.replace("__", "."), value.as_str())))
        .collect();
    let overrides: Vec<(String, &str)> =
        sources.overrides.iter().map(|(key, value)| (key.clone(), value.as_str())).collect();
    for layer in [environment, overrides] {
        apply_layer(&mut operator_table, &layer);
    }
    let mut merged = parse("config/default.toml", DEFAULT)?;
    let profile_name =
        operator_table.get("profile").or(merged.get("profile")).and_then(Value::as_str).unwrap_or_default();
    let profile: Profile = profile_name.parse().map_err(|message: String| Problems::single("profile", message))?;
    let profile_layer = match profile {
        Profile::Sandbox => parse("config/sandbox.toml", SANDBOX),
        Profile::Stage => parse("config/stage.toml", STAGE),
        Profile::Production => parse("config/production.toml", PRODUCTION),
    };
    merge_layer(&mut merged, profile_layer?);
    merge_layer(&mut merged, operator_table);
    Ok((profile, merged))
}

/// Returns a warning if a file contains one of these secrets and users other than its owner can read it.
pub(super) fn exposure_warning(file: &Path, secrets: &[String]) -> Option<Problem> {
    let mode = file.metadata().ok()?.permissions().mode() & 0o777;
    let table = read_file(file).ok()?;
    let value = |path: &String| {
        let (section, key) = path.split_once('.')?;
        table.get(section)?.get(key)
    };
    let has_secret = secrets.iter().filter_map(value).any(is_secret);
    let message =
        format!("contains secrets, and other users than its owner can read it (mode {mode:o}); chmod 600 restricts it");
    let is_readable_by_others = mode & 0o044 != 0;
    (is_readable_by_others && has_secret).then(|| Problem { key: file.display().to_string(), message })
}

/// Returns true if a value is secret: neither empty nor a URL without a password.
fn is_secret(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(is_secret),
        Value::String(text) => !text.is_empty() && Url::parse(text).map_or(true, |url| url.password().is_some()),
        _ => false,
    }
}

/// Sets the keys of a layer. A secret of the layer replaces the file that an earlier layer names for it.
fn apply_layer(table: &mut Table, layer: &[(String, &str)]) {
    for (path, _) in layer {
        clear_file(table, path);
    }
    for (path, value) in layer {
        set(table, path, value);
    }
}

/// Empties the key `section.key_file`, if it is set. It stays in the table, so that an unknown key is refused later.
fn clear_file(table: &mut Table, path: &str) {
    let Some((section, key)) = path.split_once('.') else { return };
    let file_key = format!("{key}_file");
    if let Some(file) = table.get_mut(section).and_then(|section| section.get_mut(file_key)) {
        *file = "".into();
    }
}

/// Sets `key` or `section.key`. A value in place of the section is left, and refused later.
fn set(table: &mut Table, path: &str, value: &str) {
    let (section, key) = match path.split_once('.') {
        Some((section, key)) => (table.entry(section).or_insert_with(|| Table::new().into()).as_table_mut(), key),
        None => (Some(table), path),
    };
    if let Some(section) = section {
        section.insert(key.to_owned(), value.into());
    }
}

/// Merges a layer over the earlier layers, key by key.
fn merge_layer(merged: &mut Table, layer: Table) {
    for (name, value) in layer {
        match (merged.get_mut(&name), value) {
            (Some(Value::Table(section)), Value::Table(keys)) => section.extend(keys),
            (_, value) => _ = merged.insert(name, value),
        }
    }
}

fn read_file(path: &Path) -> Result<Table, Problems> {
    let name = path.display().to_string();
    let text =
        std::fs::read_to_string(path).map_err(|error| Problems::single(&name, format!("cannot be read: {error}")))?;
    parse(&name, &text)
}

/// Parses TOML. The error has the place and the reason, but not the line, which may contain a secret.
fn parse(name: &str, text: &str) -> Result<Table, Problems> {
    text.parse().map_err(|error: toml::de::Error| {
        let text = error.to_string();
        let place = text.lines().next().unwrap_or("not TOML");
        Problems::single(name, format!("{place}: {}", error.message()))
    })
}
