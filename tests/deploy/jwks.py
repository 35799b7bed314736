"""Prints the public half of a new P-256 key as a JWKS, as an issuer publishes it."""

import base64
import json
import subprocess

pem = subprocess.run(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout"], capture_output=True, check=True).stdout
der = subprocess.run(["openssl", "ec", "-pubout", "-outform", "DER"], input=pem, capture_output=True, check=True).stdout
# The key ends with the uncompressed point: 4, x, y.
x, y = (base64.urlsafe_b64encode(half).rstrip(b"=").decode() for half in (der[-64:-32], der[-32:]))
key = {"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": "issuer-1", "x": x, "y": y}
print(json.dumps({"keys": [key]}))
