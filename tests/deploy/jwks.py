"""Prints the public half of a new P-256 key as a JWKS, as an issuer publishes it. With a path the private half is written there."""

import base64
import json
import pathlib
import subprocess
import sys

pem = subprocess.run(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout"], capture_output=True, check=True).stdout
der = subprocess.run(["openssl", "ec", "-pubout", "-outform", "DER"], input=pem, capture_output=True, check=True).stdout
if len(sys.argv) > 1:
    pathlib.Path(sys.argv[1]).write_bytes(pem)
# The key ends with the uncompressed point: 4, x, y.
x, y = (base64.urlsafe_b64encode(half).rstrip(b"=").decode() for half in (der[-64:-32], der[-32:]))
key = {"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": "issuer-1", "x": x, "y": y}
print(json.dumps({"keys": [key]}))
