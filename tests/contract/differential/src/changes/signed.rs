//! Changes of header and payload before signing. Each function returns a description.

use crate::issuer::{ISSUER, Keys, NOW, jwk};
use crate::random::Random;
use crate::shapes::Draft;
use crate::tree::Tree;

/// JSON values that are not texts.
const NOT_TEXTS: [&str; 6] = ["null", "5", "true", "[]", "{}", "[\"sha-256\"]"];

/// Changes the payload.
pub(crate) fn change_payload(draft: &mut Draft, keys: &Keys, random: &mut Random) -> String {
    match random.below(10) {
        0..=2 => change_digests(draft, random),
        3 | 4 => change_hash_algorithm(draft, random),
        5 | 6 => change_time(draft, random),
        7 => change_issuer(draft, random),
        8 => change_holder(draft, keys, random),
        _ => change_members(draft, random),
    }
}

/// Returns the lists `_sd` of the payload and of every plain object in it.
fn lists_of_digests(tree: &mut Tree) -> Vec<&mut Vec<Tree>> {
    let mut lists = Vec::new();
    match tree {
        Tree::Object(members) => {
            for (name, value) in members {
                if name.as_str() != "_sd" {
                    lists.extend(lists_of_digests(value));
                } else if let Tree::List(digests) = value {
                    lists.push(digests);
                }
            }
        }
        Tree::List(items) => lists.extend(items.iter_mut().flat_map(lists_of_digests)),
        Tree::Raw(_) | Tree::Text(_) => {}
    }
    lists
}

/// Changes a list of digests, or adds a malformed digest.
fn change_digests(draft: &mut Draft, random: &mut Random) -> String {
    let chosen = random.below(10);
    // Seven of ten changes concern a list of digests.
    let mut lists = lists_of_digests(&mut draft.payload);
    if chosen < 7 && !lists.is_empty() {
        let at = random.below(lists.len());
        let digests_before = lists[at].clone();
        let digests = &mut lists[at];
        let Some(digest) = (!digests_before.is_empty()).then(|| random.pick(&digests_before)) else {
            return "nothing".to_owned();
        };
        match chosen {
            0 => {
                let position = random.below(digests.len());
                digests.insert(position, digest);
                return "a digest twice in one list".to_owned();
            }
            1 => {
                draft.payload.add("inner", Tree::object([("_sd", Tree::List(vec![digest]))]));
                return "a digest twice in two lists".to_owned();
            }
            2 => {
                draft.payload.add("items", Tree::List(vec![Tree::object([("...", digest)])]));
                return "a digest of a list in an array too".to_owned();
            }
            3 => {
                digests.push(random.pick(&["null", "5", "{}", "[]", "true"]).parse_raw());
                return "a digest that is no text".to_owned();
            }
            4 => {
                let position = random.below(digests.len());
                digests.remove(position);
                return "a digest removed".to_owned();
            }
            5 => {
                let position = random.below(digests.len());
                if let Tree::Text(text) = &mut digests[position] {
                    text.push('=');
                }
                return "a digest padded".to_owned();
            }
            _ => {
                digests.clear();
                draft.payload.add("moved", Tree::object([("_sd", Tree::List(vec![digest]))]));
                return "a digest moved".to_owned();
            }
        }
    }
    if chosen == 7 {
        draft.payload.set("_sd", random.pick(&["\"x\"", "\"\"", "{}", "null", "5", "false", "0"]).parse_raw());
        return "the digests are not a list".to_owned();
    }
    let texts = [
        "[{\"...\":\"x\",\"y\":1}]",
        "[{\"...\":5}]",
        "[{\"...\":\"x\"},{\"...\":\"x\"}]",
        "{\"...\":\"x\"}",
        "[{\"...\":\"\"}]",
        "[{\"...\":null}]",
    ];
    let text = random.pick(&texts);
    if chosen == 8 {
        draft.payload.set("careOf", text.parse_raw());
        draft.payload.remove("CareOf");
        return format!("a plain claim {text}");
    }
    draft.payload.add("...", "x");
    "an array digest in the payload".to_owned()
}

/// Changes or misplaces the name of the hash algorithm.
fn change_hash_algorithm(draft: &mut Draft, random: &mut Random) -> String {
    match random.below(5) {
        0 => {
            let text = random.pick(&NOT_TEXTS);
            draft.payload.set("_sd_alg", text.parse_raw());
            format!("_sd_alg {text}")
        }
        1 => {
            draft.payload.add("inner", Tree::object([("_sd_alg", "sha-256".into())]));
            "_sd_alg below the top".to_owned()
        }
        _ => {
            let name = random.pick(&[
                "sha-512", "sha-384", "md5", "Sha-256", "SHA256", "sha256", "", "sha-256 ", "none", "sha3-256",
                "SHA-256",
            ]);
            draft.payload.set("_sd_alg", name);
            format!("_sd_alg {name:?}")
        }
    }
}

/// Changes or removes a time of the payload.
fn change_time(draft: &mut Draft, random: &mut Random) -> String {
    let name = random.pick(&["exp", "exp", "nbf", "iat"]);
    if random.percent(10) {
        draft.payload.remove(name);
        return format!("no {name}");
    }
    let offsets =
        ["0", "1", "-1", "29", "30", "31", "59", "60", "61", "-59", "-60", "-61", "-3600", "0.5", "-0.5", "60.5"];
    let text = if random.percent(70) {
        let offset: f64 = random.pick(&offsets).parse().expect("a number");
        (NOW as f64 + offset).to_string()
    } else {
        let wrong_values = [
            "null",
            "true",
            "\"1900000000\"",
            "[]",
            "{}",
            "0",
            "-1",
            "1e18",
            "1.9e9",
            "1e300",
            "1900000000.0",
            "\"\"",
            "false",
            "18446744073709551615",
        ];
        random.pick(&wrong_values).to_owned()
    };
    draft.payload.set(name, text.parse_raw());
    format!("{name} {text}")
}

/// Changes or removes the issuer.
fn change_issuer(draft: &mut Draft, random: &mut Random) -> String {
    let chosen = random.below(4);
    match chosen {
        0 => draft.payload.remove("iss"),
        1 => draft.payload.set(
            "iss",
            random.pick(&["https://other.example", "https://issuer.example/", "HTTPS://issuer.example", ""]),
        ),
        2 => draft.payload.set("iss", Tree::List(vec![ISSUER.into()])),
        _ => draft.payload.set("iss", random.pick(&NOT_TEXTS).parse_raw()),
    }
    format!("iss, change {chosen}")
}

/// Changes or removes the public key of the holder.
fn change_holder(draft: &mut Draft, keys: &Keys, random: &mut Random) -> String {
    let mut key = jwk(&keys.holder);
    let chosen = random.below(14);
    match chosen {
        0 => {
            draft.payload.remove("cnf");
            return "no cnf".to_owned();
        }
        1 => {
            let text = random.pick(&[
                "null",
                "{}",
                "\"x\"",
                "5",
                "{\"jwk\":null}",
                "{\"jwk\":{}}",
                "{\"jwk\":\"x\"}",
                "{\"kid\":\"x\"}",
                "[]",
            ]);
            draft.payload.set("cnf", text.parse_raw());
            return format!("cnf {text}");
        }
        2 => key.set("kty", random.pick(&["OKP", "RSA", "oct", "ec"])),
        3 => key.set("crv", random.pick(&["P-384", "Ed25519", "secp256k1", "p-256"])),
        4 => key.set("x", random.pick(&["", "AA", "x=", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"])),
        5 => key.remove("y"),
        6 => key.set("y", Tree::number(5)),
        7 => key.set("use", random.pick(&["sig", "enc"])),
        8 => key.set("alg", random.pick(&["ES256", "ES384", "ECDH-ES"])),
        9 => key.set(
            "key_ops",
            random.pick(&["[\"verify\"]", "[\"sign\"]", "[\"encrypt\"]", "[]", "\"verify\""]).parse_raw(),
        ),
        10 => key.set("kid", random.pick(&["holder", ""])),
        11 => key.set("extra", Tree::number(5)),
        12 => key = jwk(&keys.stranger),
        _ => key.set("d", "AAAA"),
    }
    let text = format!("cnf.jwk, change {chosen}");
    draft.payload.set("cnf", Tree::object([("jwk", key)]));
    text
}

/// Adds members that repeat a name, are no JSON, or are too deep or too many.
fn change_members(draft: &mut Draft, random: &mut Random) -> String {
    let chosen = random.below(6);
    match chosen {
        0 => draft.payload.add("id", "again"),
        1 => draft.payload.add("inner", Tree::Object(vec![("a".into(), "1".into()), ("a".into(), "1".into())])),
        2 => draft
            .payload
            .add("n", random.pick(&["NaN", "Infinity", "1e400", "-", "\"\\ud800\"", "01", "tru"]).parse_raw()),
        3 => draft.payload.add("deep", Tree::Raw("[".repeat(14 + random.below(4)) + "]]]]]]]]]]]]]]]]]]")),
        4 => {
            let levels = 13 + random.below(4);
            draft.payload.add("deep", Tree::Raw("{\"a\":".repeat(levels) + "1" + &"}".repeat(levels)));
        }
        _ => draft.payload.add("many", Tree::Raw(format!("[{}0]", "0,".repeat(7_500 + random.below(1_500))))),
    }
    format!("members, change {chosen}")
}

/// Changes the header.
pub(crate) fn change_header(draft: &mut Draft, keys: &Keys, random: &mut Random) -> String {
    let header = &mut draft.header;
    let chosen = random.below(12);
    match chosen {
        0 => header
            .set("alg", random.pick(&["none", "HS256", "ES384", "es256", "RS256", "EdDSA", "ES256K", "", "ES256 "])),
        1 => header.remove("alg"),
        2 => header.set("alg", random.pick(&NOT_TEXTS).parse_raw()),
        3 => header.set(
            "typ",
            random.pick(&["JWT", "sd-jwt", "VC+SD-JWT", "application/vc+sd-jwt", "kb+jwt", "", "vc+sd-jwt "]),
        ),
        4 => header.remove("typ"),
        5 => header.set("typ", random.pick(&NOT_TEXTS).parse_raw()),
        6 => header.set("kid", random.pick(&["issuer-key-2", "", "ISSUER-KEY-1"])),
        7 => match random.below(2) {
            0 => header.remove("kid"),
            _ => header.set("kid", random.pick(&NOT_TEXTS).parse_raw()),
        },
        8 => header.set(
            "crit",
            random
                .pick(&["[]", "[\"exp\"]", "[\"b64\"]", "null", "\"alg\"", "[\"alg\"]", "[\"kid\"]", "{}"])
                .parse_raw(),
        ),
        9 => header.set("jwk", jwk(&keys.stranger)),
        10 => match random.below(4) {
            0 => header.set("b64", random.pick(&["true", "false", "null", "\"x\""]).parse_raw()),
            1 => header.add("alg", "ES256"),
            2 => header.add("x", Tree::Raw(format!("[{}0]", "0,".repeat(56 + random.below(9))))),
            _ => header.add("x", "y".repeat(6_000 + random.below(200))),
        },
        _ => header.set(
            random.pick(&["x5c", "jku", "x5u"]),
            random.pick(&["null", "\"https://x.example\"", "[\"AAAA\"]"]).parse_raw(),
        ),
    }
    format!("change {chosen}")
}

/// Makes a change that breaks no rule.
pub(crate) fn change_harmlessly(draft: &mut Draft, random: &mut Random) -> String {
    let chosen = random.below(8);
    match chosen {
        0 => draft.header.set("cty", "x"),
        1 => draft.header.set("x5t", "AAAA"),
        2 => draft.payload.set("nbf", Tree::number(NOW + [-100, 0, 59, 60][random.below(4)])),
        3 => draft.payload.set("iat", Tree::number(NOW + [-100, 0, 59, 60][random.below(4)])),
        4 => draft.payload.set(
            "exp",
            random.pick(&["1800000001", "1800000000.5", "1.9e9", "1900000000.0", "253402300799"]).parse_raw(),
        ),
        5 => draft.payload.add("vct", "https://issuer.example/type"),
        6 => draft.payload.add("more", Tree::raw("{\"numbers\":[0.1,1e-7,-0.0,12345678],\"empty\":{}}")),
        _ => draft.payload.remove("iat"),
    }
    format!("change {chosen}")
}

/// Reads a JSON text verbatim.
pub(crate) trait ParseRaw {
    fn parse_raw(&self) -> Tree;
}

impl ParseRaw for str {
    fn parse_raw(&self) -> Tree {
        Tree::raw(self)
    }
}
