//! `sakshi demo`: runs one verification on a fresh embedded store, prints each step, and keeps serving.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use sakshi_client::{Call, Client, Credentials, public};
use sakshi_domain::clock::{Clock as _, SystemClock};
use sakshi_portal::once::{self, LINK_LIFETIME};
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};
use serde_json::{Value, json};

use crate::cli::style::{Out, Tone};
use crate::developer::timeline::Timeline;
use crate::node::{Node, StartError};
use crate::sandbox::first_client;
use crate::sandbox::first_client::FirstClient;
use crate::serve;
use crate::serve::Signals;
use crate::settings::{LogFormat, Sources, load};
use crate::telemetry;
use crate::telemetry::{LogLevel, PrometheusRecorder};

/// Timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout of the demo's webhook.
const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(10);

/// Options of `demo`.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct Demo {
    /// Port of the public listener on 127.0.0.1; 0 for any free port. Default: the port of the settings (8080), or
    /// any free port if that is in use.
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
    /// Port of the internal listener on 127.0.0.1; 0 for any free port. Default: the port of the settings (8081), or
    /// any free port if that is in use.
    #[arg(long, value_name = "PORT")]
    pub internal_port: Option<u16>,
}

/// Error that ends the demo.
type Failure = Box<dyn std::error::Error>;

/// Runs the demo until a signal.
pub(super) async fn run(options: Demo, sources: &Sources, out: &mut dyn Out, err: &mut dyn Write) -> ExitCode {
    let started = match telemetry::start_at(LogFormat::Text, None, "error") {
        Ok(log) => run_steps(options, sources, log.level(), out).await.map(|running| (log, running)),
        Err(error) => Err(error.into()),
    };
    match started {
        Ok((_log, (node, signals, _receiver, _directory))) => serve::serve_until_stopped(node, signals).await,
        Err(error) => {
            // If stderr is closed, the error cannot be reported.
            let _ = writeln!(err, "error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Starts a node, runs one verification and prints it. Returns the parts that must live while the node serves.
async fn run_steps(
    options: Demo,
    sources: &Sources,
    level: LogLevel,
    out: &mut dyn Out,
) -> Result<(Node, Signals, WebhookReceiver, tempfile::TempDir), Failure> {
    let directory = tempfile::Builder::new().prefix("sakshi-demo-").tempdir()?;
    let signals = Signals::listen()?;
    let node = start_node(options, sources, directory.path(), (serve::recorder()?, level)).await?;
    let client =
        first_client::ensure(&node.store, SystemClock.now()).await?.ok_or("the fresh store has a client already")?;
    let receiver = WebhookReceiver::start(Behaviour::Answer(200)).await?;

    let mut timeline = Timeline::begin(out);
    timeline.title(&format!("sakshi demo: one verification at {}", node.public_base))?;
    let credentials = Credentials::Client { key: client.key.reveal().into(), app: client.app.as_str().to_owned() };
    let api = Client::new(sakshi_client::http(TIMEOUT, false)?, node.public_base.parse()?, credentials);
    verify(&api, &receiver, &mut timeline).await?;
    print_next_commands(timeline.out(), &node, &client, &receiver)?;
    let link = once::create_link(&node.store, SystemClock.now(), client.key.digest(), client.app.clone()).await?;
    print_link(timeline.out(), &node.public_base, link.as_deref())?;
    Ok((node, signals, receiver, directory))
}

/// Starts a node on the requested ports. Default: the port of the settings, or any free port if that is in use.
async fn start_node(
    options: Demo,
    sources: &Sources,
    directory: &Path,
    (metrics, level): (PrometheusRecorder, LogLevel),
) -> Result<Node, Failure> {
    let mut sources = sources.clone();
    let set = |sources: &mut Sources, key: &str, value: String| sources.overrides.push((key.to_owned(), value));
    set(&mut sources, "profile", "sandbox".to_owned());
    set(&mut sources, "store.path", directory.to_string_lossy().into_owned());
    let ports = [("server.public_addr", options.port), ("server.internal_addr", options.internal_port)];
    for (key, port) in ports {
        if let Some(port) = port {
            set(&mut sources, key, format!("127.0.0.1:{port}"));
        }
    }
    match Node::start(&load(&sources)?.settings, metrics.clone(), level.clone()).await {
        Err(StartError::Listen { .. }) if ports.iter().any(|(_, port)| port.is_none()) => {
            for (key, _) in ports.iter().filter(|(_, port)| port.is_none()) {
                set(&mut sources, key, "127.0.0.1:0".to_owned());
            }
            Ok(Node::start(&load(&sources)?.settings, metrics, level).await?)
        }
        started => Ok(started?),
    }
}

/// Runs one verification, playing client backend, resident and webhook receiver.
async fn verify(api: &Client, receiver: &WebhookReceiver, timeline: &mut Timeline<'_>) -> Result<(), Failure> {
    let request = json!({
        "claims": ["name", "dob", "gender", "address", "pincode"], "channel": "web", "language": "english",
        "face_auth": true, "webhook_url": receiver.url("/hook"), "client_reference_id": "order-42",
    });
    let claims: Vec<&str> = request["claims"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    timeline.line("init", &format!("client asks for {}", claims.join(", ")))?;
    let opened = api.send(public::init(&request).read_as::<Value>()).await?;
    let txn = text_member(&opened, "txnId")?;
    timeline.line("", &format!("txnId {txn}, expires {}", text_member(&opened, "expiresAt")?))?;
    let intent = text_member(&opened, "intentJwt")?;
    timeline.line("intent", &format!("signed for the identity app: {} characters", intent.len()))?;

    let pending = api.send(public::result(txn).read_as::<Value>()).await?;
    timeline.line("poll", if pending["pending"] == true { "pending" } else { "not pending" })?;

    timeline.line("consent", "the resident looks into the camera and agrees (sandbox identity app)")?;
    let answer = json!({ "intent": intent, "resident": "asha", "action": "approve" });
    let posted = api.send(Call::<Value>::post("/sandbox/app/answer", &answer)).await?;
    let status = posted["callback"]["status"].as_u64().unwrap_or_default();
    timeline.line("callback", &format!("signed SD-JWT posted, verified and accepted with {status}"))?;

    let Some(webhook) = receiver.wait_for(1, WEBHOOK_TIMEOUT).await.pop() else {
        return Err("no webhook arrived".into());
    };
    timeline.line("webhook", &format!("POST {}, {} bytes", webhook.path, webhook.body.len()))?;
    timeline.body(&String::from_utf8_lossy(&webhook.body))?;
    let result = api.send(public::result(txn).read_as::<Value>()).await?;
    let is_same = serde_json::from_slice::<Value>(&webhook.body).is_ok_and(|body| body == result);
    timeline.verdict(
        "result",
        is_same,
        if is_same { "the poll returns the same body" } else { "the poll returns a different body" },
    )?;
    if is_same { Ok(()) } else { Err("the webhook and the result differ".into()) }
}

fn text_member<'a>(body: &'a Value, member: &str) -> Result<&'a str, Failure> {
    body[member].as_str().ok_or_else(|| format!("the response has no {member}").into())
}

/// Prints the address to open first, in a box if it fits.
fn print_link(out: &mut dyn Out, base: &str, link: Option<&str>) -> io::Result<()> {
    let url = format!("{base}{}", link.unwrap_or("/portal"));
    let minutes = LINK_LIFETIME.as_secs() / 60;
    let explanation = if link.is_some() {
        format!("it signs in to the portal once, within {minutes} minutes")
    } else {
        "the portal".to_owned()
    };
    let (capabilities, lines) = (
        out.capabilities(),
        [(Tone::Bold, "Open this"), (Tone::Good, url.as_str()), (Tone::Plain, explanation.as_str())],
    );
    let text_width = lines.iter().map(|(_, text)| text.chars().count()).max().unwrap_or(0);
    writeln!(out)?;
    if capabilities.width().is_some_and(|width| width < text_width + 4) {
        for (tone, text) in lines {
            writeln!(out, "{}", capabilities.paint(tone, text))?;
        }
        return out.flush();
    }
    writeln!(out, "╭{}╮", "─".repeat(text_width + 2))?;
    for (tone, text) in lines {
        writeln!(out, "│ {}{} │", capabilities.paint(tone, text), " ".repeat(text_width - text.chars().count()))?;
    }
    writeln!(out, "╰{}╯", "─".repeat(text_width + 2))?;
    out.flush()
}

/// Returns the name of this program as typed in the shell.
fn program() -> String {
    std::env::args().next().unwrap_or_else(|| "sakshi".to_owned())
}

/// Prints commands to try next. They contain no comments, so that any shell accepts them.
fn print_next_commands(
    out: &mut dyn Out,
    node: &Node,
    first: &FirstClient,
    receiver: &WebhookReceiver,
) -> io::Result<()> {
    let base = &node.public_base;
    let (key, app) = (first.key.reveal(), &first.app);
    let hook = receiver.url("/hook");
    writeln!(
        out,
        r#"
Still serving. In a browser: {base}/docs and {base}/portal (the key and the app id below sign in)

In another terminal, first

  export KEY='{key}' APP='{app}' BASE='{base}'
  export SAKSHI_URL="$BASE" SAKSHI_ADMIN_URL='http://{internal}' SAKSHI_API_KEY="$KEY" SAKSHI_APP_ID="$APP"

open a transaction, which costs one credit:

  TXN=$(curl -s "$BASE/api/v1/nationalid-ovse/init" -H "X-API-KEY: $KEY" -H "X-API-APP-ID: $APP" \
    -H 'Content-Type: application/json' \
    -d '{{"claims":["name","photo"],"channel":"web","webhook_url":"{hook}"}}' | tee /dev/stderr | sed 's/.*"txnId":"\([^"]*\)".*/\1/')

be the resident, in a browser at the address that this prints:

  echo "$BASE/v/$TXN"

wait for the outcome, up to 30 seconds:

  curl -s "$BASE/api/v1/nationalid-ovse/result/$TXN?wait=30" -H "X-API-KEY: $KEY" -H "X-API-APP-ID: $APP"

see what the operator sees, the ledger and the supervision tree:

  curl -s "http://{internal}/admin/v1/clients/{client}/statement" \
    -H "Authorization: Bearer sandbox-admin-token-never-in-production"
  curl -s "http://{internal}/admin/v1/tree" -H "Authorization: Bearer sandbox-admin-token-never-in-production"

watch the node live with `{program} top`, or drive another flow from its order to its webhook, with this same program:

  {program} trigger esign --outcome completed --signers 2

Ctrl-C ends it; nothing is kept."#,
        program = program(),
        internal = node.internal_addr,
        client = first.client,
    )?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpListener};

    use super::*;

    /// Starts a demo with `public` as the public address of its settings. Returns the address that it uses.
    async fn start_demo(public: SocketAddr, options: Demo) -> Result<SocketAddr, Failure> {
        let directory = tempfile::tempdir().unwrap();
        let mut sources = Sources::default();
        for (name, value) in
            [("PUBLIC_ADDR", public.to_string()), ("INTERNAL_ADDR", "127.0.0.1:0".into()), ("WORKERS", "1".into())]
        {
            sources.environment.insert(format!("SAKSHI__SERVER__{name}"), value);
        }
        let node =
            start_node(options, &sources, directory.path(), (PrometheusRecorder::default(), LogLevel::default()))
                .await?;
        let address = node.public_addr;
        node.stop().await;
        Ok(address)
    }

    #[actix_rt::test]
    async fn the_demo_uses_the_address_of_the_environment_unless_it_is_in_use() {
        let occupied = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = occupied.local_addr().unwrap();
        assert_ne!(start_demo(address, Demo::default()).await.unwrap(), address);
        drop(occupied);
        assert_eq!(start_demo(address, Demo::default()).await.unwrap(), address);
    }

    #[actix_rt::test]
    async fn the_demo_uses_the_requested_port_or_names_it_in_its_error() {
        let occupied = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = occupied.local_addr().unwrap();
        let with_port = Demo { port: Some(address.port()), internal_port: None };
        let elsewhere = "127.0.0.1:0".parse().unwrap();
        let error = start_demo(elsewhere, with_port).await.unwrap_err().to_string();
        assert!(error.contains(&address.to_string()), "{error}");
        drop(occupied);
        assert_eq!(start_demo(elsewhere, with_port).await.unwrap(), address);
    }
}
