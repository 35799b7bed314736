//! Facts about a credential: the rules that it breaks, and the properties that a library rejects or misreads.
//!
//! Each fact has a sentence and the rule behind it. [`super::reading`] determines the facts of a credential.

/// A third-party verifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Library {
    Python,
    Node,
}

/// A difference between a library and this service's verifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Difference {
    /// Only the library accepts.
    OnlyTheyAccept,
    /// Only this service accepts.
    OnlyWeAccept,
    /// Both accept, and read different claims.
    Claims,
}

/// The difference between verifiers that a fact explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Explains {
    /// The credential breaks a rule; a library that accepts it does not check the rule.
    Lenient,
    /// The credential breaks a rule that both libraries check, so a difference is unexpected.
    Nothing,
    /// The credential is valid, and this library refuses or misreads it.
    Mistaken(Library, Difference),
}

impl Explains {
    /// Returns true if a credential with this fact must be refused.
    pub(crate) const fn is_refused(self) -> bool {
        matches!(self, Self::Lenient | Self::Nothing)
    }

    /// Returns true if this explains such a difference to a library.
    fn covers(self, library: Library, difference: Difference) -> bool {
        match self {
            Self::Lenient => difference == Difference::OnlyTheyAccept,
            Self::Nothing => false,
            Self::Mistaken(mistaken, explained) => mistaken == library && explained == difference,
        }
    }
}

/// Declares the facts, each with the difference that it explains, its sentence, and the rule behind it.
macro_rules! facts {
    ($($variant:ident $explains:expr, $sentence:literal, $rule:literal;)+) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Fact { $($variant),+ }

        impl Fact {
            pub(crate) const ALL: &[Self] = &[$(Self::$variant),+];

            pub(crate) const fn explains(self) -> Explains {
                match self { $(Self::$variant => $explains),+ }
            }

            /// Returns the fact as a sentence.
            pub(crate) const fn sentence(self) -> &'static str {
                match self { $(Self::$variant => $sentence),+ }
            }

            /// Returns the rule behind the fact.
            pub(crate) const fn rule(self) -> &'static str {
                match self { $(Self::$variant => $rule),+ }
            }
        }
    };
}

use Difference::{Claims, OnlyWeAccept};
use Explains::{Lenient, Mistaken, Nothing};
use Library::{Node, Python};

facts! {
    // The text.
    NotAnSdJwt Lenient, "No `~`, no JWS before it, or an empty disclosure", "RFC 9901 section 4; profile 1";
    NotAJws Lenient, "A JWS has not three segments, or an empty one", "RFC 7515 section 7.1; profile 1";
    NotBase64url Lenient, "A segment has padding, another alphabet, a line break, or bits that nothing \
        encodes", "RFC 7515 section 2, RFC 4648 section 3.5; profile 1";
    TooLarge Lenient, "More than 4 MiB, 256 disclosures, a long header or signature", "profile 1";
    TooDeep Lenient, "Nested deeper than 16", "profile 1";
    TooManyValues Lenient, "More JSON values than a verifier should build for a stranger", "profile 1";
    NotUtf8 Lenient, "Bytes that are not UTF-8, or a byte order mark, in a JSON text", "RFC 8259 section 8.1";
    LoneSurrogate Lenient, "Half of a surrogate pair, which is no character", "RFC 8259 section 8.2, RFC 7493 section \
        2.1";
    NumberTooLarge Lenient, "A number that no double can hold", "RFC 8259 section 6, RFC 7493 section 2.2";
    NotANumber Lenient, "`NaN` or `Infinity`", "RFC 8259 section 6";
    NotJson Nothing, "No JSON, or more than one value", "RFC 8259 section 2";
    NotAnObject Lenient, "A header or a payload that is no JSON object", "RFC 7515 section 4, RFC 7519 section 7.2";
    RepeatedName Lenient, "A name twice in one object, so that two readers may differ", "RFC 7515 section 4, RFC 7519 \
        section 4, RFC 7493 section 2.3";
    // The header and the signature.
    Algorithm Lenient, "`alg` is not ES256, although the signature may be", "RFC 9901 section 7.1 step 2a; profile 2";
    Critical Lenient, "`crit` names what must be understood, or is malformed", "RFC 7515 section 4.1.11; profile 2";
    Type Lenient, "`typ` is not that of an SD-JWT credential", "RFC 9901 section 9.11; profile 2";
    KeyInToken Lenient, "The header brings or points at its own key", "RFC 8725 section 3.10; profile 2";
    KeyId Lenient, "`kid` is missing or not of the issuer", "RFC 9901 section 7.1 step 2c; profile 2";
    Signature Nothing, "The signature is not the issuer's", "RFC 9901 section 7.1 step 2b";
    Issuer Lenient, "The signed `iss` is not the issuer's", "RFC 9901 section 7.1 step 2c; profile 7";
    // Digests and disclosures.
    HashAlgorithm Lenient, "`_sd_alg` is no text, or is not SHA-256", "RFC 9901 section 7.1 step 2d; profile 3";
    HashAlgorithmMisplaced Lenient, "`_sd_alg` below the top level or in a disclosure", "RFC 9901 section 4.1.1; \
        profile 3";
    DisclosureMalformed Lenient, "A disclosure is not an array of two or three \
        elements", "RFC 9901 section 4.2; profile 4";
    DisclosureMisplaced Lenient, "A disclosure of a member stands for an element, or the \
        reverse", "RFC 9901 section 7.1 step 3c; profile 4";
    Salt Lenient, "A salt is no text", "RFC 9901 section 4.2; profile 4";
    NameNotAText Lenient, "A disclosed name is no text", "RFC 9901 section 4.2.1; profile 4";
    NameReserved Lenient, "A disclosed name is `_sd` or `...`", "RFC 9901 section 7.1 step 3c; profile 4";
    NameTaken Lenient, "A disclosed name is already present at its level", "RFC 9901 section 7.1 step 3c; profile 4";
    DigestsMalformed Lenient, "`_sd` is not an array of texts", "RFC 9901 section 4.2.4.1 for issuers; profile 5 for \
        this verifier";
    ArrayDigestMalformed Lenient, "`...` is not alone, is no text, or is not in an array", "RFC 9901 section 4.2.4.2 \
        for issuers; profile 5 for this verifier";
    DigestTwice Lenient, "A digest twice, decoys too", "RFC 9901 section 7.1 step 4; profile 6";
    DisclosureTwice Lenient, "A disclosure twice", "RFC 9901 section 7.1 step 4; profile 6";
    Unreferenced Lenient, "A disclosure that no digest references", "RFC 9901 section 7.1 step 5; profile 6";
    TwoSpellings Lenient, "A claim in two spellings, so that two readers may differ", "profile 6";
    // Times.
    ExpiryMissing Lenient, "No `exp`", "RFC 9901 section 7.1 step 6; profile 7";
    TimeNotANumber Lenient, "`exp`, `nbf` or `iat` is no number", "RFC 7519 section 2; profile 7";
    Expired Lenient, "`exp` is not after now, without leeway", "RFC 7519 section 4.1.4; profile 7";
    NotYetValid Lenient, "`nbf` or `iat` is more than 60 s ahead in the processed \
        payload", "RFC 9901 section 7.1 step 6; profile 7";
    // Key binding.
    BindingMissing Nothing, "A KB-JWT is required and there is none", "RFC 9901 section 7.3 step 2";
    BindingUnexpected Lenient, "A KB-JWT where the setting says that none is accepted", "profile 8";
    BindingMalformed Lenient, "The KB-JWT is no JWS of small JSON objects", "RFC 7515 section 2; profile 8";
    BindingAlgorithm Lenient, "`alg` of the KB-JWT is not ES256, although the signature may \
        be", "RFC 9901 section 7.3 step 5b; profile 8";
    BindingType Lenient, "`typ` of the KB-JWT is not `kb+jwt`", "RFC 9901 section 7.3 step 5d";
    BindingCritical Lenient, "`crit` in the KB-JWT", "RFC 7515 section 4.1.11; profile 8";
    HolderKey Nothing, "`cnf.jwk` is missing or no P-256 key", "RFC 9901 section 7.3 step 5a; profile 8";
    BindingSignature Nothing, "The KB-JWT is not signed by the holder", "RFC 9901 section 7.3 step 5c";
    BindingNonce Nothing, "`nonce` is not the transaction", "RFC 9901 section 7.3 step 5f; profile 8";
    BindingAudience Lenient, "`aud` of the KB-JWT is not that of the intent", "RFC 9901 section 7.3 step 5f; profile 8";
    BindingTime Lenient, "`iat` of the KB-JWT is no number, or more than 5 minutes \
        away", "RFC 9901 section 7.3 step 5e; profile 8";
    BindingExpired Lenient, "`exp` of the KB-JWT is past, its `nbf` ahead by 5 minutes, or one is no number",
    "RFC 9901 section 7.3 step 5h, RFC 7519 sections 4.1.4 and 4.1.5; profile 8";
    BindingHash Lenient, "`sd_hash` is not of this presentation", "RFC 9901 section 7.3 step 5g; profile 8";
    // Valid credentials that a library refuses or misreads.
    PayloadEncoding Mistaken(Python, OnlyWeAccept), "The header has `b64` without `crit`: to be ignored by who does \
        not know it, and `sd-jwt` knows it", "RFC 7515 section 4, RFC 7797 section 6";
    HolderKeyUse Mistaken(Python, OnlyWeAccept), "`cnf.jwk` says by `use` or `key_ops` that it verifies nothing: the \
        issuer's intent, which `sd-jwt` \
        enforces", "RFC 7517 sections 4.2 and 4.3 leave it to the reader; profile 8 asks for a P-256 key";
    EmptyName Mistaken(Node, Claims), "A disclosed name is the empty text: a name like any other, which \
        `@sd-jwt/core` leaves out", "RFC 8259 section 4";
    PrototypeName Mistaken(Node, Claims), "A name is `__proto__`: a name like any other, which JavaScript takes for \
        something else", "RFC 8259 section 4";
    OddArrayDigest Mistaken(Node, Claims), "The digest of an array element is empty or the name of a JavaScript \
        built-in: a decoy like any other, which `@sd-jwt/core` shows", "RFC 9901 section 7.1 step 3d";
    LargeInteger Mistaken(Node, Claims), "An integer beyond 2^53: exact here, rounded by \
        JavaScript", "RFC 8259 section 6";
}

impl Fact {
    /// Returns the first fact that explains a difference.
    pub(crate) fn first_explaining(facts: &[Self], library: Library, difference: Difference) -> Option<Self> {
        facts.iter().copied().find(|fact| fact.explains().covers(library, difference))
    }
}
