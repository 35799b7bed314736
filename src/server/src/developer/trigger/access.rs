//! Access to the sandbox: its public URL, an API key and an app. A run without a key issues a temporary key through the
//! operator's API and revokes it at the end, so a developer with a local sandbox needs no options.

use std::time::Duration;

use clap::Args;
use sakshi_client::{Call, Credentials, Page, internal};
use sakshi_domain::clock::{Clock as _, SystemClock};
use sakshi_domain::profile::Profile;
use sakshi_outbound::Egress;
use secrecy::SecretString;
use serde_json::{Value, json};
use url::Url;

use crate::cli::api::Api;
use crate::cli::error::CliError;
use crate::developer::timeline::Timeline;
use crate::settings::{Sources, internal_endpoint, profile, public_endpoint};

/// Name of the app for runs without `--app`; runs may change its registered URLs.
const TRIGGER_APP: &str = "sakshi trigger";
/// Validity of a run's key, in case the run does not revoke it.
const KEY_LIFETIME: Duration = Duration::from_secs(3_600);

/// Error for a run without an API key, on a machine that cannot issue one.
const NO_KEY: &str = "there is no API key to use: give --key and --app, or set SAKSHI_API_KEY and SAKSHI_APP_ID. The \
                      portal of the sandbox shows the app id, and its operator issues keys: `sakshi admin keys issue \
                      <client_id>`. (On the machine of a sandbox, trigger issues a key itself.)";
const NO_CREDITS: &str = "the client of this API key has no credits left, and a verification costs one; the operator \
                          of the sandbox grants more with `sakshi admin credits grant`";
const NO_CLIENT: &str = "the service has no client yet: `sakshi admin clients create <name>` creates one";

/// Options that all flows share.
#[derive(Args, Debug)]
pub(super) struct Access {
    /// URL of the public listener. Default: from the settings.
    #[arg(long, global = true, value_name = "URL", env = "SAKSHI_URL")]
    base: Option<Url>,
    /// URL of the internal listener of the same service, used only without a key. Default: from the settings.
    #[arg(long, global = true, value_name = "URL", env = "SAKSHI_ADMIN_URL")]
    internal: Option<Url>,
    /// API key, together with --app; a hosted sandbox needs nothing else. Default: a key is issued for this run and
    /// revoked at its end.
    #[arg(long, global = true, value_name = "KEY", env = "SAKSHI_API_KEY", hide_env_values = true)]
    key: Option<SecretString>,
    /// App that the flow is driven for. Default: an app for such runs.
    #[arg(long, global = true, value_name = "APP_ID", env = "SAKSHI_APP_ID")]
    app: Option<String>,
    /// Admin token, used only without a key. Default: admin.token of the settings.
    #[arg(long, global = true, value_name = "TOKEN", env = "SAKSHI_ADMIN_TOKEN", hide_env_values = true)]
    token: Option<SecretString>,
}

/// A service and the credentials for it.
pub(super) struct Session {
    /// Public listener, as people see it.
    pub(super) base: Url,
    /// The public API.
    pub(super) client: Api,
    /// App that the flow is driven for.
    app: String,
    /// True if the app is [`TRIGGER_APP`], so that its registered URLs may change.
    pub(super) is_trigger_app: bool,
    /// The operator's API and the id of the key that this run issued there, if it did.
    issued_key: Option<(Api, String)>,
}

impl Session {
    /// Finds the service, checks that it is a sandbox, and gets a valid key.
    pub(super) async fn open(access: &Access, sources: &Sources) -> Result<Self, CliError> {
        let base = access.base.clone().map_or_else(|| public_endpoint(sources), Ok)?;
        require_sandbox(&base).await?;
        let (key, app, is_trigger_app, issued_key) = match (&access.key, &access.app) {
            (Some(key), Some(app)) => (key.clone(), app.clone(), false, None),
            (Some(_), None) => {
                return Err(CliError::Local("a key alone is not enough: name an app of its client with --app".into()));
            }
            (None, _) if profile(sources)? != Profile::Sandbox => return Err(CliError::Local(NO_KEY.to_owned())),
            (None, app) => {
                let internal = internal_endpoint(sources, access.internal.as_ref())?;
                let operator = Api::new(
                    internal.url,
                    Credentials::Bearer(access.token.clone().unwrap_or(internal.admin_token)),
                    &Egress::default(),
                )?;
                let (client, app_id) = app_for_run(&operator, app.as_deref()).await.map_err(|error| match error {
                    CliError::Unreachable(reason) => CliError::Unreachable(format!("{reason}; {NO_KEY}")),
                    other => other,
                })?;
                let (key, key_id) = issue_key(&operator, &client).await?;
                (key, app_id, app.is_none(), Some((operator, key_id)))
            }
        };
        let client = Api::new(base.clone(), Credentials::Client { key, app: app.clone() }, &Egress::default())?;
        Ok(Self { base, client, app, is_trigger_app, issued_key })
    }

    /// Checks that the service accepts the key, and that the client has a credit if the flow costs one.
    pub(super) async fn check(&self, costs_a_credit: bool) -> Result<(), CliError> {
        let credits = self.client.json(Call::<Value>::get("/api/v1/credits")).await?;
        if costs_a_credit && credits["balance"] == 0 {
            return Err(CliError::Refused(NO_CREDITS.to_owned()));
        }
        Ok(())
    }

    /// Writes the app of the run, and the origin of its key.
    pub(super) fn introduce(&self, timeline: &mut Timeline<'_>) -> Result<(), CliError> {
        let key = if self.issued_key.is_some() {
            "with a key for this run, revoked at its end"
        } else {
            "with the given key"
        };
        let app = if self.is_trigger_app {
            format!("app {} (\"{TRIGGER_APP}\")", self.app)
        } else {
            format!("app {}", self.app)
        };
        Ok(timeline.line("client", &format!("{app}, {key}"))?)
    }

    /// Revokes a key that was issued for this run.
    pub(super) async fn revoke_key(&self) -> Result<(), CliError> {
        let Some((operator, key)) = &self.issued_key else { return Ok(()) };
        operator.send_and_discard(internal::revoke_key(key)).await
    }
}

/// Refuses a service that is not a sandbox, because its upstreams are real.
async fn require_sandbox(base: &Url) -> Result<(), CliError> {
    match Api::new(base.clone(), Credentials::None, &Egress::default())?
        .send_and_discard(Call::<()>::get("/sandbox/flows"))
        .await
    {
        Err(CliError::NotFound(_)) => Err(CliError::Refused(format!(
            "the service at {base} is no sandbox: trigger plays the outcomes of a sandbox's own upstreams, and drives \
                nothing else"
        ))),
        result => result,
    }
}

/// Issues a temporary key of a client. Returns the key and its id.
async fn issue_key(operator: &Api, client: &str) -> Result<(SecretString, String), CliError> {
    let until = SystemClock.now() + KEY_LIFETIME;
    let terms = json!({ "label": TRIGGER_APP, "environments": ["sandbox"], "expires_at": until });
    let issued = operator.send(internal::issue_key(client, &terms)).await?;
    Ok((issued.api_key.0.into(), issued.key_id.to_string()))
}

/// Returns the client and the app of the run. Without an app, uses or creates [`TRIGGER_APP`] of the first client.
async fn app_for_run(operator: &Api, app: Option<&str>) -> Result<(String, String), CliError> {
    if let Some(app) = app {
        return Ok((operator.send(internal::app(app)).await?.client_id.to_string(), app.to_owned()));
    }
    let page = operator.send(internal::clients(Page { page: 1, page_size: 1 })).await?;
    let first = page.clients.first().ok_or_else(|| CliError::Refused(NO_CLIENT.to_owned()))?;
    let client = first.client_id.to_string();
    let page = operator.send(internal::apps(&client)).await?;
    let app = match page.apps.into_iter().find(|app| app.name == TRIGGER_APP) {
        Some(app) => app.app_id,
        None => operator.send(internal::create_app(&client, TRIGGER_APP)).await?.app_id,
    };
    Ok((client, app.to_string()))
}

/// Returns a required member of a response.
pub(super) fn required_text(answer: &Value, member: &str) -> Result<String, CliError> {
    let text = answer[member].as_str().map(str::to_owned);
    text.ok_or_else(|| CliError::Refused(format!("the response has no {member}; has the service another version?")))
}
