//! `sakshi admin erase`

use std::time::Duration;

use clap::Args;
use sakshi_client::internal;
use sakshi_domain::erasure::ErasureKind;
use serde_json::Value;

use super::admin::{View, answer};
use super::api::Api;
use super::error::CliError;

/// How long the command waits; the service goes on when nobody waits any more.
const TIMEOUT: Duration = Duration::from_secs(3_600);

/// What to erase: one of them.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub(super) struct Erase {
    /// A transaction with its webhook; of a guest also what the event keeps, also when the transaction itself is gone.
    #[arg(long, visible_alias = "registration", value_name = "TXN_ID")]
    transaction: Option<String>,
    /// A flow with its reports.
    #[arg(long, value_name = "ID")]
    flow: Option<String>,
    /// An event with its guests and all that they have begun.
    #[arg(long, value_name = "ID")]
    event: Option<String>,
    /// Everything that is kept for an app, which itself stays.
    #[arg(long, value_name = "ID")]
    app: Option<String>,
    /// The same for all apps of a client; suspend it first.
    #[arg(long, value_name = "ID")]
    client: Option<String>,
}

impl Erase {
    /// Asks the service to erase it.
    pub(super) async fn ask(&self, api: &Api) -> Result<(Value, View), CliError> {
        let subjects = [
            (ErasureKind::Transaction, &self.transaction),
            (ErasureKind::Flow, &self.flow),
            (ErasureKind::Event, &self.event),
            (ErasureKind::App, &self.app),
            (ErasureKind::Client, &self.client),
        ];
        let given = subjects.into_iter().find_map(|(kind, id)| Some((kind, id.as_deref()?)));
        let (kind, id) = given.ok_or_else(|| CliError::Local("say what to erase".to_owned()))?;
        answer(api, internal::erase(kind.as_str(), id).within(TIMEOUT), View::Pairs).await
    }
}
