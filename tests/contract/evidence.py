"""Checks an evidence file with the independent libraries jwcrypto and sd-jwt: see README.md."""

import json
import sys

from jwcrypto.common import base64url_decode
from jwcrypto.jwk import JWK
from jwcrypto.jws import JWS
from sd_jwt.common import SDJWTCommon
from sd_jwt.verifier import SDJWTVerifier


def main():
    # The authority writes the name of the hash algorithm in upper case.
    SDJWTCommon.HASH_ALG = {**SDJWTCommon.HASH_ALG, "name": "SHA-256"}
    text = sys.stdin.read()
    header = json.loads(base64url_decode(json.loads(text)["protected"]))
    seal = JWS()
    seal.deserialize(text)
    seal.verify(JWK(**header["jwk"]), alg="RS256")
    evidence = json.loads(seal.payload)
    key = JWK(**evidence["issuer_key"])
    bound = evidence["credential"].rsplit("~", 1)[1] != ""
    expected = (evidence["audience"], evidence["txn_id"]) if bound else (None, None)
    claims = SDJWTVerifier(evidence["credential"], lambda issuer, _: key, *expected).get_verified_payload()
    status = None
    if evidence["status"]:
        token = JWS()
        token.deserialize(evidence["status"]["token"])
        token.verify(JWK(**evidence["status"]["key"]), alg="ES256")
        status = json.loads(token.payload)
    json.dump({"claims": claims, "status": status, "bound": bound}, sys.stdout)


main()
