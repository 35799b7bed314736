//! `sakshi admin clients …`: clients, their limits and brands, and moving one to another installation.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::{Args, Subcommand};
use sakshi_client::internal;
use sakshi_domain::limits::TRANSFER_BYTES_MAX;
use serde_json::{Map, Value, json};

use super::admin::{Paging, View, send_call};
use super::api::Api;
use super::error::CliError;

/// Columns of a client.
pub(super) const CLIENT: &[&str] = &["client_id", "name", "created_at", "suspended_at"];
/// Columns of an import's result.
pub(super) const IMPORTED: &[&str] = &["kind", "id", "outcome", "changed"];

#[derive(Debug, Subcommand)]
pub(super) enum Clients {
    /// Create a client.
    Create {
        /// Name of the client.
        name: String,
    },
    /// List clients.
    List(Paging),
    /// Show a client with its limits.
    Show {
        /// Id of the client.
        client_id: String,
    },
    /// Rename a client.
    Rename {
        /// Id of the client.
        client_id: String,
        /// The new name.
        name: String,
    },
    /// Refuse a client's keys from now on, and new guests of its events. Verifications in progress continue.
    Suspend {
        /// Id of the client.
        client_id: String,
    },
    /// Accept a suspended client again.
    Resume {
        /// Id of the client.
        client_id: String,
    },
    /// Allow or forbid the people of a client to sign in to the portal with an API key.
    KeySignIn {
        /// Id of the client.
        client_id: String,
        /// true or false.
        #[arg(action = clap::ArgAction::Set)]
        allowed: bool,
    },
    /// Change the limits of a client; without options, show them.
    Limits(Box<Limits>),
    /// The brand on pages of a client, or of one event: show it, or change it with options.
    Brand(Box<Brand>),
    /// Print a client with its apps and the digests of its keys as JSON, for `import` at another installation.
    Export {
        /// Id of the client.
        client_id: String,
    },
    /// Apply an export to this installation; importing the same file again changes nothing.
    Import {
        /// File that `export` has printed; `-` reads the standard input.
        file: PathBuf,
    },
}

#[derive(Args, Debug)]
pub(super) struct Limits {
    /// Id of the client.
    client_id: String,
    /// API requests per second, of all its apps together, at each node.
    #[arg(long, value_name = "N|none", value_parser = parse_limit)]
    requests_per_second: Option<Value>,
    /// Events of each of its apps, including ended events that are still stored.
    #[arg(long, value_name = "N|none", value_parser = parse_limit)]
    events_per_app: Option<Value>,
    /// Balance below which the client counts as low on credits. Default: telemetry.low_credits of the settings.
    #[arg(long, value_name = "N|none", value_parser = parse_limit)]
    low_credits: Option<Value>,
    /// Retention of the results of new transactions and flows, in seconds; at most ovse.result_ttl_s.
    #[arg(long, value_name = "N|none", value_parser = parse_limit)]
    result_ttl_s: Option<Value>,
    /// Retention of new events after their end, in days; at most ovse.registration_ttl_days.
    #[arg(long, value_name = "N|none", value_parser = parse_limit)]
    registration_ttl_days: Option<Value>,
}

#[derive(Args, Debug)]
pub(super) struct Brand {
    /// Id of the client or of the event.
    id: String,
    /// Name shown instead of the client's, or the organiser's.
    #[arg(long, value_name = "NAME|none")]
    name: Option<String>,
    /// A PNG or SVG file of at most 16 KiB, shown at 48 by 48 pixels.
    #[arg(long, value_name = "FILE|none")]
    logo: Option<String>,
    /// Picture for the pages of events: a JPEG, PNG or SVG file of at most 24 KiB, two fifths as high as it is wide.
    #[arg(long, value_name = "FILE|none")]
    picture: Option<String>,
    /// Colour of buttons and links, such as "#7a1f3d".
    #[arg(long, value_name = "COLOUR|none")]
    colour: Option<String>,
    /// Contact for people who need help: an e-mail address, a telephone number or an https URL.
    #[arg(long, value_name = "CONTACT|none")]
    support: Option<String>,
    /// URL of the privacy notice.
    #[arg(long, value_name = "URL|none")]
    privacy_url: Option<String>,
}

impl Brand {
    /// Returns the changes of the options that are set. `none` removes a part of the brand.
    fn change(&self) -> Result<Value, CliError> {
        let file = |path: &Option<String>| -> Result<Option<String>, CliError> {
            match path.as_deref() {
                Some(path) if path != "none" => {
                    let bytes = std::fs::read(path)
                        .map_err(|error| CliError::Local(format!("{path} cannot be read: {error}")))?;
                    Ok(Some(STANDARD.encode(bytes)))
                }
                other => Ok(other.map(str::to_owned)),
            }
        };
        let (logo, picture) = (file(&self.logo)?, file(&self.picture)?);
        let parts = [
            ("name", &self.name),
            ("logo", &logo),
            ("picture", &picture),
            ("colour", &self.colour),
            ("support", &self.support),
            ("privacy_url", &self.privacy_url),
        ];
        let parts = parts.into_iter().filter_map(|(part, value)| Some((part.to_owned(), value.as_deref()?)));
        Ok(parts
            .map(|(part, value)| (part, if value == "none" { Value::Null } else { value.into() }))
            .collect::<Map<_, _>>()
            .into())
    }
}

/// Reads a limit: a number, or null for none.
fn parse_limit(text: &str) -> Result<Value, String> {
    if text == "none" {
        return Ok(Value::Null);
    }
    text.parse::<u64>().map(Into::into).map_err(|_| "is a whole number, or none".to_owned())
}

impl Limits {
    /// Returns the changes of the options that are set.
    fn change(&self) -> Value {
        let limits = [
            ("requests_per_second", &self.requests_per_second),
            ("events_per_app", &self.events_per_app),
            ("low_credits", &self.low_credits),
            ("result_ttl_s", &self.result_ttl_s),
            ("registration_ttl_days", &self.registration_ttl_days),
        ];
        limits
            .into_iter()
            .filter_map(|(name, limit)| Some((name.to_owned(), limit.clone()?)))
            .collect::<Map<_, _>>()
            .into()
    }
}

impl Clients {
    /// Sends the command's request to the service.
    pub(super) async fn send(&self, api: &Api) -> Result<(Value, View), CliError> {
        match self {
            Self::Create { name } => send_call(api, internal::create_client(name), View::Pairs).await,
            Self::List(paging) => send_call(api, internal::clients(paging.page()), View::Rows("clients", CLIENT)).await,
            Self::Show { client_id } => send_call(api, internal::client(client_id), View::Pairs).await,
            Self::Rename { client_id, name } => change_client(api, client_id, json!({ "name": name })).await,
            Self::Suspend { client_id } => change_client(api, client_id, json!({ "suspended": true })).await,
            Self::Resume { client_id } => change_client(api, client_id, json!({ "suspended": false })).await,
            Self::KeySignIn { client_id, allowed } => {
                change_client(api, client_id, json!({ "portal_key_sign_in": allowed })).await
            }
            Self::Limits(limits) => match limits.change() {
                change if change == json!({}) => send_call(api, internal::client(&limits.client_id), View::Pairs).await,
                change => change_client(api, &limits.client_id, change).await,
            },
            Self::Brand(brand) => match brand.change()? {
                change if change == json!({}) => send_call(api, internal::brand(&brand.id), View::Pairs).await,
                change => send_call(api, internal::change_brand(&brand.id, &change), View::Pairs).await,
            },
            Self::Export { client_id } => send_call(api, internal::export_client(client_id), View::Json).await,
            Self::Import { file } => {
                send_call(api, internal::import_client(&read_export(file)?), View::PairsAndRows("records", IMPORTED))
                    .await
            }
        }
    }
}

async fn change_client(api: &Api, client: &str, change: Value) -> Result<(Value, View), CliError> {
    send_call(api, internal::change_client(client, &change), View::Pairs).await
}

/// Reads the JSON of an export.
fn read_export(file: &Path) -> Result<Value, CliError> {
    let import_error = |error: &dyn Display| CliError::Local(format!("{} cannot be imported: {error}", file.display()));
    let source: Box<dyn Read> = if file == Path::new("-") {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(file).map_err(|error| import_error(&error))?)
    };
    let mut bytes = Vec::new();
    // One byte more than allowed, to detect a file that is too large.
    source.take(TRANSFER_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(|error| import_error(&error))?;
    if bytes.len() > TRANSFER_BYTES_MAX {
        return Err(import_error(&format!("it has more than {TRANSFER_BYTES_MAX} bytes")));
    }
    serde_json::from_slice(&bytes).map_err(|error| import_error(&error))
}
