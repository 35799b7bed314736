//! Writing the bodies of the seven webhooks: the smallest of each kind, and those with a file of a million bytes.

use std::hint::black_box;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use criterion::{Criterion, Throughput};
use sakshi_domain::clock::{Clock as _, SystemClock};
use sakshi_domain::ids::{AppId, ClientId, TxnId};
use sakshi_domain::tenancy::KeyCase;
use sakshi_domain::transaction::{AnswerDigest, Completed, Failure as Declined, Outcome, VerifiedClaims};
use sakshi_kit::records;
use sakshi_wire::doclocker::DocLockerOutcome;
use sakshi_wire::esign::EsignOutcome;
use sakshi_wire::estamp::EStampOutcome;
use sakshi_wire::ovse::OvsePayload;
use sakshi_wire::read_report;
use sakshi_wire::wealth::{WealthConsentChange, WealthDataNotice, WealthHistoricalNotice};
use serde::Serialize;
use serde_json::{Map, Value};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Bytes of a large file before Base64.
const FILE_BYTES: usize = 1_000_000;

/// An example that the wire's tests compare with the specification.
macro_rules! golden {
    ($name:literal) => {
        include_str!(concat!("../../src/wire/tests/golden/", $name, ".json"))
    };
}

fn main() -> Result<(), Failure> {
    let mut criterion = Criterion::default().configure_from_args();
    let file = STANDARD.encode(vec![0x5A; FILE_BYTES]);
    bench_verification(&mut criterion, &file)?;

    let with_file = |text: &str, pointer: &str| -> Result<Vec<u8>, Failure> {
        let mut body: Value = serde_json::from_str(text)?;
        *body.pointer_mut(pointer).ok_or("no place for a file")? = Value::from(file.as_str());
        Ok(serde_json::to_vec(&body)?)
    };
    let small = read_report::<EsignOutcome>(golden!("esign_rejected").as_bytes())?;
    bench_encoding(&mut criterion, "e-sign", &small)?;
    bench_encoding(
        &mut criterion,
        "e-sign, 1 MB file",
        &read_report::<EsignOutcome>(&with_file(golden!("esign_completed"), "/content")?)?,
    )?;
    let small = read_report::<DocLockerOutcome>(golden!("doclocker_failed").as_bytes())?;
    bench_encoding(&mut criterion, "document locker", &small)?;
    let large = read_report::<DocLockerOutcome>(&with_file(golden!("doclocker_fetched"), "/data/docs/0/dataPdf")?)?;
    bench_encoding(&mut criterion, "document locker, 1 MB file", &large)?;
    let small = read_report::<EStampOutcome>(golden!("estamp_rejected").as_bytes())?;
    bench_encoding(&mut criterion, "e-stamp", &small)?;
    let large =
        read_report::<EStampOutcome>(&with_file(golden!("estamp_completed"), "/data/fileList/0/base64FileData")?)?;
    bench_encoding(&mut criterion, "e-stamp, 1 MB file", &large)?;
    bench_encoding(
        &mut criterion,
        "wealth consent",
        &read_report::<WealthConsentChange>(golden!("wealth_consent_rejected").as_bytes())?,
    )?;
    bench_encoding(
        &mut criterion,
        "wealth data",
        &read_report::<WealthDataNotice>(golden!("wealth_data_failed").as_bytes())?,
    )?;
    bench_encoding(
        &mut criterion,
        "wealth history",
        &read_report::<WealthHistoricalNotice>(golden!("wealth_historical").as_bytes())?,
    )?;
    criterion.final_summary();
    Ok(())
}

/// Measures the writing of a payload as JSON.
fn bench_encoding(criterion: &mut Criterion, name: &str, payload: &impl Serialize) -> Result<(), Failure> {
    let length = serde_json::to_vec(payload)?.len();
    let mut group = criterion.benchmark_group("payload");
    group.throughput(Throughput::Bytes(length as u64));
    group.bench_function(name, |bencher| bencher.iter(|| serde_json::to_vec(black_box(payload))));
    group.finish();
    Ok(())
}

/// Measures the webhook of a verification: not verified, with eight claims, and with a photo of a million bytes.
fn bench_verification(criterion: &mut Criterion, file: &str) -> Result<(), Failure> {
    let declined = Outcome::NotVerified(Declined::new("User Reject", Some("301")));
    bench_encoding(
        criterion,
        "verification, not verified",
        &OvsePayload::new(&completed(declined), KeyCase::SnakeCase),
    )?;
    let names = ["name", "dob", "gender", "address", "pincode", "state", "district", "care_of"];
    let mut claims: Map<String, Value> =
        names.iter().map(|name| ((*name).to_owned(), Value::from("Some words of an ordinary length"))).collect();
    let verified =
        |claims: &Map<String, Value>| completed(Outcome::Verified(Arc::new(VerifiedClaims::new(claims.clone()))));
    bench_encoding(criterion, "verification, 8 claims", &OvsePayload::new(&verified(&claims), KeyCase::SnakeCase))?;
    claims.insert("photo".into(), Value::from(file));
    bench_encoding(
        criterion,
        "verification, 8 claims and a photo of 1 MB",
        &OvsePayload::new(&verified(&claims), KeyCase::SnakeCase),
    )
}

/// Returns a completed transaction with this outcome.
fn completed(outcome: Outcome) -> Completed {
    let (client, now) = (ClientId::generate(), SystemClock.now());
    let id = TxnId::generate(client.partition(), 0);
    let opened = records::pending(id, client, AppId::generate(), now);
    Completed { opened, verified_at: now, outcome, answer: AnswerDigest([7; 32]) }
}
