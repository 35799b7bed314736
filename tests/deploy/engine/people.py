"""People outside: the identity app, which signs credentials with the issuer's key, and the client's receiver of webhooks."""

import base64
import collections
import hashlib
import http.client
import http.server
import json
import secrets
import ssl
import threading
import time
import uuid
from urllib.parse import urlsplit

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils

ISSUER = "https://issuer.example"
# As kid and algorithm in jwks.py.
HEADER = {"alg": "ES256", "typ": "vc+sd-jwt", "kid": "issuer-1"}


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(part):
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


class IdentityApp:
    def __init__(self, key):
        self.key = serialization.load_pem_private_key(key.read_bytes(), None)

    def credential(self, claims):
        """Issues a new credential of these claims, without key binding."""
        made = [encode(json.dumps([secrets.token_hex(8), name, value]).encode()) for name, value in claims.items()]
        digests = [encode(hashlib.sha256(one.encode()).digest()) for one in made]
        now = int(time.time())
        payload = {"iss": ISSUER, "id": str(uuid.uuid4()), "iat": now, "exp": now + 3_600, "_sd_alg": "SHA-256", "_sd": digests}
        signed = ".".join(encode(json.dumps(part).encode()) for part in (HEADER, payload))
        r, s = utils.decode_dss_signature(self.key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        return "~".join([f"{signed}.{encode(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}", *made, ""])

    def answer(self, intent, claims, failed, attempts=8):
        """Posts a credential to the intent's callback address, again as docs/guides/app.md says; returns the status."""
        intent = decode(intent.split(".")[1])
        body = json.dumps({"txn": intent["txn"], "response": self.credential(claims)})
        for attempt in range(attempts):
            status, headers, _ = ask("POST", intent["cb"], body)
            if status not in (0, 502, 503, 504):
                return status
            failed("callback", status)
            time.sleep(int(headers.get("Retry-After", 1)))
        return status


def ask(method, url, body=None, headers=None, timeout=30):
    """Sends a request on a connection of its own; returns status (0: no answer), headers and body. Redirects are not followed."""
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname, parts.port, timeout=timeout)
    given = {} if body is None else {"Content-Type": "application/json"}
    try:
        connection.request(method, parts.path + (f"?{parts.query}" if parts.query else ""), body, given | (headers or {}))
        response = connection.getresponse()
        return response.status, response.headers, response.read().decode()
    except (OSError, http.client.HTTPException) as error:
        return 0, {}, str(error)
    finally:
        connection.close()


class Receiver:
    """Counts webhooks by transaction. It listens on every address of the engine's machine."""

    def __init__(self, certificate=None):
        self.arrived, self.lock = collections.Counter(), threading.Lock()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with receiver.lock:
                    receiver.arrived[body["data"]["txn_id"]] += 1
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("0.0.0.0", 0), Handler)
        if certificate:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
