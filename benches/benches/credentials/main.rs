//! The work on a credential and on an intent: the whole verification, refusals before and after a signature check, the
//! claim bitmap, and the QR value.

mod issued;

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput};
use sakshi_authority::callback_address::CallbackAddresses;
use sakshi_authority::claims::{parse_scope, scope_bitmap};
use sakshi_authority::intent::{IntentKey, IntentSettings, IntentSigner};
use sakshi_authority::qr::{decode_qr_payload, qr_payload};
use sakshi_authority::sdjwt::CredentialRefusal;
use sakshi_domain::claims::{Claim, ClaimSet};
use sakshi_domain::clock::{Clock as _, SystemClock};
use sakshi_domain::ids::{AppId, ClientId, TxnId};
use sakshi_domain::limits::{CREDENTIAL_BYTES_MAX, DISCLOSURES_MAX};
use sakshi_kit::records;

use self::issued::{EIGHT_CLAIMS, Fixture};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const QR_HOST: &str = "https://qr.example";
/// Characters of the bitmap of claims.
const SCOPE_LENGTH: usize = 64;

fn main() -> Result<(), Failure> {
    let mut criterion = Criterion::default().configure_from_args();
    bench_verification(&mut criterion)?;
    bench_refusals(&mut criterion)?;
    bench_bitmap(&mut criterion);
    bench_qr(&mut criterion)?;
    criterion.final_summary();
    Ok(())
}

/// Benchmarks the whole verification of credentials.
fn bench_verification(criterion: &mut Criterion) -> Result<(), Failure> {
    let fixture = Fixture::new()?;
    let with_photo = [&EIGHT_CLAIMS[..], &[Claim::Photo]].concat();
    let mut group = criterion.benchmark_group("credential");
    let cases: [(&str, &[Claim], bool); 4] = [
        ("1 claim, bound", &EIGHT_CLAIMS[..1], true),
        ("8 claims, bound", &EIGHT_CLAIMS, true),
        ("8 claims and a photo of 30 KiB, bound", &with_photo, true),
        ("8 claims, not bound", &EIGHT_CLAIMS, false),
    ];
    for (name, claims, is_bound) in cases {
        let credential = fixture.issue(claims)?;
        let credential = if is_bound { fixture.bind(&credential)? } else { credential };
        let expected = fixture.expectation(claims);
        let verified = fixture.verifier.verify(&credential, &expected)?;
        if !verified.missing.is_empty() || !verified.malformed.is_empty() || verified.holder_bound != is_bound {
            return Err(format!("{name}: not what was issued").into());
        }
        group.throughput(Throughput::Bytes(credential.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| fixture.verifier.verify(black_box(&credential), &expected))
        });
    }
    group.finish();
    Ok(())
}

/// Benchmarks the refusal of bad credentials, before and after a signature check.
fn bench_refusals(criterion: &mut Criterion) -> Result<(), Failure> {
    let fixture = Fixture::new()?;
    let genuine = fixture.bind(&fixture.issue(&EIGHT_CLAIMS)?)?;
    let expected = fixture.expectation(&EIGHT_CLAIMS);
    let (token, disclosures) = genuine.split_once('~').ok_or("no disclosures")?;
    let other_credential = fixture.issue(&EIGHT_CLAIMS)?;
    let foreign_signature =
        other_credential.split('~').next().and_then(|token| token.rsplit('.').next()).ok_or("no signature")?;
    let signed = token.rsplit_once('.').map(|(signed, _)| signed).ok_or("no signature")?;
    let cases = [
        ("no tilde", "x".repeat(2_000), CredentialRefusal::NotAnSdJwt),
        ("over 4 MiB", "~".repeat(CREDENTIAL_BYTES_MAX + 1), CredentialRefusal::TooLarge),
        (
            "a disclosure too many",
            format!("{token}~{}", "x~".repeat(DISCLOSURES_MAX + 1)),
            CredentialRefusal::TooManyDisclosures,
        ),
        (
            "unknown issuer",
            fixture.issue_as("https://other.example", "issuer-1", &EIGHT_CLAIMS)?,
            CredentialRefusal::IssuerNotTrusted,
        ),
        (
            "unknown key",
            fixture.issue_as("https://issuer.example", "issuer-2", &EIGHT_CLAIMS)?,
            CredentialRefusal::KeyIdUnknown,
        ),
        (
            "another's signature",
            format!("{signed}.{foreign_signature}~{disclosures}"),
            CredentialRefusal::SignatureInvalid,
        ),
    ];
    let mut group = criterion.benchmark_group("refusal");
    for (name, credential, refusal) in cases {
        let error = fixture.verifier.verify(&credential, &expected).err();
        if error != Some(refusal) {
            return Err(format!("{name}: {error:?}").into());
        }
        group.bench_function(name, |bencher| {
            bencher.iter(|| fixture.verifier.verify(black_box(&credential), &expected))
        });
    }
    group.finish();
    Ok(())
}

/// Benchmarks the bitmap of claims in an intent.
fn bench_bitmap(criterion: &mut Criterion) {
    let claims: ClaimSet = EIGHT_CLAIMS.into_iter().collect();
    let scope = scope_bitmap(claims, SCOPE_LENGTH);
    let mut group = criterion.benchmark_group("bitmap");
    group.bench_function("write 8 claims", |bencher| bencher.iter(|| scope_bitmap(black_box(claims), SCOPE_LENGTH)));
    group.bench_function("read 8 claims", |bencher| bencher.iter(|| parse_scope(black_box(&scope))));
    group.finish();
}

/// Benchmarks the QR value of an intent.
fn bench_qr(criterion: &mut Criterion) -> Result<(), Failure> {
    let mut group = criterion.benchmark_group("QR value");
    let jwt = sign_intent(IntentKey::generate_rs256()?.0)?;
    let value = qr_payload(QR_HOST, &jwt);
    if decode_qr_payload(&value)? != jwt {
        return Err("a QR value does not hold its intent".into());
    }
    group.throughput(Throughput::Bytes(jwt.len() as u64));
    group.bench_function("write RS256 intent", |bencher| bencher.iter(|| qr_payload(QR_HOST, black_box(&jwt))));
    group.bench_function("read RS256 intent", |bencher| bencher.iter(|| decode_qr_payload(black_box(&value))));
    group.finish();
    Ok(())
}

/// Signs the intent of a transaction with eight claims.
fn sign_intent(key: IntentKey) -> Result<String, Failure> {
    let settings = IntentSettings {
        kid: "intent-1".into(),
        typ: "credential-req+jwt".into(),
        issuer: "https://verify.example".into(),
        lifetime: Duration::from_secs(900),
        client_id: "verifier-client-0001".into(),
        registration: "REG-0000000001".into(),
        scope_length: SCOPE_LENGTH,
        ..IntentSettings::default()
    };
    let (client, now) = (ClientId::generate(), SystemClock.now());
    let id = TxnId::generate(client.partition(), 0);
    let mut pending = records::pending(id, client, AppId::generate(), now);
    pending.terms.claims = EIGHT_CLAIMS.into_iter().collect();
    let callback = CallbackAddresses::new("https://verify.example", &[[7_u8; 32]])?.for_txn(pending.id);
    Ok(tokio::runtime::Builder::new_current_thread()
        .build()?
        .block_on(IntentSigner::new(key, settings).sign(&pending, &callback, now))?
        .jwt)
}
