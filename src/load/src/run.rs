//! A whole run: rehearse, start the guests, wait for the webhooks, read the service's records, and judge.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sakshi_client::judge::guests::RegisteredGuest;
use sakshi_client::judge::journal::{CallbackKind, Journal, PollResult, Records, Reply, Visit};
use sakshi_client::judge::{Evidence, Finding, judge, txns_with_webhook};
use sakshi_client::public;
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
use crate::process::{NamedProcess, processor_time, processor_time_of};
use crate::receiver::Receiver;
use crate::record::{Due, Recorder};
use crate::report::{Process, Summary, Tester};
use crate::schedule::Guest;
use crate::signer::{CredentialSigner, SignerError};
use crate::summary::{Measurements, summarise};
use crate::target::{TargetRefusal, check_target};
use crate::transport::Transport;
use crate::visit::{Destination, Progress, Site};
use crate::watch::Watch;
use crate::workload::{Workload, WorkloadError};

/// Interval at which the run checks for the last webhooks.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum number of attempts at reading a state that does not change meanwhile.
const EVIDENCE_READS_MAX: u32 = 50;
/// Time within which a repeated webhook would arrive.
const REPEAT_WAIT: Duration = Duration::from_millis(500);
/// Time beyond the intended length of the run, so that the event does not end during a slow run.
const EVENT_MARGIN: Duration = Duration::from_secs(24 * 3_600);
/// Seconds to wait after the last intent has expired, so that it has expired by the service's clock too.
const EXPIRY_MARGIN_S: i64 = 15;

/// The reason why a run is not possible.
#[derive(Debug, Error)]
pub(crate) enum RunError {
    #[error(transparent)]
    Target(#[from] TargetRefusal),
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    #[error("a request to prepare or to read the service failed: {0}")]
    Service(#[from] sakshi_client::Error),
    #[error("a door could not be opened or read: {0}")]
    Door(#[from] DoorError),
    #[error(transparent)]
    Signer(#[from] SignerError),
    #[error("a rehearsal with one guest failed, so a run would prove nothing: {0}")]
    Rehearsal(String),
    #[error("no HTTP client: {0}")]
    Client(#[from] reqwest::Error),
    #[error("the operating system failed: {0}")]
    System(#[from] std::io::Error),
}

/// Runs the workload of the options.
pub(crate) async fn run(options: &Options) -> Result<Summary, RunError> {
    let workload = Workload::from_options(options)?;
    for target in options.base.iter().chain([&options.internal]) {
        check_target(target, options.i_own_this_target)?;
    }
    let http = sakshi_client::http(Duration::from_secs_f64(options.timeout), true)?;
    let operator = Operator::new(http.clone(), options.internal.clone(), &options.admin_token);
    for base in &options.base {
        rehearse(options, &workload, &http, &operator, base).await?;
    }

    let started_at = SystemClock.now();
    let (site, receiver) = prepare(options, &workload, &http, &operator, &options.base).await?;
    let doors = match &site.destination {
        Destination::Event(event) => Doors::open(&site, event, &workload).await?,
        Destination::Api(_) => None,
    };
    let doors = doors.map(|doors| doors.start(&site));
    let tester_time_before = processor_time();
    let times_before = processor_times(&options.pid);
    let watch = Watch { workload: &workload, site: &site, receiver: &receiver };
    let (memory, duration) =
        watch.watch_until_finished(engine::run_guests(&workload, &site), &operator, &options.pid).await;
    let busy = processor_share(tester_time_before, duration);
    let guests = site.progress.started.load(Ordering::Relaxed).max(1) as f64;
    let ms_per_guest = |after: Duration, before: Duration| after.saturating_sub(before).as_secs_f64() * 1e3 / guests;
    let processes = options.pid.iter().zip(processor_times(&options.pid)).zip(times_before).filter_map(
        |((process, after), before)| {
            Some(Process { name: process.name.clone(), ms_per_guest: ms_per_guest(after?, before?) })
        },
    );
    let processes = processes.collect();

    await_webhooks(options, &workload, &site, &receiver).await;
    // All registrations are complete, even of guests whose answers were lost.
    let door_views = match doors {
        Some(doors) => doors.end(&site).await?,
        None => Vec::new(),
    };
    read_refused_results(&site).await;
    let evidence =
        Evidence { doors: door_views, ..read_evidence(options, &workload, &operator, &site, &receiver).await? };
    let mut findings = judge(&evidence);
    add_deliveries(&mut findings, &evidence, &operator).await;
    let tester = Tester::evaluate(&site.progress.lag.snapshot(), &site.signer.waits.snapshot(), busy);
    let steps = site.transport.recorder.snapshot();
    Ok(summarise(
        &workload,
        &evidence,
        findings,
        Measurements { started_at, duration, steps, tester, memory, processes },
    ))
}

/// Returns the credits of the run's client: one for each guest, and one more.
fn credits_to_grant(workload: &Workload) -> i64 {
    i64::try_from(workload.guests).unwrap_or(i64::MAX).saturating_add(1)
}

/// Sends a single guest of a separate client to a listener. A failure means a wrong target or key, or a faulty tester,
/// not load.
async fn rehearse(
    options: &Options,
    workload: &Workload,
    http: &reqwest::Client,
    operator: &Operator,
    base: &Url,
) -> Result<(), RunError> {
    let single = Workload { guests: 0, max_guests: 1, think_time: Duration::ZERO, ..workload.clone() };
    let (site, _receiver) = prepare(options, &single, http, operator, std::slice::from_ref(base)).await?;
    // The guest must complete the verification.
    let (abandon, decline) = (0.0, 0.0);
    let visit = Box::pin(Arc::clone(&site).visit(Guest::draw(workload.seed, 0, abandon, decline), Due::SENDING)).await;
    if visit == Visit::Done {
        return Ok(());
    }
    Err(RunError::Rehearsal(
        site.journal
            .with(|records| records.problems.first().cloned())
            .unwrap_or_else(|| "the only guest was turned away".to_owned()),
    ))
}

/// Creates a client with credits, a receiver for its webhooks and, unless the scenario is `api`, an event.
async fn prepare(
    options: &Options,
    workload: &Workload,
    http: &reqwest::Client,
    operator: &Operator,
    bases: &[Url],
) -> Result<(Arc<Site>, Receiver), RunError> {
    let base = bases.first().ok_or(TargetRefusal::Foreign("nothing".to_owned()))?;
    let backend = operator.create_backend(base, credits_to_grant(workload)).await?;
    let run_start = Instant::now();
    let receiver = Receiver::start(options.webhook_host, run_start).await?;
    let destination = if workload.has_event() {
        Destination::Event(
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
        Destination::Api(receiver.url().to_owned())
    };
    let site = Site {
        transport: Transport::new(http.clone(), bases.to_vec(), Recorder::new(run_start, workload.slice)),
        signer: CredentialSigner::new(&options.issuer, &options.issuer_key, workload.duplicates > 0.0)?,
        journal: Journal::default(),
        backend,
        destination,
        desktops: options.desktops,
        think_time: workload.think_time,
        run_start,
        progress: Progress::default(),
    };
    Ok((Arc::new(site), receiver))
}

/// Returns the processor time of each process so far, where the system reports it.
fn processor_times(processes: &[NamedProcess]) -> Vec<Option<Duration>> {
    processes.iter().map(|process| processor_time_of(process.pid)).collect()
}

/// Returns the share of all processors that the tester has used since `before`.
fn processor_share(before: Option<Duration>, duration: Duration) -> Option<f64> {
    let used = processor_time()?.checked_sub(before?)?;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    Some(used.as_secs_f64() / duration.as_secs_f64().max(0.01) / processors as f64)
}

/// Waits for the expected webhooks, then for unexpected ones, then until the guests who left have expired.
async fn await_webhooks(options: &Options, workload: &Workload, site: &Site, receiver: &Receiver) {
    let expected = site.journal.with(|records| txns_with_webhook(records, workload.has_event()));
    let end = Instant::now() + Duration::from_secs_f64(options.patience);
    while Instant::now() < end
        && !receiver.read_arrivals(|arrivals| expected.iter().all(|txn| arrivals.by_txn.contains_key(txn)))
    {
        sleep(CHECK_INTERVAL).await;
    }
    sleep(REPEAT_WAIT).await;
    let Destination::Event(event) = &site.destination else { return };
    let unanswered = |records: &Records| {
        let entries = records.entries.values().filter(|entry| entry.callback.is_none());
        (entries.clone().count() as u64, entries.filter_map(|entry| entry.intent_expires_at).max())
    };
    if let (true, (unanswered_count, Some(last_expiry))) = (options.until_expired, site.journal.with(unanswered)) {
        // The count may be correct before the end of the margin. If it stays wrong, the judge reports it.
        while SystemClock.now().seconds() < last_expiry + EXPIRY_MARGIN_S {
            if site
                .backend
                .api
                .send(public::event(event))
                .await
                .is_ok_and(|event| event.abandoned_count >= unanswered_count)
            {
                break;
            }
            sleep(CHECK_INTERVAL).await;
        }
    }
}

/// Reads the results of guests who were refused because they are already registered.
async fn read_refused_results(site: &Site) {
    let refused: Vec<String> = site
        .journal
        .with(|records| records.txns_with_reply(CallbackKind::Consent, Reply::Duplicate).map(str::to_owned).collect());
    for txn in refused {
        let poll_result = match site.backend.api.send(public::result(&txn).read_as::<Value>()).await {
            Ok(body) => PollResult::read(&body),
            Err(error) => PollResult::Refused(error.status().unwrap_or_default()),
        };
        site.journal.polled(&txn, poll_result);
    }
}

/// Reads the state of the service until the balance is the same before and after it.
///
/// An opening may be committed long after its client gave up: the kernel resends it once a broken network is repaired.
/// Between two reads it would look like a ledger that does not add up. A ledger that really does not is read as such.
async fn read_evidence(
    options: &Options,
    workload: &Workload,
    operator: &Operator,
    site: &Site,
    receiver: &Receiver,
) -> Result<Evidence, RunError> {
    let mut balance_before = operator.balance(&site.backend.client).await?;
    for _ in 1..EVIDENCE_READS_MAX {
        let evidence = read_state(options, workload, operator, site, receiver).await?;
        if evidence.balance == balance_before {
            return Ok(evidence);
        }
        balance_before = evidence.balance;
        sleep(CHECK_INTERVAL).await;
    }
    read_state(options, workload, operator, site, receiver).await
}

/// Reads counts and registrations, the ledger, and last the balance.
async fn read_state(
    options: &Options,
    workload: &Workload,
    operator: &Operator,
    site: &Site,
    receiver: &Receiver,
) -> Result<Evidence, RunError> {
    let read_at = SystemClock.now().seconds();
    let (mut event, mut guests) = (None, None);
    if let Destination::Event(id) = &site.destination {
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
        balance: operator.balance(&site.backend.client).await?,
        webhooks: receiver.read_arrivals(Clone::clone),
        event,
        guests,
        doors: Vec::new(),
        deliveries: None,
        granted: credits_to_grant(workload),
        has_poll_results: !workload.has_event(),
        max_guests: Some(workload.max_guests),
        read_at,
        all_expired: options.until_expired,
        late_after: Duration::from_secs_f64(options.late),
    })
}

/// Adds the service's record of the delivery to the examples of lost and repeated webhooks.
async fn add_deliveries(findings: &mut [Finding], evidence: &Evidence, operator: &Operator) {
    let webhook_findings = findings.iter_mut().filter(|finding| !finding.held && finding.rule.contains("webhook"));
    for example in webhook_findings.flat_map(|finding| &mut finding.examples) {
        let txn = evidence.journal.entries.keys().find(|txn| example.contains(txn.as_str()));
        if let Some(txn) = txn {
            let delivery = operator.describe_delivery(txn).await;
            *example = format!("{example}; {delivery}");
        }
    }
}
