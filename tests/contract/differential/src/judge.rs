//! Compares the verdicts of three verifiers with each other and with the facts.

use sakshi_authority::sdjwt::{Expectation, Jwks, KeyBinding, TrustedIssuer, VerifiedCredential, Verifier};
use sakshi_domain::claims::{Claim, ClaimSet};
use sakshi_domain::time::Timestamp;
use serde_json::{Map, Value, json};

use crate::changes::Case;
use crate::facts::{Difference, Fact, Library};
use crate::issuer::{AUDIENCE, ISSUER, KID, Keys, NOW, sign, txn};
use crate::libraries::Verdict;
use crate::reading;

/// The verifier of this service, for each setting of key binding.
pub(crate) struct ServiceVerifiers {
    verifiers: [(KeyBinding, Verifier); 3],
}

/// The comparison for one credential.
pub(crate) struct Comparison {
    pub(crate) seed: u64,
    pub(crate) changes: Vec<String>,
    pub(crate) facts: Vec<Fact>,
    /// True if this service accepted.
    pub(crate) is_accepted: bool,
    /// True for each library that accepted.
    pub(crate) accepted_by: [bool; 2],
    /// Differences and the facts that explain them.
    pub(crate) explained: Vec<(Library, Difference, Fact)>,
    /// Unexplained differences.
    pub(crate) faults: Vec<String>,
}

impl ServiceVerifiers {
    pub(crate) fn new(keys: &Keys) -> Self {
        let jwks = Jwks::parse(keys.jwks().to_string().as_bytes()).expect("a key");
        let verifier = |policy| {
            (policy, Verifier::new(vec![TrustedIssuer { issuer: ISSUER.to_owned(), jwks: jwks.clone() }], policy))
        };
        Self { verifiers: [KeyBinding::Off, KeyBinding::WhenPresent, KeyBinding::Required].map(verifier) }
    }

    /// Verifies a credential; returns the code of the refusal otherwise.
    pub(crate) fn verify(&self, credential: &str, policy: KeyBinding) -> Result<VerifiedCredential, &'static str> {
        let requested: ClaimSet = Claim::ALL.into_iter().collect();
        let now = Timestamp::from_millis(NOW * 1_000);
        let expected = Expectation { nonce: txn(), audience: AUDIENCE, now, requested };
        let (_, verifier) =
            self.verifiers.iter().find(|(setting, _)| *setting == policy).expect("each setting has a verifier");
        verifier.verify(credential, &expected).map_err(|refusal| refusal.code())
    }

    /// Verifies the payload that a library returned, signed again as a credential without disclosures.
    fn verify_payload(&self, mut payload: Map<String, Value>, keys: &Keys) -> Result<VerifiedCredential, &'static str> {
        payload.remove("_sd_alg");
        let header = json!({"alg": "ES256", "typ": "vc+sd-jwt", "kid": KID});
        let jws = sign(&keys.issuer, header.to_string().as_bytes(), Value::Object(payload).to_string().as_bytes());
        self.verify(&format!("{jws}~"), KeyBinding::Off)
    }
}

/// Returns true if libraries must verify a KB-JWT.
pub(crate) fn must_verify_binding(case: &Case) -> bool {
    let is_present = case.credential.rsplit_once('~').is_some_and(|(_, binding)| !binding.is_empty());
    match case.policy {
        KeyBinding::Off => false,
        KeyBinding::WhenPresent => is_present,
        KeyBinding::Required => true,
    }
}

/// Compares the verdicts of the libraries about a credential with that of this service and with the facts.
pub(crate) fn judge(case: Case, verdicts: [Verdict; 2], ours: &ServiceVerifiers, keys: &Keys) -> Comparison {
    let facts = reading::find_facts(&case.credential, case.policy, keys);
    let broken_rules: Vec<Fact> = facts.iter().copied().filter(|fact| fact.explains().is_refused()).collect();
    let verified = ours.verify(&case.credential, case.policy);
    let (mut explained, mut faults) = (Vec::new(), Vec::new());
    match &verified {
        Ok(_) if !broken_rules.is_empty() => faults.push(format!("sakshi accepts, although {broken_rules:?}")),
        Err(code) if broken_rules.is_empty() => faults.push(format!("sakshi refuses ({code}), and no rule is broken")),
        _ => {}
    }
    let accepted_by = [0, 1].map(|index| matches!(verdicts[index], Verdict::Accepted(_)));
    for (library, verdict) in [Library::Python, Library::Node].into_iter().zip(verdicts) {
        let (difference, detail) = match (&verified, verdict) {
            (Err(_), Verdict::Refused(_)) => continue,
            (Err(code), Verdict::Accepted(_)) => (Difference::OnlyTheyAccept, (*code).to_owned()),
            (Ok(_), Verdict::Refused(reason)) => (Difference::OnlyWeAccept, reason),
            (Ok(verified), Verdict::Accepted(payload)) => match claims_difference(verified, payload, ours, keys) {
                None => continue,
                Some(detail) => (Difference::Claims, detail),
            },
        };
        match Fact::first_explaining(&facts, library, difference) {
            Some(fact) => explained.push((library, difference, fact)),
            None => faults.push(format!("{library:?}, {difference:?}: {detail}")),
        }
    }
    Comparison {
        seed: case.seed,
        changes: case.changes,
        is_accepted: verified.is_ok(),
        facts,
        accepted_by,
        explained,
        faults,
    }
}

/// Returns the difference between the claims of this service and the claims in a library's payload.
fn claims_difference(
    verified: &VerifiedCredential,
    payload: Option<Value>,
    ours: &ServiceVerifiers,
    keys: &Keys,
) -> Option<String> {
    let Some(Value::Object(payload)) = payload else { return Some("its payload is no JSON object".to_owned()) };
    let theirs = match ours.verify_payload(payload, keys) {
        Ok(theirs) => theirs,
        Err(code) => return Some(format!("its payload is refused: {code}")),
    };
    if (theirs.missing, theirs.malformed) != (verified.missing, verified.malformed) {
        return Some("other claims are missing or malformed".to_owned());
    }
    let (ours, theirs) = (verified.claims.as_map(), theirs.claims.as_map());
    let differs = |name: &String| !is_same(&ours[name], theirs.get(name).unwrap_or(&Value::Null));
    match ours.keys().find(|name| differs(name)) {
        Some(name) => {
            Some(format!("{name} is {} here and {} there", ours[name], theirs.get(name).unwrap_or(&Value::Null)))
        }
        None if ours.len() != theirs.len() => Some("other claims".to_owned()),
        None => None,
    }
}

/// Returns true if two values are equal, with numbers compared as numbers.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) if one.is_f64() || other.is_f64() => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, value)| other.get(name).is_some_and(|other| is_same(value, other)))
        }
        _ => one == other,
    }
}
