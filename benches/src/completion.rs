//! Callbacks with fresh credentials, beside the two signature checks in each: the issuer's and the holder's.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sakshi_authority::intent::{IntentKey, decode_unverified};
use sakshi_domain::claims::ClaimSet;
use sakshi_domain::clock::{Clock as _, SystemClock};
use sakshi_domain::time::Timestamp;
use sakshi_sandbox::issuer::{HolderKey, SandboxIssuer};
use sakshi_sandbox::residents::Resident;
use serde_json::{Value, json};

use crate::crypto::{Checks, rate_of_all_cores};
use crate::load::{BodyMode, Requests};
use crate::node::Service;
use crate::process::{Server, written_bytes};
use crate::report::{Report, Target};
use crate::scale::Scale;
use crate::summary::Line;
use crate::{Failure, load, requests};

/// The least rate, as a share of that of the bare handler that verifies and writes as many bytes.
const RATIO_MIN: f64 = 0.6;
/// The least rate, as a share of that of the two verifications alone, without HTTP, disk and load generator.
const CHECKS_RATIO_MIN: f64 = 0.8;
const RESIDENT: &str = "asha";
/// Credentials issued per second: about the rate of answers.
const ISSUED_PER_SECOND: usize = 5_000;

/// Measures callbacks.
pub(crate) fn run(scale: Scale) -> Result<Report, Failure> {
    let files = tempfile::tempdir()?;
    // Intents are not measured here, so they are signed with the faster key.
    let key = files.path().join("es256.pem");
    std::fs::write(&key, IntentKey::generate_es256()?.1)?;
    let service = Service::start(Some(&key))?;
    let identity_app = IdentityApp::new(&service)?;
    let sample = identity_app.open_and_prepare(&service, Scale { callbacks: 1, ..scale })?;
    let checks = Checks::from_credential(&identity_app.credential_in(&sample)?, &identity_app.issuer.jwks_json())?;
    let answer_bytes = load::send_one(&service.server, &sample[0])?.len().to_string();
    let verifying = start_bare(files.path(), &checks, &[&answer_bytes])?;

    // The bare server that also writes starts after the first turn, which shows how many bytes to write.
    let (mut durable, mut bytes) = (None, Vec::new());
    let (mut service_turns, mut durable_turns, mut bare_turns, mut alone) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..scale.rounds {
        let callbacks = identity_app.open_and_prepare(&service, scale)?;
        let bytes_before = written_bytes(service.server.id())?;
        service_turns.push(load::each_once(&service.server, Arc::clone(&callbacks), scale, BodyMode::Discard)?.0);
        bytes.push((written_bytes(service.server.id())? - bytes_before) as f64 / callbacks.len() as f64);
        let durable = match &mut durable {
            Some(server) => server,
            none => {
                none.insert(start_bare(files.path(), &checks, &[&answer_bytes, "--keep", &format!("{:.0}", bytes[0])])?)
            }
        };
        durable_turns.push(load::each_once(durable, Arc::clone(&callbacks), scale, BodyMode::Discard)?.0);
        bare_turns.push(load::each_once(&verifying, callbacks, scale, BodyMode::Discard)?.0);
        alone.push(rate_of_all_cores(scale.span, || checks.verify())?);
    }
    let mut report = Report::new("completion");
    let bare_name = "bare handler that verifies and keeps as many bytes";
    report.compare(("completion", &service_turns), (bare_name, &durable_turns), Some(Target::AtLeast(RATIO_MIN)));
    report.figure("bytes written for a completion", &bytes);
    report.rates("bare handler that verifies", &bare_turns);
    report.figure("both verifications alone on all cores, per s", &alone);
    let ratios: Vec<f64> = service_turns.iter().zip(&alone).map(|(turn, alone)| turn.rate / alone).collect();
    report.figure_with_target("**completion ÷ both verifications alone**", &ratios, Target::AtLeast(CHECKS_RATIO_MIN));
    report.lines.push(Line::from_rates(
        ("completion", &service_turns),
        (bare_name, &durable_turns),
        Some(Target::AtLeast(RATIO_MIN)),
    ));
    report.lines.push(Line::from_rates(
        ("completion", &service_turns),
        ("bare handler that verifies", &bare_turns),
        None,
    ));
    report.note(
        "The bare handlers make the same two signature checks for the same requests under the same load. One of them \
         also writes as many bytes to a file as the service did in its first turn, with one fdatasync for all waiting \
         requests, before it answers. Credentials have eight claims, issue times spread at 5,000 per second, and \
         holder binding; the transactions have no webhook.",
    );
    Ok(report)
}

/// Starts the bare server that verifies the signatures of `checks`.
fn start_bare(directory: &Path, checks: &Checks, arguments: &[&str]) -> Result<Server, Failure> {
    let path = directory.join("checks.json");
    std::fs::write(&path, checks.to_json())?;
    Server::start(&[&["verify", &path.display().to_string()], arguments].concat())
}

/// The forged part of a credential.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Forgery {
    /// The issuer's signature.
    Issuer,
    /// A claim, replaced after the holder made the proof.
    Disclosure,
    /// The proof, made with another key than the holder's.
    Holder,
    /// The proof, made for another transaction.
    Transaction,
}

impl Forgery {
    pub(crate) const ALL: [Self; 4] = [Self::Issuer, Self::Disclosure, Self::Holder, Self::Transaction];
}

/// The identity app of one resident: it makes credentials and callbacks.
pub(crate) struct IdentityApp {
    issuer: SandboxIssuer,
    holder: HolderKey,
    resident: &'static Resident,
    claims: ClaimSet,
}

impl IdentityApp {
    pub(crate) fn new(service: &Service) -> Result<Self, Failure> {
        let issuer = SandboxIssuer::from_pkcs8(
            "https://issuer.sandbox.invalid",
            &std::fs::read(service.key_file("issuer.p8"))?,
        )?;
        let resident = Resident::find(RESIDENT).ok_or("no such resident")?;
        Ok(Self { issuer, holder: HolderKey::generate()?, resident, claims: ClaimSet::parse(&requests::CLAIMS)? })
    }

    /// Opens transactions and prepares a callback with a new credential for each.
    fn open_and_prepare(&self, service: &Service, scale: Scale) -> Result<Requests, Failure> {
        let inits = vec![requests::init_without_webhook(&service.server)?; scale.callbacks];
        let (_, opened) = load::each_once(&service.server, Arc::new(inits), scale, BodyMode::Keep)?;
        self.callbacks_for(&opened).map(Arc::new)
    }

    /// Builds a callback with a new credential for each opened transaction, given as the body of an init's answer or as
    /// an intent. [`ISSUED_PER_SECOND`] credentials share an issue time, up to now, as those of real people would.
    pub(crate) fn callbacks_for(&self, opened: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, Failure> {
        let chunk_len = opened.len().div_ceil(load::cores()).max(1);
        let now = SystemClock.now();
        let prepared = std::thread::scope(|scope| {
            let prepare = |bodies: &[Vec<u8>], offset: usize| {
                let ages =
                    (offset..).map(|index| Duration::from_secs(((opened.len() - index) / ISSUED_PER_SECOND) as u64));
                bodies
                    .iter()
                    .zip(ages)
                    .map(|(body, age)| self.callback(body, now - age))
                    .collect::<Result<Vec<_>, Failure>>()
            };
            let chunks = opened.chunks(chunk_len).enumerate();
            let threads: Vec<_> =
                chunks.map(|(index, bodies)| scope.spawn(move || prepare(bodies, index * chunk_len))).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().map_err(|_| "a thread panicked")?)
                .collect::<Result<Vec<_>, Failure>>()
        })?;
        Ok(prepared.concat())
    }

    /// Builds a callback with a new credential for an opened transaction.
    fn callback(&self, opened: &[u8], issued_at: Timestamp) -> Result<Vec<u8>, Failure> {
        let opened: Value = serde_json::from_slice(opened).or_else(|_| std::str::from_utf8(opened).map(Value::from))?;
        let intent = decode_unverified(opened["intentJwt"].as_str().or(opened.as_str()).unwrap_or_default())?;
        let now = SystemClock.now();
        let credential = self.issuer.issue(self.resident, self.claims, &self.holder, issued_at)?;
        requests::callback(&intent.cb, &intent.txn, &self.holder.bind(&credential, &intent.txn, &intent.aud, now)?)
    }

    /// Builds a callback that the service must refuse.
    pub(crate) fn forged_callback(&self, opened: &[u8], forgery: Forgery) -> Result<Vec<u8>, Failure> {
        let opened: Value = serde_json::from_slice(opened)?;
        let intent = decode_unverified(opened["intentJwt"].as_str().unwrap_or_default())?;
        let now = SystemClock.now();
        let credential = self.issuer.issue(self.resident, self.claims, &self.holder, now)?;
        let bind = |holder: &HolderKey, credential: &str, nonce: &str| holder.bind(credential, nonce, &intent.aud, now);
        let presentation = match forgery {
            Forgery::Issuer => {
                let (signed, disclosures) = credential.split_once('~').ok_or("no disclosures")?;
                let (text, signature) = signed.rsplit_once('.').ok_or("no signature")?;
                // A different number in the signature.
                let reversed: String = signature.chars().rev().collect();
                bind(&self.holder, &format!("{text}.{reversed}~{disclosures}"), &intent.txn)?
            }
            Forgery::Disclosure => {
                let (first, last) = credential.trim_end_matches('~').rsplit_once('~').ok_or("no disclosures")?;
                let forged = URL_SAFE_NO_PAD.encode(json!(["c2FsdA", "residentName", "Somebody Else"]).to_string());
                let genuine = bind(&self.holder, &format!("{first}~{last}~"), &intent.txn)?;
                genuine.replacen(last, &forged, 1)
            }
            Forgery::Holder => bind(&HolderKey::generate()?, &credential, &intent.txn)?,
            Forgery::Transaction => bind(&self.holder, &credential, "00000000-0000-4000-8000-000000000000")?,
        };
        requests::callback(&intent.cb, &intent.txn, &presentation)
    }

    /// Returns the credential of the first callback.
    fn credential_in(&self, callbacks: &Requests) -> Result<String, Failure> {
        let text = callbacks.first().map(|bytes| String::from_utf8_lossy(bytes)).ok_or("no callback")?;
        let inner = text.split_once("<Credential>").and_then(|(_, rest)| rest.split_once("</Credential>"));
        inner.map(|(credential, _)| credential.to_owned()).ok_or_else(|| "no credential".into())
    }
}
