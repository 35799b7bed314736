//! Valid credentials of many shapes, not yet signed: flat like those of the authority, recursive, with arrays, decoys,
//! many claims, large and deep values, and all kinds of text.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sakshi_authority::claims::credential_name;
use sakshi_domain::claims::Claim;
use serde_json::Value;

use crate::changes::disclosures::{self, Change};
use crate::issuer::{ISSUER, Keys, NOW, digest_of, encode, jwk};
use crate::random::Random;
use crate::tree::Tree;

/// A credential before it is signed.
pub(crate) struct Draft {
    pub(crate) header: Tree,
    pub(crate) payload: Tree,
    /// The presented disclosures, as base64url.
    pub(crate) disclosures: Vec<String>,
    /// The header and the payload of the KB-JWT, without its `sd_hash`.
    pub(crate) binding: Option<(Tree, Tree)>,
}

/// Makes disclosures while a payload is built.
pub(crate) struct DisclosureMaker<'a> {
    pub(crate) random: &'a mut Random,
    pub(crate) disclosures: Vec<String>,
    /// The number of disclosures still to be made before the one to change, and its change.
    planned_change: Option<(usize, Change)>,
}

/// Names of members that are not claims.
const NAMES: [&str; 12] =
    ["house", "floor", "street", "note", "पता", "ñ", "a b", "0", "7", "UID", "emoji 🙂", "constructor"];
/// Texts of several scripts, with characters that JSON escapes or that SD-JWTs use as separators.
const TEXTS: [&str; 12] = [
    "",
    "Asha Rao",
    "आशा राव",
    "ആശ",
    "🙂🙃",
    "a\"b\\c",
    "line\nbreak",
    "\u{0}",
    "~",
    "e\u{301}",
    "\u{feff}x",
    "\u{7f}\u{2028}",
];
const NUMBERS: [&str; 10] = ["0", "1", "-1", "560001", "1.5", "-0.25", "1e3", "2.0", "9007199254740991", "0.1"];

impl DisclosureMaker<'_> {
    /// Makes a disclosure of a value, which has no name in an array, and returns its digest.
    pub(crate) fn make_disclosure(&mut self, name: Option<&str>, value: Tree) -> String {
        let salt = if self.random.percent(3) { String::new() } else { self.random.salt(22) };
        let mut parts = vec![Tree::Text(salt)];
        parts.extend(name.map(Tree::from));
        parts.push(value);
        let text = match self.planned_change.take() {
            Some((0, change)) => disclosures::change_disclosure(change, parts, self),
            Some((before, change)) => {
                self.planned_change = Some((before - 1, change));
                self.write(parts)
            }
            None => self.write(parts),
        };
        let text = encode(text);
        let digest = digest_of(&text);
        self.disclosures.push(text);
        digest
    }

    /// Returns the JSON text of a disclosure, in one of several spellings.
    fn write(&mut self, parts: Vec<Tree>) -> Vec<u8> {
        let tree = Tree::List(parts);
        let text = match self.random.below(12) {
            0 => tree.to_spaced_text(),
            1 => tree.to_escaped_text(),
            _ => tree.to_string(),
        };
        text.into_bytes()
    }

    /// Returns a text, a number, a boolean or null.
    fn leaf(&mut self) -> Tree {
        match self.random.below(10) {
            0 => Tree::raw("true"),
            1 => Tree::raw("null"),
            2 | 3 => Tree::raw(self.random.pick(&NUMBERS)),
            _ => self.random.pick(&TEXTS).into(),
        }
    }

    /// Returns a value of at most `depth` levels, with nested disclosures.
    pub(crate) fn value(&mut self, depth: usize) -> Tree {
        match self.random.below(if depth == 0 { 1 } else { 4 }) {
            0 => self.leaf(),
            1 | 2 => self.object(depth - 1),
            _ => self.list(depth - 1),
        }
    }

    /// Returns an object whose members are plain or disclosed.
    fn object(&mut self, depth: usize) -> Tree {
        let mut names: Vec<&str> = NAMES.to_vec();
        self.random.shuffle(&mut names);
        names.truncate(self.random.below(5));
        let (mut object, mut digests) = (Tree::Object(Vec::new()), Vec::new());
        for name in names {
            let value = self.value(depth);
            if self.random.percent(50) {
                digests.push(self.make_disclosure(Some(name), value).into());
            } else {
                object.add(name, value);
            }
        }
        self.add_digests(object, digests)
    }

    /// Adds digests and decoys to an object.
    fn add_digests(&mut self, mut object: Tree, mut digests: Vec<Tree>) -> Tree {
        if self.random.percent(30) {
            digests.extend((0..self.random.below(4)).map(|_| Tree::Text(self.random.decoy())).collect::<Vec<_>>());
        }
        self.random.shuffle(&mut digests);
        if !digests.is_empty() || self.random.percent(5) {
            object.add("_sd", Tree::List(digests));
        }
        object
    }

    /// Returns an array whose elements are plain, disclosed or decoys.
    fn list(&mut self, depth: usize) -> Tree {
        let mut items = Vec::new();
        for _ in 0..self.random.below(5) {
            let digest = match self.random.below(5) {
                0 | 1 => {
                    let value = self.value(depth);
                    self.make_disclosure(None, value)
                }
                2 => self.random.decoy(),
                _ => {
                    items.push(self.value(depth));
                    continue;
                }
            };
            items.push(Tree::object([("...", digest.into())]));
        }
        Tree::List(items)
    }

    /// Returns the value of a claim as the authority writes it.
    fn claim(&mut self, claim: Claim, depth: usize) -> Tree {
        match claim {
            _ if self.random.percent(5) => self.leaf(),
            Claim::Dob => self.random.pick(&["28/02/1990", "1990-02-28", "01-12-2001", "1990", "31/02/1990"]).into(),
            Claim::Gender => self.random.pick(&["M", "Female", "t", "स्त्री"]).into(),
            Claim::AgeAbove18 | Claim::AgeAbove50 | Claim::AgeAbove60 | Claim::AgeAbove75 | Claim::NriStatus => {
                Tree::raw(self.random.pick(&["\"Yes\"", "\"No\"", "\"true\"", "false", "\"x\""]))
            }
            Claim::Photo if self.random.percent(4) => {
                let part = self.random.salt(64);
                part.repeat(self.random.below(600)).into()
            }
            _ => self.value(depth),
        }
    }

    /// Returns a value with this number of levels; about half of them are disclosed separately.
    pub(crate) fn deep_value(&mut self, levels: usize) -> Tree {
        (0..levels).fold("the end".into(), |value, _| match self.random.below(4) {
            0 => Tree::object([("a", value)]),
            1 => Tree::object([("_sd", Tree::List(vec![self.make_disclosure(Some("a"), value).into()]))]),
            2 => Tree::List(vec![value]),
            _ => Tree::List(vec![Tree::object([("...", self.make_disclosure(None, value).into())])]),
        })
    }

    /// Adds claims to a payload; returns the digests of those that are disclosed separately. `shape` is below 10.
    fn add_claims(&mut self, shape: usize, payload: &mut Tree) -> Vec<Tree> {
        let mut claims = Claim::ALL.to_vec();
        self.random.shuffle(&mut claims);
        // Flat like credentials of the authority, recursive, complete, deep, or mixed.
        let (count, depth) = match shape {
            0..=3 => (1 + self.random.below(8), 0),
            4 | 5 => (1 + self.random.below(6), 3),
            6 => (30, 1),
            7 => (1 + self.random.below(4), 5),
            _ => (1 + self.random.below(10), 2),
        };
        let mut digests = Vec::new();
        for claim in claims.into_iter().take(count) {
            let value = match shape {
                7 if self.random.percent(50) => {
                    let levels = self.random.below(15);
                    self.deep_value(levels)
                }
                _ => self.claim(claim, depth),
            };
            let name = credential_name(claim);
            let name = if self.random.percent(10) {
                format!("{}{}", name[..1].to_uppercase(), &name[1..])
            } else {
                name.to_owned()
            };
            if self.random.percent(85) {
                digests.push(self.make_disclosure(Some(&name), value).into());
            } else {
                payload.add(&name, value);
            }
        }
        for name in ["localVtc", "uid", "vid", "note"] {
            if self.random.percent(10) {
                let value = self.value(1);
                digests.push(self.make_disclosure(Some(name), value).into());
            }
        }
        if self.random.percent(1) {
            digests.extend(
                (0..180)
                    .map(|index| Tree::Text(self.make_disclosure(Some(&format!("extra{index}")), "x".into())))
                    .collect::<Vec<_>>(),
            );
        }
        digests
    }
}

impl Draft {
    /// Makes a valid draft, or a draft with one changed disclosure.
    pub(crate) fn make(random: &mut Random, keys: &Keys, change: Option<Change>) -> Self {
        let shape = random.below(10);
        let has_binding = random.percent(45);
        let planned_change = change.map(|change| (random.below(6), change));
        let mut maker = DisclosureMaker { random, disclosures: Vec::new(), planned_change };
        let header = header(maker.random);
        let mut payload = Tree::object([
            ("iss", ISSUER.into()),
            ("id", "3f0f6c0e-9a3e-4c55-8d2a-0b8c5e0e7f11".into()),
            ("iat", Tree::number(NOW - 5)),
            ("exp", Tree::number(NOW + 3_600)),
            ("status", "https://issuer.example/status/1".into()),
        ]);
        match maker.random.below(5) {
            0 => payload.add("_sd_alg", "SHA-256"),
            1 => {}
            _ => payload.add("_sd_alg", "sha-256"),
        }
        if has_binding || maker.random.percent(60) {
            payload.add("cnf", Tree::object([("jwk", jwk(&keys.holder))]));
        }
        let digests = maker.add_claims(shape, &mut payload);
        let payload = maker.add_digests(payload, digests);
        let mut disclosures = maker.disclosures;
        if change.is_some() {
            remove_unreferenced(&payload, &mut disclosures);
        }
        Self { header, payload, disclosures, binding: has_binding.then(binding) }
    }
}

/// Returns header and payload of a KB-JWT, without its `sd_hash`.
fn binding() -> (Tree, Tree) {
    let header = Tree::object([("alg", "ES256".into()), ("typ", "kb+jwt".into())]);
    let payload = Tree::object([
        ("nonce", crate::issuer::txn().to_string().into()),
        ("aud", crate::issuer::AUDIENCE.into()),
        ("iat", Tree::number(NOW)),
    ]);
    (header, payload)
}

/// Returns the header of a valid credential.
fn header(random: &mut Random) -> Tree {
    let typ = if random.percent(30) { "dc+sd-jwt" } else { "vc+sd-jwt" };
    Tree::object([("alg", "ES256".into()), ("typ", typ.into()), ("kid", crate::issuer::KID.into())])
}

/// Returns the JSON text in a disclosure without escapes, so that digests can be found in it.
pub(crate) fn content(disclosure: &str) -> String {
    let content = URL_SAFE_NO_PAD.decode(disclosure).unwrap_or_default();
    let content = String::from_utf8_lossy(&content).into_owned();
    serde_json::from_str::<Value>(&content).map_or(content, |value| value.to_string())
}

/// Removes disclosures whose digest stands nowhere, because the value that held it was replaced.
fn remove_unreferenced(payload: &Tree, disclosures: &mut Vec<String>) {
    loop {
        let texts: String = disclosures.iter().map(|text| content(text)).chain([payload.to_string()]).collect();
        let before = disclosures.len();
        disclosures.retain(|text| texts.contains(&digest_of(text)));
        if disclosures.len() == before {
            return;
        }
    }
}
