//! Why a credential is refused. The reasons name rules and never the contents of the credential.

/// A reason for each rule of the protocol's section 6, with the number of the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{}", self.sentence())]
#[non_exhaustive]
pub enum CredentialRefusal {
    /// 1: over 4 MiB.
    TooLarge,
    /// 1: not `JWS~…~`, or an empty disclosure.
    NotAnSdJwt,
    /// 1: a JWS does not have three segments.
    SegmentCount,
    /// 1: a segment of a JWS is empty.
    EmptySegment,
    /// 1: padding, another alphabet or stray bits.
    NotBase64url,
    /// 1: more than 256 disclosures.
    TooManyDisclosures,
    /// 1: nested deeper than 16.
    TooDeep,
    /// 1: too many JSON values.
    TooManyValues,
    /// 1: header or payload is not a JSON object.
    NotJson,
    /// 1: a name occurs twice in one JSON object.
    RepeatedName,
    /// 2: `alg` is not ES256.
    AlgorithmNotAllowed,
    /// 2: `crit` is present.
    CriticalHeader,
    /// 2: `typ` is not of an SD-JWT credential.
    TypeNotAllowed,
    /// 2: the header contains or references a key.
    KeyInToken,
    /// 2: `kid` is missing or not a string.
    KeyIdMissing,
    /// 2: the issuer has no key with this `kid`.
    KeyIdUnknown,
    /// 2: the signature is not the issuer's.
    SignatureInvalid,
    /// 3: `_sd_alg` is not SHA-256.
    HashAlgorithmNotAllowed,
    /// 3: `_sd_alg` below the top level or in a disclosure.
    HashAlgorithmMisplaced,
    /// 4: a disclosure is not an array of two or three elements.
    DisclosureMalformed,
    /// 4: a disclosure of an array element stands for a member of an object, or the reverse.
    DisclosureMisplaced,
    /// 4: a salt is not a string.
    SaltNotAString,
    /// 4: a disclosed name is not a string.
    NameNotAString,
    /// 4: a disclosed name is `_sd` or `...`.
    NameReserved,
    /// 4: a disclosed name is already present.
    NameTaken,
    /// 5: `_sd` is not an array of strings.
    DigestsMalformed,
    /// 5: `...` with another member, not as an array element, or not a string.
    ArrayDigestMalformed,
    /// 6: a digest occurs twice.
    DigestRepeated,
    /// 6: a disclosure occurs twice.
    DisclosureRepeated,
    /// 6: no digest references a disclosure.
    DisclosureUnreferenced,
    /// 6: a claim occurs in two spellings.
    ClaimRepeated,
    /// 7: `iss` is missing or not a trusted issuer.
    IssuerNotTrusted,
    /// 7: there is no `exp`.
    ExpiryMissing,
    /// 7: `exp`, `nbf` or `iat` is not a number.
    TimeNotANumber,
    /// 7: `exp` is past.
    Expired,
    /// 7: `nbf` is more than 60 s in the future.
    NotYetValid,
    /// 7: `iat` is more than 60 s in the future.
    IssuedInFuture,
    /// 8: a key binding is required and there is none.
    KeyBindingMissing,
    /// 8: there is a key binding where none is accepted.
    KeyBindingUnexpected,
    /// 8: the KB-JWT is not a JWS of JSON objects.
    KeyBindingMalformed,
    /// 8: its `alg` is not ES256.
    KeyBindingAlgorithm,
    /// 8: its `typ` is not `kb+jwt`.
    KeyBindingType,
    /// 8: it has a `crit` header.
    KeyBindingCritical,
    /// 8: the credential names no holder key.
    HolderKeyMissing,
    /// 8: the holder key is not a P-256 key.
    HolderKeyUnusable,
    /// 8: its signature is not the holder's.
    KeyBindingSignature,
    /// 8: its `nonce` is not the transaction.
    KeyBindingNonce,
    /// 8: its `aud` is not the intent's.
    KeyBindingAudience,
    /// 8: its `iat` is missing or more than 5 minutes away.
    KeyBindingTime,
    /// 8: its `sd_hash` is not of this credential.
    KeyBindingHash,
}

impl CredentialRefusal {
    /// A stable code for logs and metrics.
    #[must_use]
    pub const fn code(self) -> &'static str {
        self.row().0
    }

    const fn sentence(self) -> &'static str {
        self.row().1
    }

    const fn row(self) -> (&'static str, &'static str) {
        match self {
            Self::TooLarge => ("too_large", "the credential is too large"),
            Self::NotAnSdJwt => ("not_an_sd_jwt", "the credential is not a JWS followed by disclosures and a tilde"),
            Self::SegmentCount => ("segment_count", "a JWS must have three segments"),
            Self::EmptySegment => ("empty_segment", "a segment of the credential is empty"),
            Self::NotBase64url => ("not_base64url", "a segment is not unpadded base64url"),
            Self::TooManyDisclosures => ("too_many_disclosures", "the credential has too many disclosures"),
            Self::TooDeep => ("too_deep", "the credential is nested too deep"),
            Self::TooManyValues => ("too_many_values", "the credential has too many values"),
            Self::NotJson => ("not_json", "header or payload is not a JSON object"),
            Self::RepeatedName => ("repeated_name", "a name occurs twice in one object"),
            Self::AlgorithmNotAllowed => ("algorithm_not_allowed", "the credential must be signed with ES256"),
            Self::CriticalHeader => ("critical_header", "critical header parameters are not understood"),
            Self::TypeNotAllowed => ("type_not_allowed", "the header's typ is not that of an SD-JWT credential"),
            Self::KeyInToken => ("key_in_token", "a credential must not bring its own key"),
            Self::KeyIdMissing => ("key_id_missing", "the header names no key"),
            Self::KeyIdUnknown => ("key_id_unknown", "the issuer has no key of this id"),
            Self::SignatureInvalid => ("signature_invalid", "the issuer's signature is wrong"),
            Self::HashAlgorithmNotAllowed => ("hash_algorithm_not_allowed", "the hash algorithm must be SHA-256"),
            Self::HashAlgorithmMisplaced => ("hash_algorithm_misplaced", "the hash algorithm may be named at the top level only"),
            Self::DisclosureMalformed => ("disclosure_malformed", "a disclosure is not an array of two or three elements"),
            Self::DisclosureMisplaced => ("disclosure_misplaced", "a disclosure does not fit the place of its digest"),
            Self::SaltNotAString => ("salt_not_a_string", "a disclosure's salt is not a string"),
            Self::NameNotAString => ("name_not_a_string", "a disclosed name is not a string"),
            Self::NameReserved => ("name_reserved", "a disclosed name is reserved"),
            Self::NameTaken => ("name_taken", "a disclosed name is already present"),
            Self::DigestsMalformed => ("digests_malformed", "digests must be an array of strings"),
            Self::ArrayDigestMalformed => ("array_digest_malformed", "an array element's digest must be alone and a string"),
            Self::DigestRepeated => ("digest_repeated", "a digest occurs twice"),
            Self::DisclosureRepeated => ("disclosure_repeated", "a disclosure occurs twice"),
            Self::DisclosureUnreferenced => ("disclosure_unreferenced", "a disclosure has no digest in the credential"),
            Self::ClaimRepeated => ("claim_repeated", "a claim occurs twice, in two spellings"),
            Self::IssuerNotTrusted => ("issuer_not_trusted", "the issuer is not trusted"),
            Self::ExpiryMissing => ("expiry_missing", "the credential has no expiry"),
            Self::TimeNotANumber => ("time_not_a_number", "a time of the credential is not a number"),
            Self::Expired => ("expired", "the credential has expired"),
            Self::NotYetValid => ("not_yet_valid", "the credential is not valid yet"),
            Self::IssuedInFuture => ("issued_in_future", "the credential was issued in the future"),
            Self::KeyBindingMissing => ("key_binding_missing", "a key binding is required"),
            Self::KeyBindingUnexpected => ("key_binding_unexpected", "a key binding is not accepted"),
            Self::KeyBindingMalformed => ("key_binding_malformed", "the key binding is not a JWS of JSON objects"),
            Self::KeyBindingAlgorithm => ("key_binding_algorithm", "the key binding must be signed with ES256"),
            Self::KeyBindingType => ("key_binding_type", "the key binding's typ must be kb+jwt"),
            Self::KeyBindingCritical => ("key_binding_critical", "critical header parameters of the key binding are not understood"),
            Self::HolderKeyMissing => ("holder_key_missing", "the credential names no holder key"),
            Self::HolderKeyUnusable => ("holder_key_unusable", "the holder key is not a P-256 key"),
            Self::KeyBindingSignature => ("key_binding_signature", "the holder's signature is wrong"),
            Self::KeyBindingNonce => ("key_binding_nonce", "the key binding was made for another transaction"),
            Self::KeyBindingAudience => ("key_binding_audience", "the key binding was made for another audience"),
            Self::KeyBindingTime => ("key_binding_time", "the key binding was not made now"),
            Self::KeyBindingHash => ("key_binding_hash", "the key binding was made for another credential"),
        }
    }
}
