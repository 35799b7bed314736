//! A whole run: rehearse, let the guests in, wait for what is owed, ask the service for its account, judge.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use sakshi_client::{internal, public};
use sakshi_domain::clock::{Clock as _, SystemClock};
use sakshi_judge::journal::{Journal, Pages, Visit};
use sakshi_judge::{Evidence, Verdict, judge, owed, webhooks};
use thiserror::Error;
use tokio::time::{Instant, sleep};
use url::Url;

use crate::cli::Options;
use crate::engine::{self, Gate};
use crate::operator::{Backend, Operator};
use crate::plan::{Model, Plan, PlanError};
use crate::receiver::Receiver;
use crate::record::{Due, Recorder, latencies};
use crate::report::{Process, Summary};
use crate::schedule::Guest;
use crate::signer::{CredentialSigner, SignerError};
use crate::strain::{Lag, Strain, Watched, processor_time, processor_time_of};
use crate::summary::{Ended, summarise};
use crate::target::{TargetRefusal, admit};
use crate::transport::Transport;
use crate::visit::{Place, Site};
use crate::watch;

/// How often the last webhooks are looked for.
const LOOK: Duration = Duration::from_millis(20);
/// How long a second webhook for something may take to show itself.
const AFTERMATH: Duration = Duration::from_millis(500);
/// Beyond the intended length, so that the event outlives a slow run.
const EVENT_MARGIN: Duration = Duration::from_secs(24 * 3_600);
/// Beyond the last intent's end, so that the service's clock has passed it too.
const EXPIRY_MARGIN: i64 = 15;

/// Why there was no run.
#[derive(Debug, Error)]
pub enum Unable {
    /// The target may not be driven.
    #[error(transparent)]
    Target(#[from] TargetRefusal),
    /// The options make no run.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The service does not answer the operator or the backend.
    #[error("the service could not be prepared or asked: {0}")]
    Service(#[from] sakshi_client::Error),
    /// There are no credentials.
    #[error(transparent)]
    Signer(#[from] SignerError),
    /// One guest alone did not get through.
    #[error("a rehearsal with one guest failed, so nothing would be proved: {0}")]
    Rehearsal(String),
    /// The HTTP client.
    #[error("no HTTP client: {0}")]
    Client(#[from] reqwest::Error),
    /// The system.
    #[error("the system refused: {0}")]
    System(#[from] std::io::Error),
    /// The histograms.
    #[error("no histogram: {0}")]
    Histogram(#[from] hdrhistogram::CreationError),
}

/// Makes the run that the options describe.
///
/// # Errors
/// When it could not be made.
pub async fn run(options: &Options) -> Result<Summary, Unable> {
    let plan = Plan::of(options)?;
    for target in options.base.iter().chain([&options.internal]) {
        admit(target, options.i_own_this_target)?;
    }
    let base = options.base.first().ok_or(TargetRefusal::Foreign("nothing".to_owned()))?;
    let http = sakshi_client::http(Duration::from_secs_f64(options.timeout), true)?;
    let operator = Operator::new(http.clone(), options.internal.clone(), &options.admin_token);
    for base in &options.base {
        rehearse(options, &plan, &http, &operator, base).await?;
    }

    let backend = operator.backend(base, granted(&plan)).await?;
    let (began, origin) = (SystemClock.now(), Instant::now());
    let receiver = Receiver::start(options.webhook_host, origin).await?;
    let place = place(&plan, &backend, &receiver).await?;
    let recorder = Arc::new(Recorder::new(origin, plan.slice)?);
    let site = Arc::new(Site {
        transport: Transport::new(http, Arc::from(options.base.as_slice()), Arc::clone(&recorder)),
        signer: CredentialSigner::new(&options.issuer, &options.issuer_key, latencies(3)?)?,
        journal: Journal::default(),
        backend,
        place,
        desktops: options.desktops,
        think: plan.think,
        origin,
    });
    let gate = Arc::new(Gate { let_in: AtomicU64::new(0), closed: AtomicBool::new(false), lag: Lag::new(latencies(3)?) });

    let used = processor_time();
    let used_by = spent(&options.pid);
    let watching = watch::Watch { plan: &plan, site: &site, gate: &gate, recorder: &recorder, receiver: &receiver };
    let (memory, took) = watching.during(engine::run(&plan, &site, &gate), &operator, &options.pid).await;
    let busy = share(used, took);
    let guests = gate.let_in.load(Ordering::Relaxed).max(1) as f64;
    let of_guest = |after: Duration, before: Duration| after.saturating_sub(before).as_secs_f64() * 1e3 / guests;
    let processes = options
        .pid
        .iter()
        .zip(spent(&options.pid))
        .zip(used_by)
        .filter_map(|((process, after), before)| Some(Process { name: process.name.clone(), ms_per_guest: of_guest(after?, before?) }));
    let processes = processes.collect();

    settle(options, &plan, &site, &receiver).await;
    let mut evidence = gather(options, &plan, &operator, &site, &receiver, &gate).await?;
    let mut findings = judge(&evidence);
    explain(&mut findings, &mut evidence, &operator).await;
    let strain = Strain { lag: gate.lag.all(), waits: site.signer.waits(), busy };
    let counts = webhooks(&evidence);
    let verdict = Verdict::of(&findings);
    let ended = Ended { began, took, steps: recorder.snapshot(), strain, memory, processes, findings, counts, verdict };
    Ok(summarise(&plan, &evidence, ended))
}

/// Credits for every guest and one more.
fn granted(plan: &Plan) -> i64 {
    i64::try_from(plan.guests).unwrap_or(i64::MAX).saturating_add(1)
}

/// One guest alone at each listener, of another client: whatever fails here is a wrong target, key or tester, not load.
async fn rehearse(options: &Options, plan: &Plan, http: &reqwest::Client, operator: &Operator, base: &Url) -> Result<(), Unable> {
    let origin = Instant::now();
    let receiver = Receiver::start(options.webhook_host, origin).await?;
    let backend = operator.backend(base, 1).await?;
    let place = place(&Plan { max_guests: 1, ..plan.clone() }, &backend, &receiver).await?;
    let site = Arc::new(Site {
        transport: Transport::new(http.clone(), Arc::from([base.clone()]), Arc::new(Recorder::new(origin, plan.slice)?)),
        signer: CredentialSigner::new(&options.issuer, &options.issuer_key, latencies(3)?)?,
        journal: Journal::default(),
        backend,
        place,
        desktops: options.desktops,
        think: Duration::ZERO,
        origin,
    });
    let visit = Box::pin(Arc::clone(&site).visit(Guest::draw(plan.seed, 0, 0.0, 0.0), Due::Every(None))).await;
    if visit == Visit::Done {
        return Ok(());
    }
    Err(Unable::Rehearsal(
        site.journal.with(|pages| pages.troubles.first().cloned()).unwrap_or_else(|| "the only guest was turned away".to_owned()),
    ))
}

async fn place(plan: &Plan, backend: &Backend, receiver: &Receiver) -> Result<Place, sakshi_client::Error> {
    if !plan.has_event() {
        return Ok(Place::Api(receiver.url().to_owned()));
    }
    backend.create_event(plan.max_guests, plan.length + EVENT_MARGIN, receiver.url()).await.map(Place::Event)
}

/// Processor time of each so far, where the system says.
fn spent(processes: &[Watched]) -> Vec<Option<Duration>> {
    processes.iter().map(|process| processor_time_of(process.pid)).collect()
}

/// The share of all processors that was used since.
fn share(before: Option<Duration>, took: Duration) -> Option<f64> {
    let used = processor_time()?.checked_sub(before?)?;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    Some(used.as_secs_f64() / took.as_secs_f64().max(0.01) / processors as f64)
}

/// Waits for the webhooks that are owed, then for what should not come, then for those who left.
async fn settle(options: &Options, plan: &Plan, site: &Site, receiver: &Receiver) {
    let owed = site.journal.with(|pages| owed(pages, plan.has_event()));
    let end = Instant::now() + Duration::from_secs_f64(options.patience);
    while Instant::now() < end && !receiver.with(|seen| owed.iter().all(|txn| seen.by_txn.contains_key(txn))) {
        sleep(LOOK).await;
    }
    sleep(AFTERMATH).await;
    let Place::Event(event) = &site.place else { return };
    let left = |pages: &Pages| {
        let gone = pages.entries.values().filter(|entry| entry.answered.is_none());
        (gone.clone().count() as u64, gone.filter_map(|entry| entry.expires).max())
    };
    if let (true, (left, Some(last))) = (options.until_expired, site.journal.with(left)) {
        // The count may be right before the last second of the margin; if it stays wrong, the judge says so.
        while SystemClock.now().seconds() < last + EXPIRY_MARGIN {
            if site.backend.api.send(public::event(event)).await.is_ok_and(|event| event.abandoned_count >= left) {
                break;
            }
            sleep(LOOK).await;
        }
    }
}

/// Asks the service for its account.
async fn gather(
    options: &Options,
    plan: &Plan,
    operator: &Operator,
    site: &Site,
    receiver: &Receiver,
    gate: &Gate,
) -> Result<Evidence, Unable> {
    let read_at = SystemClock.now().seconds();
    let event = match &site.place {
        Place::Event(id) => Some((site.backend.api.send(public::event(id)).await?, site.backend.api.registered(id).await?)),
        Place::Api(_) => None,
    };
    Ok(Evidence {
        journal: site.journal.with(Clone::clone),
        let_in: gate.let_in.load(Ordering::Relaxed),
        ledger: operator.api.ledger(&site.backend.client).await?,
        balance: operator.api.send(internal::balance(&site.backend.client)).await?.balance,
        webhooks: receiver.with(Clone::clone),
        event,
        deliveries: None,
        granted: granted(plan),
        polled: !plan.has_event(),
        max_guests: Some(plan.max_guests),
        read_at,
        all_expired: options.until_expired,
        late: Duration::from_secs_f64(options.late),
    })
}

/// Adds to the examples of lost and doubled webhooks what the service kept about them.
async fn explain(findings: &mut [sakshi_judge::Finding], evidence: &mut Evidence, operator: &Operator) {
    let of_webhooks = findings.iter_mut().filter(|finding| !finding.held && finding.rule.contains("webhook"));
    for example in of_webhooks.flat_map(|finding| &mut finding.examples) {
        let txn = evidence.journal.entries.keys().find(|txn| example.contains(txn.as_str()));
        if let Some(txn) = txn {
            let kept = operator.delivery(txn).await;
            *example = format!("{example}; {kept}");
        }
    }
}

/// The model in words.
#[must_use]
pub fn in_words(plan: &Plan) -> (String, &'static str) {
    match plan.model {
        Model::Open { rate } => (
            format!("open model, {} guests at {rate:.1}/s on average (Poisson, seed {})", plan.guests, plan.seed),
            "Latencies count from the moment at which a request was intended, so a stall is seen by everybody who would have come meanwhile.",
        ),
        Model::Closed { users, interval } => (
            match interval {
                Some(interval) => {
                    format!("closed model, {users} users, {} guests, each user at most every {:.2} s", plan.guests, interval.as_secs_f64())
                }
                None => format!("closed model, {users} users, {} guests, one after the other", plan.guests),
            },
            "Corrected for coordinated omission: for a request that took longer than a user's cadence, what that user would have measured meanwhile is added.",
        ),
    }
}
