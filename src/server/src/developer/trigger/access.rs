//! Which service is driven, and with which key.
//!
//! A developer should not have to look for credentials to try a flow. So where the settings are the
//! sandbox's, a run without a key issues one through the operator's API, for an app of its own, and
//! revokes it at the end.

use std::time::Duration;

use clap::Args;
use sakshi_client::{Call, Credentials, Page, internal};
use sakshi_domain::clock::{Clock as _, SystemClock};
use sakshi_domain::profile::Profile;
use secrecy::SecretString;
use serde_json::{Value, json};
use url::Url;

use crate::cli::api::Api;
use crate::cli::error::CliError;
use crate::developer::timeline::Timeline;
use crate::settings::{Sources, internal_endpoint, profile, public_endpoint};

/// The app of runs that are given none; its registered URLs are theirs to change.
const OWN_APP: &str = "sakshi trigger";
/// How long a key of one run is valid, should the run not revoke it.
const KEY_LIFETIME: Duration = Duration::from_secs(3_600);

const NO_KEY: &str = "there is no API key to use: give --key and --app, or set SAKSHI_API_KEY and SAKSHI_APP_ID. \
                      `sakshi admin clients list` and `sakshi admin apps list <client_id>` show who there is, and \
                      `sakshi admin keys issue <client_id>` issues a key. (In the sandbox profile, trigger issues itself one.)";
const NO_CLIENT: &str = "the service has no client yet: `sakshi admin clients create <name>` creates one";

/// Options of every flow.
#[derive(Args, Debug)]
pub(super) struct Access {
    /// URL of the public listener; default: from the settings.
    #[arg(long, global = true, value_name = "URL")]
    base: Option<Url>,
    /// URL of the internal listener of the same service; default: from the settings.
    #[arg(long, global = true, value_name = "URL")]
    internal: Option<Url>,
    /// API key, together with --app; default: one is issued for this run and revoked at its end.
    #[arg(long, global = true, value_name = "KEY", env = "SAKSHI_API_KEY", hide_env_values = true)]
    key: Option<SecretString>,
    /// App that the flow is driven for; default: one for such runs.
    #[arg(long, global = true, value_name = "APP_ID", env = "SAKSHI_APP_ID")]
    app: Option<String>,
    /// Admin token; default: admin.token of the settings.
    #[arg(long, global = true, value_name = "TOKEN", env = "SAKSHI_ADMIN_TOKEN", hide_env_values = true)]
    token: Option<SecretString>,
}

/// A service, and the right to use it.
pub(super) struct Session {
    /// The public listener, as people see it.
    pub(super) base: Url,
    /// The public API.
    pub(super) client: Api,
    /// The operator's API.
    pub(super) operator: Api,
    /// The app that the flow is driven for.
    pub(super) app: String,
    /// Whether the app is [`OWN_APP`].
    pub(super) is_own_app: bool,
    /// The key to be revoked.
    issued: Option<String>,
}

impl Session {
    /// Finds the service, makes sure that it is a sandbox, and gets a key.
    pub(super) async fn open(access: &Access, sources: &Sources) -> Result<Self, CliError> {
        let base = access.base.clone().map_or_else(|| public_endpoint(sources), Ok)?;
        let internal = internal_endpoint(sources, access.internal.as_ref())?;
        let operator = Api::new(internal.url, Credentials::Bearer(access.token.clone().unwrap_or(internal.admin_token)))?;
        require_sandbox(&base).await?;
        let (key, app, is_own_app, issued) = match (&access.key, &access.app) {
            (Some(key), Some(app)) => (key.clone(), app.clone(), false, None),
            (Some(_), None) => return Err(CliError::Local("a key alone is not enough: say with --app for which app of its client".into())),
            (None, _) if profile(sources)? != Profile::Sandbox => return Err(CliError::Local(NO_KEY.to_owned())),
            (None, Some(app)) => {
                let client = operator.send(internal::app(app)).await?.client_id.to_string();
                let (key, id) = issue(&operator, &client).await?;
                (key, app.clone(), false, Some(id))
            }
            (None, None) => {
                let client = first_client(&operator).await?;
                let app = own_app(&operator, &client).await?;
                let (key, id) = issue(&operator, &client).await?;
                (key, app, true, Some(id))
            }
        };
        let client = Api::new(base.clone(), Credentials::Client { key, app: app.clone() })?;
        Ok(Self { base, client, operator, app, is_own_app, issued })
    }

    /// Says for whom the flow is driven.
    pub(super) fn introduce(&self, timeline: &mut Timeline<'_>) -> Result<(), CliError> {
        let key = if self.issued.is_some() { "with a key for this run, revoked at its end" } else { "with the given key" };
        let whose = if self.is_own_app { format!("app {} (\"{OWN_APP}\")", self.app) } else { format!("app {}", self.app) };
        Ok(timeline.line("client", &format!("{whose}, {key}"))?)
    }

    /// Revokes a key that was issued for this run.
    pub(super) async fn end(&self) -> Result<(), CliError> {
        let Some(key) = &self.issued else { return Ok(()) };
        self.operator.done(internal::revoke_key(key)).await
    }
}

/// Nothing is ordered from a service that would order it from a real upstream.
async fn require_sandbox(base: &Url) -> Result<(), CliError> {
    match Api::new(base.clone(), Credentials::None)?.done(Call::<()>::get("/sandbox/flows")).await {
        Err(CliError::NotFound(_)) => Err(CliError::Refused(format!(
            "the service at {base} is no sandbox: trigger plays the outcomes of a sandbox's own upstreams, and drives nothing else"
        ))),
        answered => answered,
    }
}

async fn issue(operator: &Api, client: &str) -> Result<(SecretString, String), CliError> {
    let until = SystemClock.now() + KEY_LIFETIME;
    let asked = json!({ "label": OWN_APP, "environments": ["sandbox"], "expires_at": until });
    let issued = operator.send(internal::issue_key(client, &asked)).await?;
    Ok((issued.api_key.0.into(), issued.key_id.to_string()))
}

async fn first_client(operator: &Api) -> Result<String, CliError> {
    let known = operator.send(internal::clients(Page { page: 1, page_size: 1 })).await?;
    let first = known.clients.first().ok_or_else(|| CliError::Refused(NO_CLIENT.to_owned()))?;
    Ok(first.client_id.to_string())
}

async fn own_app(operator: &Api, client: &str) -> Result<String, CliError> {
    let known = operator.send(internal::apps(client)).await?;
    match known.apps.into_iter().find(|app| app.name == OWN_APP) {
        Some(app) => Ok(app.app_id.to_string()),
        None => Ok(operator.send(internal::create_app(client, OWN_APP)).await?.app_id.to_string()),
    }
}

/// A member of an answer that must be there.
pub(super) fn text(answer: &Value, member: &str) -> Result<String, CliError> {
    let found = answer[member].as_str().map(str::to_owned);
    found.ok_or_else(|| CliError::Refused(format!("the service's answer has no {member}; is it of another version?")))
}
