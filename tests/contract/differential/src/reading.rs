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

/// The facts found so far, and the number of JSON values read.
pub(crate) struct Reading {
    facts: BTreeSet<Fact>,
    values: usize,
}

type Members = [(String, Json)];

/// A name, absent for an array element, and a value.
type Disclosed = (Option<String>, Json);

/// Returns the facts of a credential, in the order of their declaration.
pub(crate) fn facts(credential: &str, policy: KeyBinding, keys: &Keys) -> Vec<Fact> {
    let mut reading = Reading { facts: BTreeSet::new(), values: 0 };
    reading.check_credential(credential, policy, keys);
    reading.facts.into_iter().collect()
}

fn member<'a>(members: &'a Members, name: &str) -> Option<&'a Json> {
    // The last of equal names counts, as for most readers; a repeated name is a separate fact.
    members.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value)
}

fn text<'a>(members: &'a Members, name: &str) -> Option<&'a str> {
    match member(members, name) {
        Some(Json::Text(text)) => Some(text),
        _ => None,
    }
}

fn depth(json: &Json) -> usize {
    match json {
        Json::List(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Json::Object(members) => 1 + members.iter().map(|(_, value)| depth(value)).max().unwrap_or_default(),
        _ => 0,
    }
}

fn values(json: &Json) -> usize {
    match json {
        Json::List(items) => 1 + items.iter().map(values).sum::<usize>(),
        Json::Object(members) => 1 + members.iter().map(|(_, value)| values(value)).sum::<usize>(),
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

/// A JWS: header, payload, and the content of the signature.
struct Jws<'a> {
    header: Vec<(String, Json)>,
    payload: &'a str,
    signed: &'a str,
    signature: Vec<u8>,
}

impl Reading {
    fn note(&mut self, fact: Fact) {
        self.facts.insert(fact);
    }

    fn note_if(&mut self, holds: bool, fact: Fact) {
        if holds {
            self.note(fact);
        }
    }

    fn bytes(&mut self, segment: &str) -> Option<Vec<u8>> {
        let bytes = URL_SAFE_NO_PAD.decode(segment).ok();
        self.note_if(bytes.is_none(), Fact::NotBase64url);
        bytes
    }

    /// Reads a JSON text; a fact records the reason for a failure.
    fn json(&mut self, bytes: &[u8]) -> Option<Json> {
        if let Ok(json) = read::<Json>(bytes, usize::MAX, &ValuesLeft::new(usize::MAX)) {
            self.note_if(repeats_a_name(&json), Fact::RepeatedName);
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
        self.note(fact);
        None
    }

    fn jws<'a>(&mut self, jws: &'a str) -> Option<Jws<'a>> {
        let segments: Vec<&str> = jws.split('.').collect();
        let &[header, payload, signature] = &*segments else {
            self.note(Fact::NotAJws);
            return None;
        };
        self.note_if(segments.iter().any(|segment| segment.is_empty()), Fact::NotAJws);
        self.note_if(header.len() > 8_192 || signature.len() > 1_024, Fact::TooLarge);
        let signed = &jws[..header.len() + 1 + payload.len()];
        let (header, signature) = (self.bytes(header)?, self.bytes(signature)?);
        let header = self.json(&header)?;
        self.note_if(values(&header) > 64, Fact::TooManyValues);
        self.note_if(depth(&header) > 16, Fact::TooDeep);
        let Json::Object(header) = header else {
            self.note(Fact::NotAnObject);
            return None;
        };
        Some(Jws { header, payload, signed, signature })
    }

    fn check_credential(&mut self, credential: &str, policy: KeyBinding, keys: &Keys) {
        self.note_if(credential.len() > 4 << 20, Fact::TooLarge);
        let Some((presented, binding)) = credential.rsplit_once('~') else { return self.note(Fact::NotAnSdJwt) };
        self.note_if(policy == KeyBinding::Off && !binding.is_empty(), Fact::BindingUnexpected);
        self.note_if(policy == KeyBinding::Required && binding.is_empty(), Fact::BindingMissing);
        let mut parts = presented.split('~');
        let jws = parts.next().unwrap_or_default();
        let disclosures: Vec<&str> = parts.collect();
        self.note_if(jws.is_empty() || disclosures.iter().any(|text| text.is_empty()), Fact::NotAnSdJwt);
        self.note_if(disclosures.len() > 256, Fact::TooLarge);
        let Some(jws) = self.jws(jws) else { return };
        self.check_issuer_header(&jws.header);
        self.note_if(!is_signed(&jws, keys.issuer.public_key().as_ref()), Fact::Signature);
        let Some(payload) = self.bytes(jws.payload).and_then(|bytes| self.json(&bytes)) else { return };
        self.note_if(depth(&payload) > 16, Fact::TooDeep);
        self.values += values(&payload);
        let Json::Object(payload) = payload else { return self.note(Fact::NotAnObject) };
        self.note_if(text(&payload, "iss") != Some(ISSUER), Fact::Issuer);
        let payload = self.process(payload, &disclosures);
        self.note_if(text(&payload, "iss") != Some(ISSUER), Fact::Issuer);
        self.note_if(self.values > 8_192, Fact::TooManyValues);
        self.check_times(&payload);
        self.check_spellings(&payload);
        if policy != KeyBinding::Off && !binding.is_empty() {
            self.check_binding(binding, &payload, &credential[..=presented.len()]);
        }
    }

    fn check_issuer_header(&mut self, header: &Members) {
        self.note_if(text(header, "alg") != Some("ES256"), Fact::Algorithm);
        self.note_if(member(header, "crit").is_some(), Fact::Critical);
        self.note_if(!matches!(text(header, "typ"), Some("vc+sd-jwt" | "dc+sd-jwt")), Fact::Type);
        self.note_if(["jwk", "x5c", "jku", "x5u"].iter().any(|name| member(header, name).is_some()), Fact::KeyInToken);
        self.note_if(text(header, "kid") != Some(KID), Fact::KeyId);
        // `true` is the default.
        self.note_if(!matches!(member(header, "b64"), None | Some(Json::Flag(true))), Fact::PayloadEncoding);
    }

    /// Replaces the digests in a payload by their disclosures.
    fn process(&mut self, mut payload: Vec<(String, Json)>, disclosures: &[&str]) -> Vec<(String, Json)> {
        match member(&payload, "_sd_alg") {
            None => {}
            Some(Json::Text(name)) if name == "sha-256" || name == "SHA-256" => {}
            Some(_) => self.note(Fact::HashAlgorithm),
        }
        payload.retain(|(name, _)| name != "_sd_alg");
        let mut by_digest = HashMap::new();
        for text in disclosures {
            let disclosure = self.disclosure(text);
            let twice = by_digest.insert(encode(digest(&SHA256, text.as_bytes())), (disclosure, false)).is_some();
            self.note_if(twice, Fact::DisclosureTwice);
        }
        let mut index = DigestIndex { by_digest, seen: HashSet::new() };
        let payload = self.process_object(payload, &mut index, 1);
        self.note_if(index.by_digest.values().any(|(_, used)| !used), Fact::Unreferenced);
        payload
    }

    /// Returns the name and the value of a disclosure.
    fn disclosure(&mut self, text: &str) -> Option<Disclosed> {
        let bytes = self.bytes(text)?;
        let json = self.json(&bytes)?;
        self.note_if(depth(&json) > 17, Fact::TooDeep);
        self.values += values(&json);
        let Json::List(mut parts) = json else {
            self.note(Fact::DisclosureMalformed);
            return None;
        };
        if !matches!(parts.len(), 2 | 3) {
            self.note(Fact::DisclosureMalformed);
            return None;
        }
        self.note_if(!matches!(parts[0], Json::Text(_)), Fact::Salt);
        let value = parts.pop()?;
        let name = match parts.get(1) {
            None => None,
            Some(Json::Text(name)) => Some(name.clone()),
            Some(_) => {
                self.note(Fact::NameNotAText);
                return None;
            }
        };
        self.note_if(matches!(name.as_deref(), Some("_sd" | "...")), Fact::NameReserved);
        self.note_if(name.as_deref() == Some("_sd_alg"), Fact::HashAlgorithmMisplaced);
        Some((name, value))
    }

    fn process_value(&mut self, value: Json, index: &mut DigestIndex, depth: usize) -> Json {
        match value {
            Json::Object(members) => Json::Object(self.process_object(members, index, depth + 1)),
            Json::List(items) => Json::List(self.process_list(items, index, depth + 1)),
            Json::Number(number) => {
                let integer = number.as_i64().map(i64::unsigned_abs).or_else(|| number.as_u64());
                let beyond = integer.is_some_and(|integer| integer > 1 << 53);
                self.note_if(beyond, Fact::LargeInteger);
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
        self.note_if(depth > 16, Fact::TooDeep);
        let (mut result, mut digests) = (Vec::new(), Vec::new());
        for (name, value) in members {
            match (name.as_str(), value) {
                ("_sd_alg", _) => self.note(Fact::HashAlgorithmMisplaced),
                ("...", _) => self.note(Fact::ArrayDigestMalformed),
                ("_sd", Json::List(items)) => digests = items,
                ("_sd", _) => self.note(Fact::DigestsMalformed),
                (_, value) => result.push((name, self.process_value(value, index, depth))),
            }
        }
        self.note_if(result.iter().any(|(name, _)| name == "__proto__"), Fact::PrototypeName);
        for item in digests {
            let Json::Text(item) = item else {
                self.note(Fact::DigestsMalformed);
                continue;
            };
            match self.disclosure_of(&item, index) {
                None => {}
                Some((None, _)) => self.note(Fact::DisclosureMisplaced),
                Some((Some(name), value)) => {
                    self.note_if(result.iter().any(|(known, _)| *known == name), Fact::NameTaken);
                    self.note_if(name.is_empty(), Fact::EmptyName);
                    self.note_if(name == "__proto__", Fact::PrototypeName);
                    let value = self.process_value(value, index, depth);
                    result.push((name, value));
                }
            }
        }
        result
    }

    fn process_list(&mut self, items: Vec<Json>, index: &mut DigestIndex, depth: usize) -> Vec<Json> {
        self.note_if(depth > 16, Fact::TooDeep);
        let mut result = Vec::new();
        for item in items {
            let item = match item {
                Json::Object(members) if member(&members, "...").is_some() => match &*members {
                    [(_, Json::Text(digest))] => {
                        // Names that every JavaScript object has.
                        let odd = ["", "constructor", "toString", "__proto__"];
                        self.note_if(odd.contains(&digest.as_str()), Fact::OddArrayDigest);
                        match self.disclosure_of(digest, index) {
                            None => continue,
                            Some((None, value)) => value,
                            Some((Some(_), _)) => {
                                self.note(Fact::DisclosureMisplaced);
                                continue;
                            }
                        }
                    }
                    _ => {
                        self.note(Fact::ArrayDigestMalformed);
                        continue;
                    }
                },
                plain => plain,
            };
            result.push(self.process_value(item, index, depth));
        }
        result
    }

    fn disclosure_of(&mut self, digest: &str, index: &mut DigestIndex) -> Option<Disclosed> {
        if !index.seen.insert(digest.to_owned()) {
            self.note(Fact::DigestTwice);
            return None;
        }
        let (disclosure, used) = index.by_digest.get_mut(digest)?;
        *used = true;
        disclosure.clone()
    }

    fn check_times(&mut self, payload: &Members) {
        let time = |name: &str| match member(payload, name) {
            None => Ok(None),
            Some(Json::Number(number)) => Ok(number.as_f64()),
            Some(_) => Err(()),
        };
        let now = NOW as f64;
        self.note_if(["exp", "nbf", "iat"].iter().any(|name| time(name).is_err()), Fact::TimeNotANumber);
        self.note_if(time("exp") == Ok(None), Fact::ExpiryMissing);
        self.note_if(time("exp").is_ok_and(|at| at.is_some_and(|at| at <= now)), Fact::Expired);
        let ahead = |name: &str| time(name).is_ok_and(|at| at.is_some_and(|at| at > now + 60.0));
        self.note_if(ahead("nbf") || ahead("iat"), Fact::NotYetValid);
    }

    /// Checks for two names of a claim that differ only in the case of their first letter.
    fn check_spellings(&mut self, payload: &Members) {
        let mut seen = HashSet::new();
        for (name, _) in payload {
            let mut letters = name.chars();
            let lower = letters
                .next()
                .map(|first| first.to_ascii_lowercase().to_string() + letters.as_str())
                .unwrap_or_default();
            let is_claim = sakshi_domain::claims::Claim::ALL
                .iter()
                .any(|claim| sakshi_authority::claims::credential_name(*claim) == lower);
            self.note_if(is_claim && !seen.insert(lower), Fact::TwoSpellings);
        }
    }

    fn check_binding(&mut self, binding: &str, payload: &Members, presented: &str) {
        let mut inner = Self { facts: BTreeSet::new(), values: 0 };
        let jws = inner.jws(binding);
        let claims = jws.as_ref().and_then(|jws| inner.bytes(jws.payload)).and_then(|bytes| inner.json(&bytes));
        let small =
            claims.as_ref().is_none_or(|claims| values(claims) <= 64 && depth(claims) <= 16) && binding.len() <= 16_384;
        self.note_if(!inner.facts.is_empty() || !small, Fact::BindingMalformed);
        // All verifiers refuse unreadable JSON.
        self.note_if(inner.facts.contains(&Fact::NotJson), Fact::NotJson);
        let (Some(jws), Some(Json::Object(claims))) = (jws, claims) else { return self.note(Fact::BindingMalformed) };
        self.note_if(text(&jws.header, "alg") != Some("ES256"), Fact::BindingAlgorithm);
        self.note_if(member(&jws.header, "crit").is_some(), Fact::BindingCritical);
        self.note_if(text(&jws.header, "typ") != Some("kb+jwt"), Fact::BindingType);
        match holder_key(payload) {
            None => self.note(Fact::HolderKey),
            Some(key) => self.note_if(!is_signed(&jws, &key), Fact::BindingSignature),
        }
        self.note_if(holder_key_has_another_use(payload), Fact::HolderKeyUse);
        self.note_if(text(&claims, "nonce") != Some(&*crate::issuer::txn().to_string()), Fact::BindingNonce);
        self.note_if(text(&claims, "aud") != Some(crate::issuer::AUDIENCE), Fact::BindingAudience);
        let near = |number: f64| (number - NOW as f64).abs() <= 300.0;
        let is_current =
            matches!(member(&claims, "iat"), Some(Json::Number(number)) if number.as_f64().is_some_and(near));
        self.note_if(!is_current, Fact::BindingTime);
        let time = |name: &str| match member(&claims, name) {
            None => Ok(None),
            Some(Json::Number(number)) => Ok(number.as_f64()),
            Some(_) => Err(()),
        };
        let expired = time("exp").is_ok_and(|at| at.is_some_and(|at| at <= NOW as f64));
        let early = time("nbf").is_ok_and(|at| at.is_some_and(|at| at > NOW as f64 + 300.0));
        self.note_if(expired || early || time("exp").is_err() || time("nbf").is_err(), Fact::BindingExpired);
        self.note_if(text(&claims, "sd_hash") != Some(&*crate::issuer::digest_of(presented)), Fact::BindingHash);
    }
}

/// Disclosures by digest, with a flag for their use, and all digests seen so far.
struct DigestIndex {
    by_digest: HashMap<String, (Option<Disclosed>, bool)>,
    seen: HashSet<String>,
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
    let used = member(jwk, "use").is_some() && text(jwk, "use") != Some("sig");
    let operations = match member(jwk, "key_ops") {
        None => false,
        Some(Json::List(names)) => !names.iter().any(verifies),
        Some(_) => true,
    };
    used || operations
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
