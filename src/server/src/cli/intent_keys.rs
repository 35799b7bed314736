//! `sakshi admin intent-keys`: the keys that sign intents, and the one in use.

use clap::{Args, Subcommand};
use sakshi_client::internal;
use serde_json::Value;

use super::admin::{View, send_call};
use super::api::Api;
use super::error::CliError;

/// Columns of a key.
pub(super) const INTENT_KEY: &[&str] = &["kid", "algorithm", "signs_from", "signs", "setting"];

#[derive(Args, Debug)]
pub(super) struct IntentKeys {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Let a key sign from now on, on every node within a second.
    Use {
        /// Id of the key, as in the settings.
        #[arg(required_unless_present = "by_settings")]
        kid: Option<String>,
        /// Return to the choice of the settings and their times.
        #[arg(long, conflicts_with = "kid")]
        by_settings: bool,
    },
}

impl IntentKeys {
    /// Lists the keys, or chooses the key that signs.
    pub(super) async fn send(&self, api: &Api) -> Result<(Value, View), CliError> {
        let call = match &self.action {
            None => internal::intent_keys(),
            Some(Action::Use { kid, .. }) => internal::use_intent_key(kid.as_deref()),
        };
        send_call(api, call, View::PairsAndRows("keys", INTENT_KEY)).await
    }
}
