//! Reads a credential as tolerantly as possible, without the verifier, and determines its facts.

use std::collections::{BTreeSet, HashMap, HashSet};

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, KeyPair as _, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sakshi_authority::sdjwt::KeyBinding;
use sakshi_wire::json::{Json, ValuesLeft, read};

use crate::facts::Fact;
use crate::issuer::{ISSUER, KID, Keys, NOW, encode};

// Limits of the profile, with which a verifier bounds its work for a stranger.
const CREDENTIAL_BYTES_MAX: usize = 4 << 20;
const DISCLOSURES_MAX: usize = 256;
const HEADER_CHARS_MAX: usize = 8_192;
const SIGNATURE_CHARS_MAX: usize = 1_024;
const BINDING_CHARS_MAX: usize = 16_384;
const DEPTH_MAX: usize = 16;
const VALUES_MAX: usize = 8_192;
/// JSON values in a header, and in the payload of a key binding.
const SMALL_VALUES_MAX: usize = 64;
/// Seconds by which `nbf` and `iat` may be ahead.
const LEEWAY_S: f64 = 60.0;
/// Seconds by which the times of a key binding may differ.
const BINDING_LEEWAY_S: f64 = 300.0;

/// The facts of a credential found so far.
pub(crate) struct FactFinder {
    facts: BTreeSet<Fact>,
    /// JSON values in the payload and the disclosures read so far.
    value_count: usize,
}

type Members = [(String, Json)];

/// The content of a disclosure: a name, absent for an array element, and a value.
type Disclosed = (Option<String>, Json);

/// Finds the facts of a credential, in the order of their declaration.
pub(crate) fn find_facts(credential: &str, policy: KeyBinding, keys: &Keys) -> Vec<Fact> {
    let mut finder = FactFinder { facts: BTreeSet::new(), value_count: 0 };
    finder.check_credential(credential, policy, keys);
    finder.facts.into_iter().collect()
}

/// Returns the value of a member.
fn member<'a>(members: &'a Members, name: &str) -> Option<&'a Json> {
    // The last of equal names counts, as for most readers; a repeated name is a separate fact.
    members.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value)
}

/// Returns the value of a member if it is a text.
fn text<'a>(members: &'a Members, name: &str) -> Option<&'a str> {
    match member(members, name) {
        Some(Json::Text(text)) => Some(text),
        _ => None,
    }
}

/// Returns the number of nested arrays and objects.
fn depth(json: &Json) -> usize {
    match json {
        Json::List(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Json::Object(members) => 1 + members.iter().map(|(_, value)| depth(value)).max().unwrap_or_default(),
        _ => 0,
    }
}

fn count_values(json: &Json) -> usize {
    match json {
        Json::List(items) => 1 + items.iter().map(count_values).sum::<usize>(),
        Json::Object(members) => 1 + members.iter().map(|(_, value)| count_values(value)).sum::<usize>(),
        _ => 1,
    }
}

fn repeats_a_name(json: &Json) -> bool {
    match json {
        Json::List(items) => items.iter().any(repeats_a_name),
        Json::Object(members) => {
            let names: HashSet<&String> = members.iter().map(|(name, _)| name).collect();
            names.len() < members.len() || members.iter().any(|(_, value)| repeats_a_name(value))
        }
        _ => false,
    }
}

/// The parts of a JWS.
struct Jws<'a> {
    header: Vec<(String, Json)>,
    /// The payload as base64url.
    payload: &'a str,
    /// The text that is signed: header and payload as base64url.
    signed: &'a str,
    signature: Vec<u8>,
}

impl FactFinder {
    fn record(&mut self, fact: Fact) {
        self.facts.insert(fact);
    }

    fn record_if(&mut self, condition: bool, fact: Fact) {
        if condition {
            self.record(fact);
        }
    }

    /// Decodes a segment of base64url; a fact records a failure.
    fn decode_segment(&mut self, segment: &str) -> Option<Vec<u8>> {
        let bytes = URL_SAFE_NO_PAD.decode(segment).ok();
        self.record_if(bytes.is_none(), Fact::NotBase64url);
        bytes
    }

    /// Reads a JSON text; a fact records the reason for a failure.
    fn parse_json(&mut self, bytes: &[u8]) -> Option<Json> {
        if let Ok(json) = read::<Json>(bytes, usize::MAX, &ValuesLeft::new(usize::MAX)) {
            self.record_if(repeats_a_name(&json), Fact::RepeatedName);
            return Some(json);
        }
        let text = String::from_utf8_lossy(bytes);
        let has = |word: &str| text.contains(word);
        let fact = if std::str::from_utf8(bytes).is_err() || bytes.starts_with(b"\xef\xbb\xbf") {
            Fact::NotUtf8
        } else if has("NaN") || has("Infinity") {
            Fact::NotANumber
        } else if has("1e400") || has("1e999") {
            Fact::NumberTooLarge
        } else if has_a_lone_surrogate(&text) {
            Fact::LoneSurrogate
        } else {
            Fact::NotJson
        };
        self.record(fact);
        None
    }

    /// Reads the parts of a JWS; facts record what is wrong.
    fn parse_jws<'a>(&mut self, jws: &'a str) -> Option<Jws<'a>> {
        let segments: Vec<&str> = jws.split('.').collect();
        let &[header, payload, signature] = &*segments else {
            self.record(Fact::NotAJws);
            return None;
        };
        self.record_if(segments.iter().any(|segment| segment.is_empty()), Fact::NotAJws);
        self.record_if(header.len() > HEADER_CHARS_MAX || signature.len() > SIGNATURE_CHARS_MAX, Fact::TooLarge);
        let signed = &jws[..header.len() + 1 + payload.len()];
        let (header, signature) = (self.decode_segment(header)?, self.decode_segment(signature)?);
        let header = self.parse_json(&header)?;
        self.record_if(count_values(&header) > SMALL_VALUES_MAX, Fact::TooManyValues);
        self.record_if(depth(&header) > DEPTH_MAX, Fact::TooDeep);
        let Json::Object(header) = header else {
            self.record(Fact::NotAnObject);
            return None;
        };
        Some(Jws { header, payload, signed, signature })
    }

    fn check_credential(&mut self, credential: &str, policy: KeyBinding, keys: &Keys) {
        self.record_if(credential.len() > CREDENTIAL_BYTES_MAX, Fact::TooLarge);
        let Some((presented, binding)) = credential.rsplit_once('~') else { return self.record(Fact::NotAnSdJwt) };
        self.record_if(policy == KeyBinding::Off && !binding.is_empty(), Fact::BindingUnexpected);
        self.record_if(policy == KeyBinding::Required && binding.is_empty(), Fact::BindingMissing);
        let mut parts = presented.split('~');
        let jws = parts.next().unwrap_or_default();
        let disclosures: Vec<&str> = parts.collect();
        self.record_if(jws.is_empty() || disclosures.iter().any(|text| text.is_empty()), Fact::NotAnSdJwt);
        self.record_if(disclosures.len() > DISCLOSURES_MAX, Fact::TooLarge);
        let Some(jws) = self.parse_jws(jws) else { return };
        self.check_issuer_header(&jws.header);
        self.record_if(!is_signed(&jws, keys.issuer.public_key().as_ref()), Fact::Signature);
        let Some(payload) = self.decode_segment(jws.payload).and_then(|bytes| self.parse_json(&bytes)) else { return };
        self.record_if(depth(&payload) > DEPTH_MAX, Fact::TooDeep);
        self.value_count += count_values(&payload);
        let Json::Object(payload) = payload else { return self.record(Fact::NotAnObject) };
        self.record_if(text(&payload, "iss") != Some(ISSUER), Fact::Issuer);
        let payload = self.insert_disclosures(payload, &disclosures);
        self.record_if(text(&payload, "iss") != Some(ISSUER), Fact::Issuer);
        self.record_if(self.value_count > VALUES_MAX, Fact::TooManyValues);
        self.check_times(&payload);
        self.check_spellings(&payload);
        if policy != KeyBinding::Off && !binding.is_empty() {
            self.check_binding(binding, &payload, &credential[..=presented.len()]);
        }
    }

    fn check_issuer_header(&mut self, header: &Members) {
        self.record_if(text(header, "alg") != Some("ES256"), Fact::Algorithm);
        self.record_if(member(header, "crit").is_some(), Fact::Critical);
        self.record_if(!matches!(text(header, "typ"), Some("vc+sd-jwt" | "dc+sd-jwt")), Fact::Type);
        self.record_if(
            ["jwk", "x5c", "jku", "x5u"].iter().any(|name| member(header, name).is_some()),
            Fact::KeyInToken,
        );
        self.record_if(text(header, "kid") != Some(KID), Fact::KeyId);
        // `true` is the default.
        self.record_if(!matches!(member(header, "b64"), None | Some(Json::Flag(true))), Fact::PayloadEncoding);
    }

    /// Returns a payload with its disclosures in the places of their digests.
    fn insert_disclosures(&mut self, mut payload: Vec<(String, Json)>, disclosures: &[&str]) -> Vec<(String, Json)> {
        match member(&payload, "_sd_alg") {
            None => {}
            Some(Json::Text(name)) if name == "sha-256" || name == "SHA-256" => {}
            Some(_) => self.record(Fact::HashAlgorithm),
        }
        payload.retain(|(name, _)| name != "_sd_alg");
        let mut by_digest = HashMap::new();
        for text in disclosures {
            let disclosure = self.parse_disclosure(text);
            let is_repeated = by_digest.insert(encode(digest(&SHA256, text.as_bytes())), (disclosure, false)).is_some();
            self.record_if(is_repeated, Fact::DisclosureTwice);
        }
        let mut index = DigestIndex { by_digest, read_digests: HashSet::new() };
        let payload = self.process_object(payload, &mut index, 1);
        self.record_if(index.by_digest.values().any(|(_, is_used)| !is_used), Fact::Unreferenced);
        payload
    }

    /// Returns the name and the value of a disclosure.
    fn parse_disclosure(&mut self, text: &str) -> Option<Disclosed> {
        let bytes = self.decode_segment(text)?;
        let json = self.parse_json(&bytes)?;
        // The array of the disclosure is one level more.
        self.record_if(depth(&json) > DEPTH_MAX + 1, Fact::TooDeep);
        self.value_count += count_values(&json);
        let Json::List(mut parts) = json else {
            self.record(Fact::DisclosureMalformed);
            return None;
        };
        if !matches!(parts.len(), 2 | 3) {
            self.record(Fact::DisclosureMalformed);
            return None;
        }
        self.record_if(!matches!(parts[0], Json::Text(_)), Fact::Salt);
        let value = parts.pop()?;
        let name = match parts.get(1) {
            None => None,
            Some(Json::Text(name)) => Some(name.clone()),
            Some(_) => {
                self.record(Fact::NameNotAText);
                return None;
            }
        };
        self.record_if(matches!(name.as_deref(), Some("_sd" | "...")), Fact::NameReserved);
        self.record_if(name.as_deref() == Some("_sd_alg"), Fact::HashAlgorithmMisplaced);
        Some((name, value))
    }

    /// Returns a value with its disclosures in the places of their digests.
    fn process_value(&mut self, value: Json, index: &mut DigestIndex, depth: usize) -> Json {
        match value {
            Json::Object(members) => Json::Object(self.process_object(members, index, depth + 1)),
            Json::List(items) => Json::List(self.process_list(items, index, depth + 1)),
            Json::Number(number) => {
                let integer = number.as_i64().map(i64::unsigned_abs).or_else(|| number.as_u64());
                let is_large = integer.is_some_and(|integer| integer > 1 << 53);
                self.record_if(is_large, Fact::LargeInteger);
                Json::Number(number)
            }
            leaf => leaf,
        }
    }

    fn process_object(
        &mut self,
        members: Vec<(String, Json)>,
        index: &mut DigestIndex,
        depth: usize,
    ) -> Vec<(String, Json)> {
        self.record_if(depth > DEPTH_MAX, Fact::TooDeep);
        let (mut result, mut digests) = (Vec::new(), Vec::new());
        for (name, value) in members {
            match (name.as_str(), value) {
                ("_sd_alg", _) => self.record(Fact::HashAlgorithmMisplaced),
                ("...", _) => self.record(Fact::ArrayDigestMalformed),
                ("_sd", Json::List(items)) => digests = items,
                ("_sd", _) => self.record(Fact::DigestsMalformed),
                (_, value) => result.push((name, self.process_value(value, index, depth))),
            }
        }
        self.record_if(result.iter().any(|(name, _)| name == "__proto__"), Fact::PrototypeName);
        for item in digests {
            let Json::Text(item) = item else {
                self.record(Fact::DigestsMalformed);
                continue;
            };
            match self.use_disclosure(&item, index) {
                None => {}
                Some((None, _)) => self.record(Fact::DisclosureMisplaced),
                Some((Some(name), value)) => {
                    self.record_if(result.iter().any(|(known, _)| *known == name), Fact::NameTaken);
                    self.record_if(name.is_empty(), Fact::EmptyName);
                    self.record_if(name == "__proto__", Fact::PrototypeName);
                    let value = self.process_value(value, index, depth);
                    result.push((name, value));
                }
            }
        }
        result
    }

    fn process_list(&mut self, items: Vec<Json>, index: &mut DigestIndex, depth: usize) -> Vec<Json> {
        self.record_if(depth > DEPTH_MAX, Fact::TooDeep);
        let mut result = Vec::new();
        for item in items {
            let item = match item {
                Json::Object(members) if member(&members, "...").is_some() => match &*members {
                    [(_, Json::Text(digest))] => {
                        // The empty text, and names that every JavaScript object has.
                        let built_in_names = ["", "constructor", "toString", "__proto__"];
                        self.record_if(built_in_names.contains(&digest.as_str()), Fact::OddArrayDigest);
                        match self.use_disclosure(digest, index) {
                            None => continue,
                            Some((None, value)) => value,
                            Some((Some(_), _)) => {
                                self.record(Fact::DisclosureMisplaced);
                                continue;
                            }
                        }
                    }
                    _ => {
                        self.record(Fact::ArrayDigestMalformed);
                        continue;
                    }
                },
                plain => plain,
            };
            result.push(self.process_value(item, index, depth));
        }
        result
    }

    /// Returns the disclosure of a digest, if it is presented, and marks it as used.
    fn use_disclosure(&mut self, digest: &str, index: &mut DigestIndex) -> Option<Disclosed> {
        if !index.read_digests.insert(digest.to_owned()) {
            self.record(Fact::DigestTwice);
            return None;
        }
        let (disclosure, is_used) = index.by_digest.get_mut(digest)?;
        *is_used = true;
        disclosure.clone()
    }

    fn check_times(&mut self, payload: &Members) {
        let time = |name: &str| match member(payload, name) {
            None => Ok(None),
            Some(Json::Number(number)) => Ok(number.as_f64()),
            Some(_) => Err(()),
        };
        let now = NOW as f64;
        self.record_if(["exp", "nbf", "iat"].iter().any(|name| time(name).is_err()), Fact::TimeNotANumber);
        self.record_if(time("exp") == Ok(None), Fact::ExpiryMissing);
        self.record_if(time("exp").is_ok_and(|at| at.is_some_and(|at| at <= now)), Fact::Expired);
        let ahead = |name: &str| time(name).is_ok_and(|at| at.is_some_and(|at| at > now + LEEWAY_S));
        self.record_if(ahead("nbf") || ahead("iat"), Fact::NotYetValid);
    }

    /// Checks for two names of a claim that differ only in the case of their first letter.
    fn check_spellings(&mut self, payload: &Members) {
        let mut names = HashSet::new();
        for (name, _) in payload {
            let mut letters = name.chars();
            let lower_case = letters
                .next()
                .map(|first| first.to_ascii_lowercase().to_string() + letters.as_str())
                .unwrap_or_default();
            let is_claim = sakshi_domain::claims::Claim::ALL
                .iter()
                .any(|claim| sakshi_authority::claims::credential_name(*claim) == lower_case);
            self.record_if(is_claim && !names.insert(lower_case), Fact::TwoSpellings);
        }
    }

    fn check_binding(&mut self, binding: &str, payload: &Members, presented: &str) {
        let mut binding_finder = Self { facts: BTreeSet::new(), value_count: 0 };
        let jws = binding_finder.parse_jws(binding);
        let claims = jws
            .as_ref()
            .and_then(|jws| binding_finder.decode_segment(jws.payload))
            .and_then(|bytes| binding_finder.parse_json(&bytes));
        let is_small =
            claims.as_ref().is_none_or(|claims| count_values(claims) <= SMALL_VALUES_MAX && depth(claims) <= DEPTH_MAX)
                && binding.len() <= BINDING_CHARS_MAX;
        self.record_if(!binding_finder.facts.is_empty() || !is_small, Fact::BindingMalformed);
        // All verifiers refuse unreadable JSON.
        self.record_if(binding_finder.facts.contains(&Fact::NotJson), Fact::NotJson);
        let (Some(jws), Some(Json::Object(claims))) = (jws, claims) else { return self.record(Fact::BindingMalformed) };
        self.record_if(text(&jws.header, "alg") != Some("ES256"), Fact::BindingAlgorithm);
        self.record_if(member(&jws.header, "crit").is_some(), Fact::BindingCritical);
        self.record_if(text(&jws.header, "typ") != Some("kb+jwt"), Fact::BindingType);
        match holder_key(payload) {
            None => self.record(Fact::HolderKey),
            Some(key) => self.record_if(!is_signed(&jws, &key), Fact::BindingSignature),
        }
        self.record_if(holder_key_has_another_use(payload), Fact::HolderKeyUse);
        self.record_if(text(&claims, "nonce") != Some(&*crate::issuer::txn().to_string()), Fact::BindingNonce);
        self.record_if(text(&claims, "aud") != Some(crate::issuer::AUDIENCE), Fact::BindingAudience);
        let is_near = |number: f64| (number - NOW as f64).abs() <= BINDING_LEEWAY_S;
        let is_current =
            matches!(member(&claims, "iat"), Some(Json::Number(number)) if number.as_f64().is_some_and(is_near));
        self.record_if(!is_current, Fact::BindingTime);
        let time = |name: &str| match member(&claims, name) {
            None => Ok(None),
            Some(Json::Number(number)) => Ok(number.as_f64()),
            Some(_) => Err(()),
        };
        let is_expired = time("exp").is_ok_and(|at| at.is_some_and(|at| at <= NOW as f64));
        let is_early = time("nbf").is_ok_and(|at| at.is_some_and(|at| at > NOW as f64 + BINDING_LEEWAY_S));
        self.record_if(is_expired || is_early || time("exp").is_err() || time("nbf").is_err(), Fact::BindingExpired);
        self.record_if(text(&claims, "sd_hash") != Some(&*crate::issuer::digest_of(presented)), Fact::BindingHash);
    }
}

/// The disclosures of a credential by digest, and the digests read so far.
struct DigestIndex {
    /// Each disclosure, unless it is malformed, and true if a digest has referred to it.
    by_digest: HashMap<String, (Option<Disclosed>, bool)>,
    read_digests: HashSet<String>,
}

/// Returns the uncompressed point of `cnf.jwk`.
fn holder_key(payload: &Members) -> Option<Vec<u8>> {
    let Some(Json::Object(cnf)) = member(payload, "cnf") else { return None };
    let Some(Json::Object(jwk)) = member(cnf, "jwk") else { return None };
    if (text(jwk, "kty"), text(jwk, "crv")) != (Some("EC"), Some("P-256")) {
        return None;
    }
    let coordinate = |name| URL_SAFE_NO_PAD.decode(text(jwk, name)?).ok().filter(|bytes| bytes.len() == 32);
    let point = [vec![4], coordinate("x")?, coordinate("y")?].concat();
    aws_lc_rs::signature::ParsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, &point).ok().map(|_| point)
}

/// Returns true if `cnf.jwk` names uses other than verifying signatures.
fn holder_key_has_another_use(payload: &Members) -> bool {
    let Some(Json::Object(cnf)) = member(payload, "cnf") else { return false };
    let Some(Json::Object(jwk)) = member(cnf, "jwk") else { return false };
    let verifies = |name: &Json| matches!(name, Json::Text(name) if name == "verify");
    let has_other_use = member(jwk, "use").is_some() && text(jwk, "use") != Some("sig");
    let cannot_verify = match member(jwk, "key_ops") {
        None => false,
        Some(Json::List(names)) => !names.iter().any(verifies),
        Some(_) => true,
    };
    has_other_use || cannot_verify
}

fn is_signed(jws: &Jws<'_>, key: &[u8]) -> bool {
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key).verify(jws.signed.as_bytes(), &jws.signature).is_ok()
}

/// Returns true if a surrogate escape lacks its other half.
fn has_a_lone_surrogate(text: &str) -> bool {
    let unit = |at: usize| {
        text.get(at..at + 6)
            .and_then(|escape| escape.strip_prefix("\\u"))
            .and_then(|hex| u16::from_str_radix(hex, 16).ok())
    };
    let mut at = 0;
    while at < text.len() {
        match unit(at) {
            Some(0xd800..=0xdbff) if unit(at + 6).is_some_and(|low| (0xdc00..=0xdfff).contains(&low)) => at += 12,
            Some(0xd800..=0xdfff) => return true,
            _ => {
                at +=
                    if text[at..].starts_with("\\\\") { 2 } else { text[at..].chars().next().map_or(1, char::len_utf8) }
            }
        }
    }
    false
}
