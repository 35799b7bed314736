"""Judges credentials with the independent library sd-jwt: a first line says how, each further line is a credential."""

import json
import sys

from jwcrypto.jwk import JWK
from sd_jwt.common import SDJWTCommon
from sd_jwt.verifier import SDJWTVerifier


def main():
    known = json.loads(sys.stdin.readline())
    key = JWK(**known["jwk"])

    def key_of(issuer, header):
        if issuer != known["issuer"] or header.get("kid") != known["jwk"]["kid"]:
            raise ValueError("unknown issuer or key")
        return key

    for line in sys.stdin:
        case = json.loads(line)
        expected = {"expected_aud": known["aud"], "expected_nonce": known["nonce"]} if case["binding"] else {}
        try:
            verifier = SDJWTVerifier(case["credential"], key_of, **expected)
            # The authority writes the name of the hash algorithm in upper case; the library knows one spelling at a time.
            if verifier._sd_jwt_payload.get("_sd_alg") == "SHA-256":
                verifier.HASH_ALG = {**SDJWTCommon.HASH_ALG, "name": "SHA-256"}
            answer = {"claims": verifier.get_verified_payload()}
        except Exception as error:
            answer = {"refused": f"{type(error).__name__}: {error}"[:200]}
        print(json.dumps(answer), flush=True)


main()
