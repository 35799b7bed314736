//! `sakshi verify-evidence`: checks an evidence file offline. The file contains the keys for its seal and credential,
//! so a forged file contains the forger's keys. The output names the keys, and options list the trusted keys.

use std::path::{Path, PathBuf};

use clap::Args;
use sakshi_authority::evidence::{Evidence, EvidenceCheck, EvidenceFault, ProvenStatus, SealedEvidence, thumbprint};
use sakshi_domain::claims::Claim;
use serde_json::{Value, json};

use super::error::CliError;
use super::paint;
use super::style::Out;

/// Options of `verify-evidence`.
#[derive(Args, Clone, Debug)]
pub struct VerifyEvidence {
    /// File with the evidence that the API returned.
    file: PathBuf,
    /// The issuer's keys, a JWKS; it must contain the keys in the file.
    #[arg(long, value_name = "FILE")]
    issuer_keys: Option<PathBuf>,
    /// Keys of the service, a JWKS such as /.well-known/jwks.json; it must contain the key that sealed the file.
    #[arg(long, value_name = "FILE")]
    seal_keys: Option<PathBuf>,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

impl VerifyEvidence {
    /// Checks the file. Returns true if every check passes.
    ///
    /// # Errors
    /// A file cannot be read.
    pub(super) fn run(&self, out: &mut dyn Out) -> Result<bool, CliError> {
        let file = read_file(&self.file)?;
        let issuer_keys = self.issuer_keys.as_deref().map(read_jwks).transpose()?;
        let seal_keys = self.seal_keys.as_deref().map(read_jwks).transpose()?;
        let sealed = SealedEvidence::open(&file, seal_keys.as_deref());
        let checked =
            sealed.and_then(|sealed| sealed.evidence.check(issuer_keys.as_deref()).map(|checked| (sealed, checked)));
        let (answer, is_good) = match checked {
            Ok((sealed, checked)) => {
                (describe_valid(&sealed, checked, issuer_keys.is_some(), seal_keys.is_some()), true)
            }
            Err(fault) => (describe_invalid(fault), false),
        };
        if self.json {
            writeln!(out, "{answer:#}")?;
        } else {
            paint::pairs(&answer, out)?;
            if is_good && (issuer_keys.is_none() || seal_keys.is_none()) {
                writeln!(
                    out,
                    "\nThe file is consistent with the keys inside it. Pass the published keys, or compare the \
                        thumbprints: a forged file contains the forger's keys."
                )?;
            }
        }
        Ok(is_good)
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, CliError> {
    std::fs::read(path).map_err(|error| CliError::Local(format!("{}: {error}", path.display())))
}

/// Reads the keys of a JWKS.
fn read_jwks(path: &Path) -> Result<Vec<Value>, CliError> {
    let set: Option<Value> = serde_json::from_slice(&read_file(path)?).ok();
    let listed = set.and_then(|mut set| set.get_mut("keys").and_then(Value::as_array_mut).map(std::mem::take));
    listed.ok_or_else(|| CliError::Local(format!("{} is not a JWKS", path.display())))
}

/// Describes a file that passed every check. A key is trusted if the options list it.
fn describe_valid(
    SealedEvidence { evidence, kid, key }: &SealedEvidence,
    checked: EvidenceCheck,
    is_issuer_key_trusted: bool,
    is_seal_key_trusted: bool,
) -> Value {
    let Evidence { txn_id, client_id, app_id, requested, opened_at, verified_at, verification_passed, proof, .. } =
        evidence;
    let status = match checked.status {
        ProvenStatus::Valid => "valid",
        ProvenStatus::Absent => "the credential has none",
        ProvenStatus::Unproven => "not in the file",
    };
    let names = |claims: sakshi_domain::claims::ClaimSet| claims.iter().map(Claim::name).collect::<Vec<_>>();
    json!({
        "verified": true,
        "txn_id": txn_id,
        "client_id": client_id,
        "app_id": app_id,
        "opened_at": opened_at,
        "verified_at": verified_at,
        "verification_passed": verification_passed,
        "requested": names(*requested),
        "shared": names(checked.shared),
        "issuer": proof.issuer,
        "issuer_key": thumbprint(&proof.issuer_key),
        "issuer_key_trusted": is_issuer_key_trusted,
        "holder_bound": proof.holder_bound,
        "holder_binding_checked": checked.holder_bound,
        "status": status,
        "status_key": proof.status.as_ref().and_then(|status| thumbprint(&status.key)),
        "sealed_by": kid,
        "seal_key": thumbprint(key),
        "seal_key_trusted": is_seal_key_trusted,
    })
}

fn describe_invalid(fault: EvidenceFault) -> Value {
    json!({ "verified": false, "reason": fault.to_string() })
}
