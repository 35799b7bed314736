//! Guests of one event who arrive over a minute, over HTTP: page, start, intent, credential, callback. The bench
//! reports the latency of each step and the cost of kiosks, and fails unless all guests are registered.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use reqwest::{Response, StatusCode};
use sakshi_authority::intent::decode_unverified;
use sakshi_client::{Client, Credentials, public};
use sakshi_domain::claims::ClaimSet;
use sakshi_domain::clock::{Clock as _, SystemClock};
use sakshi_sandbox::issuer::{HolderKey, SandboxIssuer};
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};
use sakshi_sandbox::residents::Resident;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::Failure;
use crate::kiosks::Kiosks;
use crate::node::{GENERATED_KEY, Service};
use crate::report::{Report, Target, median};
use crate::scale::Scale;

const STEPS: [&str; 4] = ["GET /e/{id}", "POST /e/{id}/start", "intent", "callback"];
const CLAIMS: [&str; 3] = ["name", "dob", "gender"];
/// Microseconds of processor time that kiosks may add to a guest.
const KIOSK_MICROS_MAX: f64 = 2_000.0;
/// Time limit for the arrival of the last webhooks.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Measures the steps of guests, without and with kiosks.
pub(crate) fn run(scale: Scale) -> Result<Report, Failure> {
    let service = Service::start(GENERATED_KEY)?;
    actix_rt::System::new().block_on(run_turns(&service, scale))
}

async fn run_turns(service: &Service, scale: Scale) -> Result<Report, Failure> {
    let site = Arc::new(Site::new(service)?);
    let mut report = Report::new("guests");
    let [without_kiosks, _] = run_turn(&site, service, scale, 0, &mut report).await?;
    let [with_kiosks, states] = run_turn(&site, service, scale, scale.kiosks, &mut report).await?;
    report.figure("server CPU of a guest, µs", &[without_kiosks]);
    report.figure(&format!("server CPU of a guest while {} kiosks watch, µs", scale.kiosks), &[with_kiosks]);
    report.figure_with_target(
        "**what the kiosks cost for a guest, µs**",
        &[with_kiosks - without_kiosks],
        Target::AtMost(KIOSK_MICROS_MAX),
    );
    report.figure(
        "server CPU of a state that a kiosk is sent, µs",
        &[(with_kiosks - without_kiosks) * scale.guests as f64 / states],
    );
    report.note(format!(
        "{} guests arrived evenly over {:.0} s, in each of two turns. All were registered, each with one webhook, and \
         no request failed. Load generator and service share the machine. The kiosks read their streams from as many \
         addresses.",
        scale.guests,
        scale.arrivals.as_secs_f64()
    ));
    Ok(report)
}

/// Runs a turn: an event, its guests and its kiosks. Returns the server's microseconds of processor time per guest, and
/// the number of states that the kiosks read.
async fn run_turn(
    site: &Arc<Site>,
    service: &Service,
    scale: Scale,
    kiosks: usize,
    report: &mut Report,
) -> Result<[f64; 2], Failure> {
    let receiver = WebhookReceiver::start(Behaviour::Answer(200)).await?;
    let event = site.create_event(scale.guests, &receiver.url("/hook")).await?;
    let mut kiosks = Kiosks::watch(service.server.address, &event, kiosks).await?;
    let (kiosk_count, time_before, started) = (kiosks.len(), service.server.processor_time()?, Instant::now());
    let mut guests = JoinSet::new();
    for guest in 0..scale.guests {
        let due = started + scale.arrivals.mul_f64(guest as f64 / scale.guests as f64);
        let (site, event) = (Arc::clone(site), event.clone());
        guests.spawn(async move {
            sleep_until(due).await;
            site.visit(&event).await
        });
    }
    let mut times: [Vec<f64>; 4] = Default::default();
    while let Some(visit) = guests.join_next().await {
        for (step_times, time) in times.iter_mut().zip(visit??) {
            step_times.push(time.as_secs_f64() * 1_000.0);
        }
    }
    let webhooks = receiver.wait_for(scale.guests, TIMEOUT).await.len();
    let registered = site.organiser.send(public::event(&event)).await?.registration_count;
    if u64::from(registered) != scale.guests as u64 || webhooks != scale.guests {
        return Err(format!("{} guests, {registered} registered, {webhooks} webhooks", scale.guests).into());
    }
    let micros = (service.server.processor_time()? - time_before).as_secs_f64() * 1e6 / scale.guests as f64;
    if kiosks.len() != kiosk_count {
        return Err(format!("only {} of {kiosk_count} kiosks are still connected", kiosks.len()).into());
    }
    let suffix = if kiosk_count == 0 { String::new() } else { format!(" beside {kiosk_count} kiosks") };
    for (step, times) in STEPS.iter().zip(&mut times) {
        times.sort_by(f64::total_cmp);
        report.figure(&format!("{step}{suffix}, p50 in ms"), &[median(times)]);
        report.figure(&format!("{step}{suffix}, p99 in ms"), &[times[times.len() * 99 / 100]]);
    }
    Ok([micros, kiosks.states_read() as f64])
}

/// HTTP client of the organiser, the guests and their phones.
struct Site {
    http: reqwest::Client,
    base: String,
    organiser: Client,
    issuer: SandboxIssuer,
    resident: &'static Resident,
    claims: ClaimSet,
}

impl Site {
    fn new(service: &Service) -> Result<Self, Failure> {
        let http = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build()?;
        let base = format!("http://{}", service.server.address);
        let credentials = Credentials::Client {
            key: service.server.text("key")?.into(),
            app: service.server.text("app")?.to_owned(),
        };
        Ok(Self {
            organiser: Client::new(http.clone(), base.parse()?, credentials),
            http,
            base,
            issuer: SandboxIssuer::from_pkcs8(
                "https://issuer.sandbox.invalid",
                &std::fs::read(service.key_file("issuer.p8"))?,
            )?,
            resident: Resident::find("asha").ok_or("no such resident")?,
            claims: ClaimSet::parse(&CLAIMS)?,
        })
    }

    async fn create_event(&self, guests: usize, webhook: &str) -> Result<String, Failure> {
        let end = (SystemClock.now() + Duration::from_secs(3_600)).to_string();
        let terms = json!({ "name": "Open day", "claims": CLAIMS, "max_guests": guests, "expires_at": end,
            "webhook_url": webhook });
        Ok(self.organiser.send(public::create_event(&terms)).await?.event_id.to_string())
    }

    /// Plays a guest and returns the duration of each step.
    async fn visit(&self, event: &str) -> Result<[Duration; 4], Failure> {
        let started_at = Instant::now();
        expect(self.http.get(self.url(&format!("/e/{event}"))).send().await?, StatusCode::OK)?.bytes().await?;
        let page_at = Instant::now();
        let redirect =
            expect(self.http.post(self.url(&format!("/e/{event}/start"))).send().await?, StatusCode::SEE_OTHER)?;
        let page =
            redirect.headers().get(LOCATION).and_then(|value| value.to_str().ok()).ok_or("no location")?.to_owned();
        let page = if page.starts_with('/') { self.url(&page) } else { page };
        let redirect_at = Instant::now();
        let jwt =
            expect(self.http.get(page).header(ACCEPT, "application/jwt").send().await?, StatusCode::OK)?.text().await?;
        let intent_at = Instant::now();
        let intent = decode_unverified(&jwt)?;
        let now = SystemClock.now();
        // Each guest is a different person with a different phone.
        let (person, holder) = (self.resident.with_name(format!("Guest {}", intent.txn)), HolderKey::generate()?);
        let credential =
            holder.bind(&self.issuer.issue(&person, self.claims, &holder, now)?, &intent.txn, &intent.aud, now)?;
        let credential_at = Instant::now();
        let body = json!({ "txn": intent.txn, "response": credential }).to_string();
        let request = self.http.post(&intent.cb).header(CONTENT_TYPE, "application/json").body(body);
        expect(request.send().await?, StatusCode::OK)?.bytes().await?;
        Ok([page_at - started_at, redirect_at - page_at, intent_at - redirect_at, credential_at.elapsed()])
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }
}

/// Returns the response if it has the expected status.
fn expect(response: Response, status: StatusCode) -> Result<Response, Failure> {
    if response.status() == status {
        Ok(response)
    } else {
        Err(format!("{} answered {}", response.url().path(), response.status()).into())
    }
}
