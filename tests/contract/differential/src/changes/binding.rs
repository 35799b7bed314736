//! Changes of the KB-JWT, by which a holder binds a credential to a transaction, made before it is signed.

use aws_lc_rs::signature::EcdsaKeyPair;

use super::signed::ParseRaw as _;
use crate::issuer::{AUDIENCE, Keys, NOW, digest_of, txn};
use crate::random::Random;
use crate::tree::Tree;

/// Changes header, payload or signer; returns a description.
pub(crate) fn change_binding<'a>(
    header: &mut Tree,
    payload: &mut Tree,
    signer: &mut &'a EcdsaKeyPair,
    keys: &'a Keys,
    random: &mut Random,
) -> String {
    let chosen = random.below(14);
    // A value of a type that is not expected.
    let wrong_type = random.pick(&["null", "5", "true", "[]", "{}", "\"\""]);
    match chosen {
        0 => header.set("alg", random.pick(&["none", "HS256", "ES384", "es256", "EdDSA", ""])),
        1 => header.set("typ", random.pick(&["JWT", "KB+JWT", "kb-jwt", "vc+sd-jwt", "application/kb+jwt"])),
        2 => header.remove(random.pick(&["alg", "typ"])),
        3 => header.set(random.pick(&["alg", "typ"]), wrong_type.parse_raw()),
        4 => header.set("crit", random.pick(&["[]", "[\"exp\"]", "[\"b64\"]", "[\"alg\"]", "null"]).parse_raw()),
        5 => *signer = random.pick(&[&keys.stranger, &keys.issuer]),
        6 => {
            let nonce = txn().to_string();
            let others = [
                nonce.to_uppercase(),
                nonce.replace('-', ""),
                format!("{nonce} "),
                nonce.replace('3', "4"),
                String::new(),
            ];
            payload.set("nonce", random.pick(&others));
        }
        7 => payload.set(
            "aud",
            random.pick(&["https://other.example", "https://verify.example/", "", "https://VERIFY.example"]),
        ),
        8 => payload.set("aud", Tree::List(vec![AUDIENCE.into()])),
        9 => {
            let offset: f64 = random
                .pick(&["299", "300", "301", "-299", "-300", "-301", "300.5", "-300.5", "0.5", "3600", "-3600"])
                .parse()
                .expect("a number");
            payload.set("iat", Tree::Raw((NOW as f64 + offset).to_string()));
        }
        10 => payload.set(
            "iat",
            random.pick(&["\"1800000000\"", "0", "-1", "1.8e9", "1e300", "null", "[1800000000]", "true"]).parse_raw(),
        ),
        11 => {
            let others = [digest_of("x"), String::new(), format!("{}=", digest_of("x"))];
            payload.set("sd_hash", random.pick(&others));
        }
        12 => {
            let name = random.pick(&["nonce", "aud", "iat", "sd_hash"]);
            if random.percent(50) { payload.remove(name) } else { payload.set(name, wrong_type.parse_raw()) }
        }
        _ => match random.below(6) {
            0 => payload.add("nonce", txn().to_string()),
            1 => payload.add("extra", Tree::raw("[1, {\"a\": 2}]")),
            2 => payload.add("exp", random.pick(&["1", "1799999999", "1800000000", "1800000001", "\"x\""]).parse_raw()),
            4 => payload.add("nbf", random.pick(&["1", "1800000300", "1800000301", "null"]).parse_raw()),
            3 => header.set("jwk", crate::issuer::jwk(&keys.holder)),
            _ => payload.add("many", Tree::Raw(format!("[{}0]", "0,".repeat(50 + random.below(20))))),
        },
    }
    format!("change {chosen}")
}
