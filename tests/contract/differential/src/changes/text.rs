//! Changes to the text of a signed credential, which anybody can make.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

use crate::issuer::with_second_signature;
use crate::random::Random;

/// Changes the text; returns a description.
pub(crate) fn change_text(credential: &mut String, random: &mut Random) -> String {
    let Some((parts, binding)) = credential.rsplit_once('~') else { return "nothing".to_owned() };
    let mut parts: Vec<String> = parts.split('~').map(str::to_owned).collect();
    let mut binding = binding.to_owned();
    let description = match random.below(10) {
        0 | 1 => change_disclosure_list(&mut parts, random),
        2 | 3 if parts.len() > 1 => {
            let at = 1 + random.below(parts.len() - 1);
            format!("disclosure: {}", change_segment(&mut parts[at], random))
        }
        4 if !binding.is_empty() => format!("KB-JWT: {}", change_jws(&mut binding, random)),
        5 => {
            *credential = change_whole(credential, random);
            return "the whole".to_owned();
        }
        _ => format!("JWS: {}", change_jws(&mut parts[0], random)),
    };
    *credential = format!("{}~{binding}", parts.join("~"));
    description
}

/// Changes the set of disclosures.
fn change_disclosure_list(parts: &mut Vec<String>, random: &mut Random) -> String {
    let at = random.below(parts.len());
    let chosen = random.below(6);
    match chosen {
        0 | 1 if parts.len() > 1 => {
            let text = parts[1 + random.below(parts.len() - 1)].clone();
            parts.insert(at + 1, text);
        }
        2 => parts.insert(at + 1, URL_SAFE_NO_PAD.encode("[\"salt\",\"name\",\"value\"]")),
        3 => parts.insert(at + 1, String::new()),
        4 => {
            // About one more than the maximum of disclosures.
            let room = 257_usize.saturating_sub(parts.len());
            parts.extend(
                (0..room + random.below(2)).map(|index| URL_SAFE_NO_PAD.encode(format!("[\"{index}\",\"x\"]"))),
            );
        }
        _ => drop(parts.remove(at)),
    }
    if parts.is_empty() {
        parts.push(String::new());
    }
    format!("disclosures, change {chosen}")
}

/// Changes one segment of base64url.
fn change_segment(segment: &mut String, random: &mut Random) -> String {
    let chosen = random.below(9);
    let length = segment.len();
    match chosen {
        0 => segment.push_str(&"=".repeat((4 - length % 4) % 4)),
        1 => segment.push_str(random.pick(&["=", "==", "A", "AA", "AAAA", "\n", " ", "."])),
        2 => {
            segment
                .insert_str(random.below(length + 1), random.pick(&["\n", " ", "=", "!", "é", "\0", "+", "/", "\t"]));
        }
        3 => {
            let bytes = URL_SAFE_NO_PAD.decode(&*segment).unwrap_or_default();
            *segment = STANDARD.encode(bytes);
        }
        4 => *segment = segment.replace('-', "+").replace('_', "/"),
        5 => segment.truncate(random.below(length)),
        6 => segment.clear(),
        7 => replace_character(segment, length.saturating_sub(1), random),
        _ => replace_character(segment, random.below(length), random),
    }
    format!("segment, change {chosen}")
}

/// Replaces a character by a random character of base64url.
fn replace_character(segment: &mut String, at: usize, random: &mut Random) {
    if segment.is_char_boundary(at) && segment.is_char_boundary(at + 1) && at < segment.len() {
        let other = random.salt(1);
        segment.replace_range(at..=at, &other);
    }
}

/// Changes a segment of a JWS, or their number.
fn change_jws(jws: &mut String, random: &mut Random) -> String {
    let mut segments: Vec<String> = jws.split('.').map(str::to_owned).collect();
    let chosen = random.below(8);
    let description = match chosen {
        0 => {
            segments.pop();
            "a segment less".to_owned()
        }
        1 => {
            segments.push(random.salt(4));
            "a segment more".to_owned()
        }
        2 => {
            if let Some(other) = with_second_signature(jws) {
                *jws = other;
            }
            return "the second valid signature".to_owned();
        }
        3 => {
            segments[0] = URL_SAFE_NO_PAD.encode(random.pick(&["{\"alg\":\"none\"}", "{}", "[]", "\"x\"", "null"]));
            "another header".to_owned()
        }
        _ => {
            let at = random.below(segments.len());
            format!("segment {at}: {}", change_segment(&mut segments[at], random))
        }
    };
    *jws = segments.join(".");
    description
}

/// Returns the whole text with a change.
fn change_whole(credential: &str, random: &mut Random) -> String {
    match random.below(9) {
        0 => credential.trim_end_matches('~').to_owned(),
        1 => format!("~{credential}"),
        2 => format!("{credential}~"),
        3 => credential.replacen('~', "~~", 1),
        4 => format!(" {credential}"),
        5 => format!("{credential}\n"),
        6 => {
            let mut text = credential.to_owned();
            text.truncate(random.below(credential.len()));
            text
        }
        7 => credential.split('~').next().unwrap_or_default().to_owned(),
        _ => random.pick(&["", "~", "~~", "a.b.c~", "..~", "{}", "null", "eyJ9.eyJ9.e30~"]).to_owned(),
    }
}
