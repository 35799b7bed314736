//! `sakshi admin erase`: erases personal data before its retention ends.

use std::time::Duration;

use clap::Args;
use sakshi_client::internal;
use sakshi_domain::erasure::ErasureKind;
use serde_json::Value;

use super::admin::{View, send_call};
use super::api::Api;
use super::error::CliError;

/// Timeout of the command; the service continues after it.
const TIMEOUT: Duration = Duration::from_secs(3_600);

/// The subject of the erasure; exactly one.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub(super) struct Erase {
    /// A transaction with its webhook; for a guest also the event's record, even if the transaction itself is gone.
    #[arg(long, visible_alias = "registration", value_name = "TXN_ID")]
    transaction: Option<String>,
    /// A flow with its reports.
    #[arg(long, value_name = "ID")]
    flow: Option<String>,
    /// An event with its guests and their verifications.
    #[arg(long, value_name = "ID")]
    event: Option<String>,
    /// All data of an app; the app itself stays.
    #[arg(long, value_name = "ID")]
    app: Option<String>,
    /// All data of a client's apps; suspend the client first.
    #[arg(long, value_name = "ID")]
    client: Option<String>,
}

impl Erase {
    /// Sends the request to the service.
    pub(super) async fn send(&self, api: &Api) -> Result<(Value, View), CliError> {
        let subjects = [
            (ErasureKind::Transaction, &self.transaction),
            (ErasureKind::Flow, &self.flow),
            (ErasureKind::Event, &self.event),
            (ErasureKind::App, &self.app),
            (ErasureKind::Client, &self.client),
        ];
        let subject = subjects.into_iter().find_map(|(kind, id)| Some((kind, id.as_deref()?)));
        let (kind, id) = subject.ok_or_else(|| CliError::Local("name what to erase".to_owned()))?;
        send_call(api, internal::erase(kind.as_str(), id).within(TIMEOUT), View::Pairs).await
    }
}
