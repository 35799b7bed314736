//! Changes to one disclosure, made before its digest is computed, so that the digest matches.

use super::break_json;
use crate::issuer::digest_of;
use crate::shapes::Maker;
use crate::tree::Tree;

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
pub(crate) fn changed(change: Change, mut parts: Vec<Tree>, maker: &mut Maker<'_>) -> Vec<u8> {
    let named = parts.len() == 3;
    let random = &mut *maker.random;
    let known = maker.made.last().map_or_else(|| digest_of("nothing"), |text| digest_of(text));
    let rename = |parts: &mut Vec<Tree>, name: Tree| {
        if named {
            parts[1] = name;
        }
    };
    let mut value = None;
    match change {
        Change::Empty => parts.clear(),
        Change::OnePart => parts.truncate(1),
        Change::FourParts => parts.push("one more".into()),
        Change::AnObject => {
            return Tree::object([("0", parts.remove(0)), ("1", "name".into()), ("2", "value".into())])
                .to_string()
                .into_bytes();
        }
        Change::AText => return random.pick(&["\"abc\"", "\"ab\"", "12", "null", "true", "{}"]).as_bytes().to_vec(),
        Change::SaltIsANumber => parts[0] = Tree::number(5),
        Change::SaltIsNull => parts[0] = random.pick(&[Tree::raw("null"), Tree::raw("{}"), Tree::raw("[]")]),
        Change::NameIsANumber => rename(&mut parts, Tree::number(5)),
        Change::NameIsNull => rename(&mut parts, random.pick(&[Tree::raw("null"), Tree::raw("[]"), Tree::raw("true")])),
        Change::NameIsReserved => rename(&mut parts, random.pick(&["_sd", "..."]).into()),
        Change::NameIsHashAlgorithm => rename(&mut parts, "_sd_alg".into()),
        Change::NameIsMissing if named => drop(parts.remove(1)),
        Change::NameTooMany if !named => parts.insert(1, "name".into()),
        Change::NameIsMissing | Change::NameTooMany => {}
        Change::NameIsPresent => rename(&mut parts, random.pick(&["iss", "exp", "iat", "id", "cnf", "house"]).into()),
        Change::NameIsRepeated => {
            let digest = maker.hide(Some("house"), "twice".into());
            let again = maker.hide(Some("house"), "once more".into());
            value = Some(digests(vec![digest, again]));
        }
        Change::NameInTwoSpellings => {
            rename(&mut parts, random.pick(&["ResidentName", "residentName", "Dob", "LocalVtc"]).into());
        }
        Change::NameIsEmpty => value = Some(digests(vec![maker.hide(Some(""), "kept".into())])),
        Change::NameIsOfJavaScript => {
            let name = random.pick(&["__proto__", "constructor", "toString", "hasOwnProperty"]);
            value = Some(digests(vec![maker.hide(Some(name), Tree::object([("a", "b".into())]))]));
        }
        Change::ValueNamesHashAlgorithm => {
            value = Some(Tree::object([("_sd_alg", "sha-256".into()), ("a", "b".into())]));
        }
        Change::ValueHasMalformedDigests => {
            let lists = ["\"x\"", "\"\"", "[1]", "[null]", "[[]]", "{}", "null", "5", "[\"x\", {}]", "false"];
            value = Some(Tree::object([("_sd", Tree::raw(random.pick(&lists)))]));
        }
        Change::ValueHasMalformedArrayDigest => {
            let lists = [
                "[{\"...\":1}]",
                "[{\"...\":null}]",
                "[{\"...\":\"x\",\"y\":1}]",
                "{\"...\":\"x\"}",
                "[{\"...\":[]}]",
                "[[{\"...\":{}}]]",
            ];
            value = Some(Tree::raw(random.pick(&lists)));
        }
        Change::ValueRepeatsADigest => value = Some(digests(vec![known])),
        Change::ValueRepeatsADigestInAnArray => {
            let digest = if random.percent(50) { known } else { random.decoy() };
            let item = Tree::object([("...", digest.into())]);
            value = Some(Tree::List(vec![item.clone(), item]));
        }
        Change::ValueRefersToItself => {
            let inner = maker.hide(Some("a"), "b".into());
            let mut outer = digests(vec![inner.clone()]);
            outer.add("x", digests(vec![inner]));
            value = Some(outer);
        }
        Change::ValueRepeatsAName => {
            value =
                Some(Tree::Object(vec![("a".into(), "1".into()), ("b".into(), "2".into()), ("a".into(), "3".into())]));
        }
        Change::ValueIsNoNumber => {
            value = Some(Tree::raw(random.pick(&["NaN", "Infinity", "-Infinity", "01", "1.", "+1", ".5", "0x1"])));
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
            value = Some(Tree::raw(random.pick(&numbers)));
        }
        Change::ValueHasALoneSurrogate => {
            value = Some(Tree::raw(random.pick(&["\"\\ud800\"", "\"a\\udc00b\"", "{\"\\ud83d\":1}"])));
        }
        Change::ValueIsDeep => {
            let levels = 12 + random.below(7);
            value = Some(if random.percent(50) {
                maker.deep(levels)
            } else {
                Tree::Raw("[".repeat(levels) + &"]".repeat(levels))
            });
        }
        Change::ValueHasManyValues => {
            value = Some(Tree::Raw(format!("[{}0]", "0,".repeat(7_000 + random.below(3_000)))));
        }
        Change::ValueHasOddDigests => {
            let digest = random.pick(&["", "x", "constructor", "toString", "__proto__", "é"]);
            let item = Tree::object([("...", digest.into())]);
            value = Some(if random.percent(50) { Tree::List(vec![item]) } else { digests(vec![digest.to_owned()]) });
        }
        Change::ValueHasATime => {
            rename(&mut parts, random.pick(&["nbf", "nbf", "exp", "iat"]).into());
            value = Some(Tree::raw(random.pick(&["1", "1800000061", "1800000060", "1900000000", "\"x\"", "null"])));
        }
        Change::NotJson => {
            let mut text = Tree::List(parts).to_string().into_bytes();
            break_json(&mut text, random);
            return text;
        }
    }
    if let (Some(value), Some(last)) = (value, parts.last_mut()) {
        *last = value;
    }
    Tree::List(parts).to_string().into_bytes()
}

/// Returns an object with these digests.
fn digests(digests: Vec<String>) -> Tree {
    Tree::object([("_sd", Tree::List(digests.into_iter().map(Tree::from).collect()))])
}
