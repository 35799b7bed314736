//! Changes to a valid credential: to a disclosure before its digest, to header and payload before signing, to the key
//! binding, and to the signed text. Some are harmless; most break a rule.

pub(crate) mod binding;
pub(crate) mod disclosures;
pub(crate) mod signed;
pub(crate) mod text;

use aws_lc_rs::signature::EcdsaKeyPair;
use sakshi_authority::sdjwt::KeyBinding;

use crate::issuer::{Keys, digest_of, sign};
use crate::random::Random;
use crate::shapes::{Draft, content};
use crate::tree::Tree;

/// A credential and the settings for its verification.
pub(crate) struct Case {
    pub(crate) seed: u64,
    pub(crate) credential: String,
    pub(crate) policy: KeyBinding,
    /// Descriptions of the changes, for the report of a failure.
    pub(crate) changes: Vec<String>,
}

/// Makes the case of a seed. About half of the cases have harmless changes only.
pub(crate) fn make_case(seed: u64, keys: &Keys) -> Case {
    let mut random = Random::new(seed);
    let random = &mut random;
    let mut changes = Vec::new();
    let is_harmful = random.percent(50);
    // The places where a rule is broken: none if the case is harmless, else one and sometimes two.
    let mut places = [false; 5];
    if is_harmful {
        places[random.below(5)] = true;
        if random.percent(15) {
            places[random.below(5)] = true;
        }
    }
    let [in_disclosure, in_signed, in_header, in_binding, in_text] = places;
    let change = in_disclosure.then(|| random.pick(&disclosures::ALL));
    changes.extend(change.map(|change| format!("disclosure: {change:?}")));
    let mut draft = Draft::make(random, keys, change);
    if in_signed {
        changes.push(format!("payload: {}", signed::change_payload(&mut draft, keys, random)));
    }
    if in_header {
        changes.push(format!("header: {}", signed::change_header(&mut draft, keys, random)));
    }
    if random.percent(30) {
        changes.push(format!("harmless: {}", signed::change_harmlessly(&mut draft, random)));
    }
    omit_disclosures(&mut draft, random, &mut changes);
    let breaks_json = in_signed && random.percent(8);
    let jws = sign_trees(&keys.issuer, &draft.header, &draft.payload, breaks_json, random, &mut changes);
    if random.percent(30) {
        random.shuffle(&mut draft.disclosures);
    }
    let presented =
        [jws, draft.disclosures.join("~")].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("~")
            + "~";
    let policy = match (random.below(10), draft.binding.is_some()) {
        (0, _) if is_harmful => KeyBinding::Off,
        (1, _) if is_harmful => KeyBinding::Required,
        (2 | 3, false) => KeyBinding::Off,
        (2 | 3, true) => KeyBinding::Required,
        _ => KeyBinding::WhenPresent,
    };
    let mut key_binding = draft.binding.take().map(|(mut header, mut payload)| {
        payload.add("sd_hash", digest_of(&presented));
        let mut signer = &keys.holder;
        if in_binding {
            changes.push(format!(
                "key binding: {}",
                binding::change_binding(&mut header, &mut payload, &mut signer, keys, random)
            ));
        }
        let breaks_json = in_binding && random.percent(8);
        sign_trees(signer, &header, &payload, breaks_json, random, &mut changes)
    });
    if key_binding.is_none() && in_binding {
        let text = random.pick(&["x", "a.b.c", "..", "{}", " "]);
        key_binding = Some(text.to_owned());
        changes.push(format!("key binding: {text:?}"));
    }
    let mut credential = presented + &key_binding.unwrap_or_default();
    if in_text {
        changes.push(format!("text: {}", text::change_text(&mut credential, random)));
    }
    Case { seed, credential, policy, changes }
}

/// Signs header and payload as a JWS, sometimes with other spellings of the same JSON, or with invalid JSON.
fn sign_trees(
    key: &EcdsaKeyPair,
    header: &Tree,
    payload: &Tree,
    breaks_json: bool,
    random: &mut Random,
    changes: &mut Vec<String>,
) -> String {
    let mut write = |tree: &Tree| {
        let text = match random.below(15) {
            0 => tree.to_spaced_text(),
            1 => tree.to_escaped_text(),
            _ => tree.to_string(),
        };
        text.into_bytes()
    };
    let (mut header, mut payload) = (write(header), write(payload));
    if breaks_json {
        let text = if random.percent(30) { &mut header } else { &mut payload };
        changes.push(format!("JSON: {}", break_json(text, random)));
    }
    sign(key, &header, &payload)
}

/// Sometimes removes a disclosure with those that it contains, as a holder may.
fn omit_disclosures(draft: &mut Draft, random: &mut Random, changes: &mut Vec<String>) {
    if draft.disclosures.is_empty() || !random.percent(35) {
        return;
    }
    let mut removed = vec![draft.disclosures.remove(random.below(draft.disclosures.len()))];
    while let Some(parent) = removed.pop() {
        let content = content(&parent);
        let (children, remaining): (Vec<String>, Vec<String>) =
            draft.disclosures.drain(..).partition(|text| content.contains(&digest_of(text)));
        draft.disclosures = remaining;
        removed.extend(children);
    }
    changes.push("harmless: a disclosure is left out".to_owned());
}

/// Makes a JSON text invalid, or appends to it; returns a description.
pub(crate) fn break_json(text: &mut Vec<u8>, random: &mut Random) -> &'static str {
    match random.below(7) {
        0 => {
            text.splice(0..0, *b"\xef\xbb\xbf");
            "a byte order mark"
        }
        1 => {
            text.extend(b" {}");
            "a second value"
        }
        2 => {
            let end = text.len() - 1;
            text.truncate(end);
            "its end is missing"
        }
        3 => {
            *text = text.iter().flat_map(|byte| [*byte, 0]).collect();
            "UTF-16"
        }
        4 => {
            let at = text.iter().rposition(|byte| *byte == b'"').unwrap_or_default();
            text.insert(at, 0xff);
            "bytes that are not UTF-8"
        }
        5 => {
            let at = text.len() - 1;
            text.insert(at, b',');
            "a comma before its end"
        }
        _ => {
            text.splice(0..0, *b"/* */");
            "a comment"
        }
    }
}
