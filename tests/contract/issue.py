"""Issues a credential with the independent library sd-jwt: see README.md for request and answer."""

import json
import sys
import time

import sd_jwt.holder
from jwcrypto.jwk import JWK
from sd_jwt.common import SDJWTCommon, SDObj
from sd_jwt.holder import SDJWTHolder
from sd_jwt.issuer import SDJWTIssuer


def main():
    request = json.load(sys.stdin)
    now = int(time.time())
    given = request.get("private_jwk")
    kid = request.get("kid") or (given or {}).get("kid") or "issuer-key-1"
    key = JWK(**{**given, "kid": kid}) if given else JWK.generate(kty="EC", crv="P-256", kid=kid)
    holder = JWK.generate(kty="EC", crv="P-256")

    # The authority writes the name of the hash algorithm in upper case.
    SDJWTCommon.HASH_ALG = {**SDJWTCommon.HASH_ALG, "name": request.get("sd_alg", "SHA-256")}
    plain = {"iss": request["issuer"], "iat": request.get("iat", now), "exp": request.get("exp", now + 3600)}
    payload = {**plain, **request.get("plain", {})}
    payload.update({SDObj(name): value for name, value in request["claims"].items()})
    issuer = SDJWTIssuer(
        payload,
        key,
        holder,
        add_decoy_claims=request.get("decoys", True),
        extra_header_parameters={"typ": request.get("typ", "vc+sd-jwt"), "kid": kid},
    )

    disclosed = {name: True for name in request.get("disclose", list(request["claims"]))}
    bound = {}
    if request.get("with_kb"):
        sd_jwt.holder.time = lambda: request.get("kb_iat", now)
        bound = {"nonce": request["nonce"], "aud": request["aud"], "holder_key": holder}
    presenter = SDJWTHolder(issuer.sd_jwt_issuance)
    presenter.create_presentation(disclosed, **bound)

    answer = {
        "credential": presenter.sd_jwt_presentation,
        "jwks": {"keys": [key.export_public(as_dict=True)]},
        "private_jwk": key.export_private(as_dict=True),
    }
    json.dump(answer, sys.stdout)


main()
