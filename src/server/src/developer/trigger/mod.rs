//! `sakshi trigger`: drives one flow on a running sandbox, from its order to its outcome, and prints each step. It is
//! an ordinary client and uses only the public listener. [`access`] finds service and key, [`hook`] chooses the target
//! of the webhook, [`flow_run`] has the shared steps.

mod access;
mod check;
mod doclocker;
mod esign;
mod estamp;
mod flow_run;
mod hook;
mod ovse;
mod wealth;

use clap::{Args, Subcommand, ValueEnum};
use sakshi_domain::checks::Check;
use url::Url;

use crate::cli::error::CliError;
use crate::cli::style::Out;
use crate::developer::timeline::Timeline;
use crate::settings::Sources;
use access::{Access, Session};
use flow_run::FlowRun;
use hook::Hook;

/// Options of `trigger`.
#[derive(Args, Debug)]
#[command(after_help = outcomes())]
pub struct Trigger {
    #[command(flatten)]
    access: Access,
    /// URL that receives the webhook. If the flow's order has no field for it, it is registered for the app. Default:
    /// this command receives the webhook; if that would change the registered URL of the app in --app, the registered
    /// URL receives it.
    #[arg(long, global = true, value_name = "URL")]
    webhook_url: Option<Url>,
    #[command(subcommand)]
    flow: Flow,
}

#[derive(Clone, Copy, Debug, Subcommand)]
enum Flow {
    /// A verification with the identity app; costs a credit of the sandbox.
    Ovse {
        /// Action of the resident.
        #[arg(long, value_enum, default_value_t)]
        outcome: ovse::Outcome,
    },
    /// A document for signature.
    Esign {
        /// Action of the signers; `lapsed` waits until an invitation of a few seconds has expired.
        #[arg(long, value_enum, default_value_t)]
        outcome: esign::Outcome,
        /// Number of signers, in order.
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=20))]
        signers: u8,
    },
    /// Documents from a locker.
    Doclocker {
        /// Outcome at the locker.
        #[arg(long, value_enum, default_value_t)]
        outcome: doclocker::Outcome,
    },
    /// A document for stamping.
    Estamp {
        /// Outcome at the registry.
        #[arg(long, value_enum, default_value_t)]
        outcome: estamp::Outcome,
        /// Kind of stamp.
        #[arg(long, value_enum, default_value_t)]
        api_type: estamp::ApiType,
    },
    /// A consent to share wealth data, and the data.
    Wealth {
        /// Action of the person and the providers.
        #[arg(long, value_enum, default_value_t)]
        outcome: wealth::Outcome,
    },
    /// A number that is verified immediately, such as a PAN.
    Check {
        /// The kind; see the list below.
        #[arg(value_parser = check::parse_kind)]
        kind: &'static Check,
        /// Outcome at the upstream.
        #[arg(long, value_enum, default_value_t)]
        outcome: check::Outcome,
    },
}

impl Flow {
    const fn name(self) -> &'static str {
        match self {
            Self::Ovse { .. } => "ovse",
            Self::Esign { .. } => "esign",
            Self::Doclocker { .. } => "doclocker",
            Self::Estamp { .. } => "estamp",
            Self::Wealth { .. } => "wealth",
            Self::Check { kind, .. } => kind.name,
        }
    }

    /// Returns the name of the outcome on the command line.
    fn outcome_name(self) -> String {
        match self {
            Self::Ovse { outcome } => value_name(outcome),
            Self::Esign { outcome, .. } => value_name(outcome),
            Self::Doclocker { outcome } => value_name(outcome),
            Self::Estamp { outcome, .. } => value_name(outcome),
            Self::Wealth { outcome } => value_name(outcome),
            Self::Check { outcome, .. } => value_name(outcome),
        }
    }

    /// Returns true if the order contains the URL for the webhook.
    const fn order_has_url(self) -> bool {
        matches!(self, Self::Ovse { .. } | Self::Esign { .. })
    }

    const fn costs_a_credit(self) -> bool {
        matches!(self, Self::Ovse { .. })
    }
}

/// Returns the name of a value on the command line and in requests to the sandbox.
fn value_name<E: ValueEnum + Copy>(value: E) -> String {
    value.to_possible_value().map_or_else(String::new, |known| known.get_name().to_owned())
}

/// Returns the outcomes of every flow, for `--help`.
pub fn outcomes() -> String {
    fn outcomes_of<E: ValueEnum + Copy>(flow: &str) -> String {
        let names: Vec<String> = E::value_variants().iter().copied().map(value_name).collect();
        format!("  {flow:<10} {}\n", names.join(", "))
    }
    let flows = [
        outcomes_of::<ovse::Outcome>("ovse"),
        outcomes_of::<esign::Outcome>("esign"),
        outcomes_of::<doclocker::Outcome>("doclocker"),
        outcomes_of::<estamp::Outcome>("estamp"),
        outcomes_of::<wealth::Outcome>("wealth"),
        outcomes_of::<check::Outcome>("check"),
    ];
    format!("Outcomes (--outcome; the first is the default):\n{}Kinds of checks: {}\n", flows.concat(), check::kinds())
}

/// Drives the flow. Returns false if a result differs from the expected one.
pub async fn run(trigger: &Trigger, sources: &Sources, out: &mut dyn Out) -> Result<bool, CliError> {
    let flow = trigger.flow;
    let mut timeline = Timeline::begin(out);
    let session = Session::open(&trigger.access, sources).await?;
    timeline.title(&format!(
        "sakshi trigger {}, {}, at {}",
        flow.name(),
        flow.outcome_name(),
        session.base.as_str().trim_end_matches('/')
    ))?;
    session.introduce(&mut timeline)?;
    let result = drive(trigger, &session, &mut timeline).await;
    // The key is revoked in any case. If both fail, the error of the flow matters more.
    let revoked = session.revoke_key().await;
    let passed = result?;
    revoked?;
    timeline.verdict(
        "end",
        passed,
        if passed { "everything came out as it should" } else { "NOT everything came out as it should" },
    )?;
    Ok(passed)
}

/// Checks the credentials, chooses the target of the webhook, and runs the flow.
async fn drive(trigger: &Trigger, session: &Session, timeline: &mut Timeline<'_>) -> Result<bool, CliError> {
    session.check(trigger.flow.costs_a_credit()).await?;
    let hook = match trigger.flow {
        Flow::Check { .. } => Hook::registered(),
        flow => Hook::choose(trigger.webhook_url.as_ref(), session, flow.order_has_url()).await?,
    };
    let mut run = FlowRun { session, hook, timeline };
    let result = match trigger.flow {
        Flow::Ovse { outcome } => ovse::drive(&mut run, outcome).await,
        Flow::Esign { outcome, signers } => esign::drive(&mut run, outcome, signers).await,
        Flow::Doclocker { outcome } => doclocker::drive(&mut run, outcome).await,
        Flow::Estamp { outcome, api_type } => estamp::drive(&mut run, outcome, api_type).await,
        Flow::Wealth { outcome } => wealth::drive(&mut run, outcome).await,
        Flow::Check { kind, outcome } => check::drive(&mut run, kind, outcome).await,
    };
    let restored = run.hook.restore(session).await;
    let passed = result?;
    restored.map(|()| passed)
}
