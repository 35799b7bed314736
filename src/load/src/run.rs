//! A whole run: rehearse, start the guests, wait for the webhooks, ask the service for its records, judge.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sakshi_client::judge::guests::RegisteredGuest;
use sakshi_client::judge::journal::{Journal, Polled, Posted, Records, Reply, Visit};
use sakshi_client::judge::{Evidence, Finding, judge, owed};
use sakshi_client::{internal, public};
use sakshi_domain::clock::{Clock as _, SystemClock};
use serde_json::Value;
use thiserror::Error;
use tokio::time::{Instant, sleep};
use url::Url;

use crate::cli::Options;
use crate::door::DoorError;
use crate::doors::Doors;
use crate::engine;
use crate::operator::Operator;
use crate::process::{Watched, processor_time, processor_time_of};
use crate::receiver::Receiver;
use crate::record::{Due, Recorder};
use crate::report::{Process, Summary, Tester};
use crate::schedule::Guest;
use crate::signer::{CredentialSigner, SignerError};
use crate::summary::{Course, summarise};
use crate::target::{TargetRefusal, admit};
use crate::transport::Transport;
use crate::visit::{Place, Progress, Site};
use crate::watch::Watch;
use crate::workload::{Workload, WorkloadError};

/// Interval at which the last webhooks are checked for.
const CHECK: Duration = Duration::from_millis(20);
/// Time within which a second webhook for the same subject would arrive.
const AFTERMATH: Duration = Duration::from_millis(500);
/// Margin beyond the intended length, so that the event outlives a slow run.
const EVENT_MARGIN: Duration = Duration::from_secs(24 * 3_600);
/// Seconds beyond the last intent's end, so that the service's clock has passed it too.
const EXPIRY_MARGIN: i64 = 15;

/// The error when a run cannot be made.
#[derive(Debug, Error)]
pub(crate) enum Unable {
    #[error(transparent)]
    Target(#[from] TargetRefusal),
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    #[error("the service could not be prepared or asked: {0}")]
    Service(#[from] sakshi_client::Error),
    #[error("a door could not be opened or read: {0}")]
    Door(#[from] DoorError),
    #[error(transparent)]
    Signer(#[from] SignerError),
    #[error("a rehearsal with one guest failed, so nothing would be proved: {0}")]
    Rehearsal(String),
    #[error("no HTTP client: {0}")]
    Client(#[from] reqwest::Error),
    #[error("the system refused: {0}")]
    System(#[from] std::io::Error),
}

/// Makes the run that the options describe.
pub(crate) async fn run(options: &Options) -> Result<Summary, Unable> {
    let workload = Workload::of(options)?;
    for target in options.base.iter().chain([&options.internal]) {
        admit(target, options.i_own_this_target)?;
    }
    let http = sakshi_client::http(Duration::from_secs_f64(options.timeout), true)?;
    let operator = Operator::new(http.clone(), options.internal.clone(), &options.admin_token);
    for base in &options.base {
        rehearse(options, &workload, &http, &operator, base).await?;
    }

    let began = SystemClock.now();
    let (site, receiver) = prepare(options, &workload, &http, &operator, &options.base).await?;
    let doors = match &site.place {
        Place::Event(event) => Doors::open(&site, event, &workload).await?,
        Place::Api(_) => None,
    };
    let doors = doors.map(|doors| doors.work(&site));
    let used = processor_time();
    let used_by = spent(&options.pid);
    let watching = Watch { workload: &workload, site: &site, receiver: &receiver };
    let (memory, took) = watching.during(engine::run(&workload, &site), &operator, &options.pid).await;
    let busy = share(used, took);
    let guests = site.progress.started.load(Ordering::Relaxed).max(1) as f64;
    let of_guest = |after: Duration, before: Duration| after.saturating_sub(before).as_secs_f64() * 1e3 / guests;
    let processes =
        options.pid.iter().zip(spent(&options.pid)).zip(used_by).filter_map(|((process, after), before)| {
            Some(Process { name: process.name.clone(), ms_per_guest: of_guest(after?, before?) })
        });
    let processes = processes.collect();

    settle(options, &workload, &site, &receiver).await;
    // By now every registration is done, even that of a guest whose answer was lost.
    let views = match doors {
        Some(doors) => doors.end(&site).await?,
        None => Vec::new(),
    };
    read_refused(&site).await;
    let evidence = Evidence { doors: views, ..gather(options, &workload, &operator, &site, &receiver).await? };
    let mut findings = judge(&evidence);
    explain(&mut findings, &evidence, &operator).await;
    let tester = Tester::of(&site.progress.lag.snapshot(), &site.signer.waits.snapshot(), busy);
    let steps = site.transport.recorder.snapshot();
    Ok(summarise(&workload, &evidence, findings, Course { began, took, steps, tester, memory, processes }))
}

/// Returns credits for every guest and one more.
fn granted(workload: &Workload) -> i64 {
    i64::try_from(workload.guests).unwrap_or(i64::MAX).saturating_add(1)
}

/// Sends one guest alone to a listener, as another client's. A failure here means a wrong target, key or tester, not
/// load.
async fn rehearse(
    options: &Options,
    workload: &Workload,
    http: &reqwest::Client,
    operator: &Operator,
    base: &Url,
) -> Result<(), Unable> {
    let alone = Workload { guests: 0, max_guests: 1, think: Duration::ZERO, ..workload.clone() };
    let (site, _receiver) = prepare(options, &alone, http, operator, std::slice::from_ref(base)).await?;
    let visit = Box::pin(Arc::clone(&site).visit(Guest::draw(workload.seed, 0, 0.0, 0.0), Due::Every(None))).await;
    if visit == Visit::Done {
        return Ok(());
    }
    Err(Unable::Rehearsal(
        site.journal
            .with(|records| records.problems.first().cloned())
            .unwrap_or_else(|| "the only guest was turned away".to_owned()),
    ))
}

/// Creates a client with its credits, a receiver of its webhooks and an event, unless client backends come.
async fn prepare(
    options: &Options,
    workload: &Workload,
    http: &reqwest::Client,
    operator: &Operator,
    bases: &[Url],
) -> Result<(Arc<Site>, Receiver), Unable> {
    let base = bases.first().ok_or(TargetRefusal::Foreign("nothing".to_owned()))?;
    let backend = operator.backend(base, granted(workload)).await?;
    let origin = Instant::now();
    let receiver = Receiver::start(options.webhook_host, origin).await?;
    let place = if workload.has_event() {
        Place::Event(
            backend
                .create_event(
                    workload.max_guests,
                    workload.length + EVENT_MARGIN,
                    receiver.url(),
                    workload.on_duplicate,
                )
                .await?,
        )
    } else {
        Place::Api(receiver.url().to_owned())
    };
    let site = Site {
        transport: Transport::new(http.clone(), bases.to_vec(), Recorder::new(origin, workload.slice)),
        signer: CredentialSigner::new(&options.issuer, &options.issuer_key, workload.duplicates > 0.0)?,
        journal: Journal::default(),
        backend,
        place,
        desktops: options.desktops,
        think: workload.think,
        origin,
        progress: Progress::default(),
    };
    Ok((Arc::new(site), receiver))
}

/// Returns the processor time of each so far, where the system reports it.
fn spent(processes: &[Watched]) -> Vec<Option<Duration>> {
    processes.iter().map(|process| processor_time_of(process.pid)).collect()
}

/// Returns the share of all processors that was used since `before`.
fn share(before: Option<Duration>, took: Duration) -> Option<f64> {
    let used = processor_time()?.checked_sub(before?)?;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    Some(used.as_secs_f64() / took.as_secs_f64().max(0.01) / processors as f64)
}

/// Waits for the expected webhooks, then for unexpected ones, then until the guests who left have expired.
async fn settle(options: &Options, workload: &Workload, site: &Site, receiver: &Receiver) {
    let owed = site.journal.with(|records| owed(records, workload.has_event()));
    let end = Instant::now() + Duration::from_secs_f64(options.patience);
    while Instant::now() < end && !receiver.with(|seen| owed.iter().all(|txn| seen.by_txn.contains_key(txn))) {
        sleep(CHECK).await;
    }
    sleep(AFTERMATH).await;
    let Place::Event(event) = &site.place else { return };
    let left = |records: &Records| {
        let gone = records.entries.values().filter(|entry| entry.answered.is_none());
        (gone.clone().count() as u64, gone.filter_map(|entry| entry.expires).max())
    };
    if let (true, (left, Some(last))) = (options.until_expired, site.journal.with(left)) {
        // The count may be right before the last second of the margin; if it stays wrong, the judge reports it.
        while SystemClock.now().seconds() < last + EXPIRY_MARGIN {
            if site.backend.api.send(public::event(event)).await.is_ok_and(|event| event.abandoned_count >= left) {
                break;
            }
            sleep(CHECK).await;
        }
    }
}

/// Reads the results of guests who were refused because they are registered already.
async fn read_refused(site: &Site) {
    let refused: Vec<String> =
        site.journal.with(|records| records.replied(Posted::Consent, Reply::Duplicate).map(str::to_owned).collect());
    for txn in refused {
        let polled = match site.backend.api.send(public::result(&txn).read_as::<Value>()).await {
            Ok(body) => Polled::read(&body),
            Err(error) => Polled::Refused(error.status().unwrap_or_default()),
        };
        site.journal.polled(&txn, polled);
    }
}

/// Reads the service's ledger, counts and registrations.
async fn gather(
    options: &Options,
    workload: &Workload,
    operator: &Operator,
    site: &Site,
    receiver: &Receiver,
) -> Result<Evidence, Unable> {
    let read_at = SystemClock.now().seconds();
    let (mut event, mut guests) = (None, None);
    if let Place::Event(id) = &site.place {
        let view = site.backend.api.send(public::event(id)).await?;
        let listed: Vec<RegisteredGuest> =
            site.backend.api.registrations(id).await?.into_iter().map(Into::into).collect();
        event = Some((view, listed.iter().map(|guest| guest.txn.clone()).collect()));
        guests = Some(listed);
    }
    Ok(Evidence {
        journal: site.journal.with(Clone::clone),
        started: site.progress.started.load(Ordering::Relaxed),
        ledger: operator.api.ledger(&site.backend.client).await?,
        balance: operator.api.send(internal::balance(&site.backend.client)).await?.balance,
        webhooks: receiver.with(Clone::clone),
        event,
        guests,
        doors: Vec::new(),
        deliveries: None,
        granted: granted(workload),
        polled: !workload.has_event(),
        max_guests: Some(workload.max_guests),
        read_at,
        all_expired: options.until_expired,
        late: Duration::from_secs_f64(options.late),
    })
}

/// Adds the service's record of the attempt to the examples of lost and repeated webhooks.
async fn explain(findings: &mut [Finding], evidence: &Evidence, operator: &Operator) {
    let of_webhooks = findings.iter_mut().filter(|finding| !finding.held && finding.rule.contains("webhook"));
    for example in of_webhooks.flat_map(|finding| &mut finding.examples) {
        let txn = evidence.journal.entries.keys().find(|txn| example.contains(txn.as_str()));
        if let Some(txn) = txn {
            let kept = operator.delivery(txn).await;
            *example = format!("{example}; {kept}");
        }
    }
}
