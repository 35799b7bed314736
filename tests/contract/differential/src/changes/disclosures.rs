//! Changes to one disclosure, made before its digest is computed, so that the digest matches.

use super::break_json;
use crate::issuer::digest_of;
use crate::random::Random;
use crate::shapes::DisclosureMaker;
use crate::tree::Tree;

/// A change of one disclosure: an array of a salt, a name unless it stands for an array element, and a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    Empty,
    OnePart,
    FourParts,
    AnObject,
    AText,
    SaltIsANumber,
    SaltIsNull,
    NameIsANumber,
    NameIsNull,
    NameIsReserved,
    NameIsHashAlgorithm,
    NameIsMissing,
    NameTooMany,
    NameIsPresent,
    NameIsRepeated,
    NameInTwoSpellings,
    NameIsEmpty,
    NameIsOfJavaScript,
    ValueNamesHashAlgorithm,
    ValueHasMalformedDigests,
    ValueHasMalformedArrayDigest,
    ValueRepeatsADigest,
    ValueRepeatsADigestInAnArray,
    ValueRefersToItself,
    ValueRepeatsAName,
    ValueIsNoNumber,
    ValueIsALargeNumber,
    ValueHasALoneSurrogate,
    ValueIsDeep,
    ValueHasManyValues,
    ValueHasOddDigests,
    ValueHasATime,
    NotJson,
}

/// Every change.
pub(crate) const ALL: [Change; 33] = [
    Change::Empty,
    Change::OnePart,
    Change::FourParts,
    Change::AnObject,
    Change::AText,
    Change::SaltIsANumber,
    Change::SaltIsNull,
    Change::NameIsANumber,
    Change::NameIsNull,
    Change::NameIsReserved,
    Change::NameIsHashAlgorithm,
    Change::NameIsMissing,
    Change::NameTooMany,
    Change::NameIsPresent,
    Change::NameIsRepeated,
    Change::NameInTwoSpellings,
    Change::NameIsEmpty,
    Change::NameIsOfJavaScript,
    Change::ValueNamesHashAlgorithm,
    Change::ValueHasMalformedDigests,
    Change::ValueHasMalformedArrayDigest,
    Change::ValueRepeatsADigest,
    Change::ValueRepeatsADigestInAnArray,
    Change::ValueRefersToItself,
    Change::ValueRepeatsAName,
    Change::ValueIsNoNumber,
    Change::ValueIsALargeNumber,
    Change::ValueHasALoneSurrogate,
    Change::ValueIsDeep,
    Change::ValueHasManyValues,
    Change::ValueHasOddDigests,
    Change::ValueHasATime,
    Change::NotJson,
];

/// Returns the text of a disclosure with this change.
pub(crate) fn change_disclosure(change: Change, mut parts: Vec<Tree>, maker: &mut DisclosureMaker<'_>) -> Vec<u8> {
    match change {
        Change::AnObject => {
            let object = Tree::object([("0", parts.remove(0)), ("1", "name".into()), ("2", "value".into())]);
            return object.to_string().into_bytes();
        }
        Change::AText => {
            return maker.random.pick(&["\"abc\"", "\"ab\"", "12", "null", "true", "{}"]).as_bytes().to_vec();
        }
        Change::NotJson => {
            let mut text = Tree::List(parts).to_string().into_bytes();
            break_json(&mut text, maker.random);
            return text;
        }
        _ => {}
    }
    change_parts(change, &mut parts, maker.random);
    if let (Some(name), 3) = (changed_name(change, maker.random), parts.len()) {
        parts[1] = name;
    }
    let value = digest_value(change, maker).or_else(|| plain_value(change, maker));
    if let (Some(value), Some(last)) = (value, parts.last_mut()) {
        *last = value;
    }
    Tree::List(parts).to_string().into_bytes()
}

/// Changes the number of parts, or the salt.
fn change_parts(change: Change, parts: &mut Vec<Tree>, random: &mut Random) {
    match change {
        Change::Empty => parts.clear(),
        Change::OnePart => parts.truncate(1),
        Change::FourParts => parts.push("one more".into()),
        Change::NameIsMissing if parts.len() == 3 => drop(parts.remove(1)),
        Change::NameTooMany if parts.len() == 2 => parts.insert(1, "name".into()),
        Change::SaltIsANumber => parts[0] = Tree::number(5),
        Change::SaltIsNull => parts[0] = random.pick(&[Tree::raw("null"), Tree::raw("{}"), Tree::raw("[]")]),
        _ => {}
    }
}

/// Returns the name for a change of the name of a disclosed member.
fn changed_name(change: Change, random: &mut Random) -> Option<Tree> {
    Some(match change {
        Change::NameIsANumber => Tree::number(5),
        Change::NameIsNull => random.pick(&[Tree::raw("null"), Tree::raw("[]"), Tree::raw("true")]),
        Change::NameIsReserved => random.pick(&["_sd", "..."]).into(),
        Change::NameIsHashAlgorithm => "_sd_alg".into(),
        Change::NameIsPresent => random.pick(&["iss", "exp", "iat", "id", "cnf", "house"]).into(),
        Change::NameInTwoSpellings => random.pick(&["ResidentName", "residentName", "Dob", "LocalVtc"]).into(),
        Change::ValueHasATime => random.pick(&["nbf", "nbf", "exp", "iat"]).into(),
        _ => return None,
    })
}

/// Returns the claim value that carries out a change to nested disclosures, digests or the hash algorithm; `None` for
/// other changes.
fn digest_value(change: Change, maker: &mut DisclosureMaker<'_>) -> Option<Tree> {
    let known_digest = maker.disclosures.last().map_or_else(|| digest_of("nothing"), |text| digest_of(text));
    Some(match change {
        Change::NameIsRepeated => {
            let digest = maker.make_disclosure(Some("house"), "twice".into());
            let again = maker.make_disclosure(Some("house"), "once more".into());
            digests(vec![digest, again])
        }
        Change::NameIsEmpty => digests(vec![maker.make_disclosure(Some(""), "kept".into())]),
        Change::NameIsOfJavaScript => {
            let name = maker.random.pick(&["__proto__", "constructor", "toString", "hasOwnProperty"]);
            digests(vec![maker.make_disclosure(Some(name), Tree::object([("a", "b".into())]))])
        }
        Change::ValueNamesHashAlgorithm => Tree::object([("_sd_alg", "sha-256".into()), ("a", "b".into())]),
        Change::ValueHasMalformedDigests => {
            let malformed = ["\"x\"", "\"\"", "[1]", "[null]", "[[]]", "{}", "null", "5", "[\"x\", {}]", "false"];
            Tree::object([("_sd", Tree::raw(maker.random.pick(&malformed)))])
        }
        Change::ValueHasMalformedArrayDigest => {
            let malformed = [
                "[{\"...\":1}]",
                "[{\"...\":null}]",
                "[{\"...\":\"x\",\"y\":1}]",
                "{\"...\":\"x\"}",
                "[{\"...\":[]}]",
                "[[{\"...\":{}}]]",
            ];
            Tree::raw(maker.random.pick(&malformed))
        }
        Change::ValueRepeatsADigest => digests(vec![known_digest]),
        Change::ValueRepeatsADigestInAnArray => {
            let digest = if maker.random.percent(50) { known_digest } else { maker.random.decoy() };
            let item = Tree::object([("...", digest.into())]);
            Tree::List(vec![item.clone(), item])
        }
        Change::ValueRefersToItself => {
            let inner = maker.make_disclosure(Some("a"), "b".into());
            let mut outer = digests(vec![inner.clone()]);
            outer.add("x", digests(vec![inner]));
            outer
        }
        Change::ValueHasOddDigests => {
            let digest = maker.random.pick(&["", "x", "constructor", "toString", "__proto__", "é"]);
            let item = Tree::object([("...", digest.into())]);
            if maker.random.percent(50) { Tree::List(vec![item]) } else { digests(vec![digest.to_owned()]) }
        }
        _ => return None,
    })
}

/// Returns the claim value that carries out a change of a plain value; `None` for changes of disclosures and digests.
fn plain_value(change: Change, maker: &mut DisclosureMaker<'_>) -> Option<Tree> {
    let random = &mut *maker.random;
    Some(match change {
        Change::ValueRepeatsAName => {
            Tree::Object(vec![("a".into(), "1".into()), ("b".into(), "2".into()), ("a".into(), "3".into())])
        }
        Change::ValueIsNoNumber => {
            Tree::raw(random.pick(&["NaN", "Infinity", "-Infinity", "01", "1.", "+1", ".5", "0x1"]))
        }
        Change::ValueIsALargeNumber => {
            let numbers = [
                "1e400",
                "-1e999",
                "9007199254740993",
                "18446744073709551615",
                "18446744073709551616",
                "1e-400",
                "-0",
                "123456789012345678901234567890",
            ];
            Tree::raw(random.pick(&numbers))
        }
        Change::ValueHasALoneSurrogate => Tree::raw(random.pick(&["\"\\ud800\"", "\"a\\udc00b\"", "{\"\\ud83d\":1}"])),
        Change::ValueIsDeep => {
            let levels = 12 + random.below(7);
            if random.percent(50) {
                maker.deep_value(levels)
            } else {
                Tree::Raw("[".repeat(levels) + &"]".repeat(levels))
            }
        }
        Change::ValueHasManyValues => Tree::Raw(format!("[{}0]", "0,".repeat(7_000 + random.below(3_000)))),
        Change::ValueHasATime => {
            Tree::raw(random.pick(&["1", "1800000061", "1800000060", "1900000000", "\"x\"", "null"]))
        }
        _ => return None,
    })
}

/// Returns an object whose member `_sd` lists these digests.
fn digests(digests: Vec<String>) -> Tree {
    Tree::object([("_sd", Tree::List(digests.into_iter().map(Tree::from).collect()))])
}
