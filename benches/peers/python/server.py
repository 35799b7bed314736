"""A minimal server with common libraries for the work of a verification. It survives no crash: see ../README.md. PEER_PROCESSES processes
share one port."""

import asyncio
import base64
import hashlib
import hmac
import json
import os
import re
import secrets
import sys
import threading
import time
import uuid
from contextlib import asynccontextmanager
from datetime import datetime, timezone

import aiohttp
import jwt
import redis.asyncio
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from fastapi import Depends, FastAPI, Header, HTTPException, Request, Response
from fastapi.responses import JSONResponse
from jwcrypto.jwk import JWK
from pydantic import BaseModel
from sd_jwt.common import SDJWTCommon
from sd_jwt.verifier import SDJWTVerifier

WINDOW_S = 900
RESULT_S = 86_400
KEY_BINDING_S = 300
PREFIX = "/api/v1/nationalid-ovse"
REQUEST = re.compile(r"<Request><TxnID>([^<]*)</TxnID><Credential>([^<]*)</Credential></Request>")
# The credential's content besides its disclosed claims.
PLAIN = {"iss", "id", "iat", "exp", "status", "cnf"}
# Completes a pending transaction.
COMPLETE = """if redis.call('HGET', KEYS[1], 'state') ~= 'pending' then return 0 end
redis.call('HSET', KEYS[1], 'state', 'completed', 'result', ARGV[1])
redis.call('EXPIRE', KEYS[1], ARGV[2]) return 1"""

# The authority writes the name of the hash algorithm in upper case.
SDJWTCommon.HASH_ALG = {**SDJWTCommon.HASH_ALG, "name": "SHA-256"}


def read(path):
    with open(path, "rb") as file:
        return file.read()


known_key = bytes.fromhex(os.environ["PEER_KEY_SHA256"])
known_app = os.environ["PEER_APP"]
trusted = os.environ["PEER_ISSUER"]
intent_key = load_pem_private_key(read(os.environ["PEER_INTENT_KEY"]), None)
issuers = {jwk["kid"]: JWK(**jwk) for jwk in json.loads(read(os.environ["PEER_JWKS"]))["keys"]}


def exit_with_parent():
    """Ends this process when the other end of its stdin is closed."""
    while os.read(0, 1):
        pass
    os._exit(0)


@asynccontextmanager
async def lifespan(app):
    threading.Thread(target=exit_with_parent, daemon=True).start()
    app.state.redis = redis.asyncio.from_url(os.environ["PEER_REDIS"], decode_responses=True)
    app.state.complete = app.state.redis.register_script(COMPLETE)
    app.state.receivers = aiohttp.ClientSession()
    app.state.sending = set()
    yield
    await app.state.receivers.close()


app = FastAPI(lifespan=lifespan, openapi_url=None)


async def authenticate(x_api_key: str = Header(""), x_api_app_id: str = Header("")):
    if not hmac.compare_digest(hashlib.sha256(x_api_key.encode()).digest(), known_key) or x_api_app_id != known_app:
        raise HTTPException(401, "Unauthorized")


class Terms(BaseModel):
    claims: list[str]
    channel: str
    webhook_url: str | None = None


@app.post(PREFIX + "/init", dependencies=[Depends(authenticate)])
async def init(terms: Terms, request: Request):
    txn, secret, now = str(uuid.uuid4()), secrets.token_urlsafe(16), int(time.time())
    base = f"http://{request.headers['host']}"
    payload = {
        "txn": txn, "i": "credential", "lang": "23", "sc": " ".join(terms.claims), "pop": 1, "ch": terms.channel, "m": 1,
        "ac": "client", "sa": "registration", "cb": f"{base}/callback/{txn}/{secret}", "aud": base, "iss": base,
        "iat": now - 10, "exp": now + WINDOW_S, "jti": str(uuid.uuid4()),
    }
    intent = jwt.encode(payload, intent_key, algorithm="RS256", headers={"kid": "intent"})
    kept = {"state": "pending", "secret": secret, "aud": base, "claims": json.dumps(terms.claims), "webhook": terms.webhook_url or ""}
    async with app.state.redis.pipeline(transaction=True) as pipeline:
        pipeline.decr("credits").hset(f"t:{txn}", mapping=kept).expire(f"t:{txn}", WINDOW_S)
        left, *_ = await pipeline.execute()
    if left < 0:
        raise HTTPException(402, "no credits are left")
    expires = datetime.fromtimestamp(now + WINDOW_S, timezone.utc).isoformat()
    return JSONResponse({"txnId": txn, "intentJwt": intent, "expiresAt": expires, "requestUrl": f"{base}/v/{txn}"})


@app.get(PREFIX + "/result/{txn}", dependencies=[Depends(authenticate)])
async def result(txn: str):
    state, body = await app.state.redis.hmget(f"t:{txn}", "state", "result")
    if state is None:
        raise HTTPException(404, "unknown transaction")
    if state == "completed":
        return Response(body, media_type="application/json")
    return JSONResponse({"success": True, "data": {"txn_id": txn, "pending": True}})


@app.post("/callback/{txn}/{secret}")
async def callback(txn: str, secret: str, request: Request):
    fields = await app.state.redis.hmget(f"t:{txn}", "state", "secret", "aud", "claims", "webhook")
    state, known, audience, claims, webhook = fields
    if state is None or known != secret:
        raise HTTPException(404, "unknown transaction")
    said = REQUEST.fullmatch((await request.body()).decode())
    if said is None or said[1] != txn:
        raise HTTPException(400, "malformed")
    try:
        disclosed = verify(said[2], txn, audience)
    except Exception as error:
        raise HTTPException(400, str(error)) from error
    verified = {name: value for name, value in disclosed.items() if name not in PLAIN}
    data = {
        "txn_id": txn, "pending": False, "verification_passed": len(verified) >= len(json.loads(claims)),
        "verified_claims": verified, "verified_at": datetime.now(timezone.utc).isoformat(),
    }
    body = json.dumps({"success": True, "statusCode": 200, "message": "Success", "request_id": str(uuid.uuid4()), "data": data})
    if not await app.state.complete(keys=[f"t:{txn}"], args=[body, RESULT_S]):
        raise HTTPException(409, "it has ended")
    if webhook:
        sending = asyncio.create_task(notify(webhook, body))
        app.state.sending.add(sending)
        sending.add_done_callback(app.state.sending.discard)
    answer = f"<Response><TxnID>{txn}</TxnID><ResponseCode>200</ResponseCode><ResponseMsg>Success</ResponseMsg></Response>"
    return Response(answer, media_type="application/xml")


def verify(credential, nonce, audience):
    """The issuer's signature, digests of the disclosures, times, and the holder's proof for this transaction."""
    verifier = SDJWTVerifier(credential, lambda issuer, header: issuers[header["kid"]], audience, nonce)
    payload, now = verifier.get_verified_payload(), time.time()
    if payload.get("iss") != trusted or not payload.get("exp", 0) > now:
        raise ValueError("the credential is not valid")
    binding = credential.rsplit("~", 1)[1].split(".")[1]
    made = json.loads(base64.urlsafe_b64decode(binding + "=" * (-len(binding) % 4)))["iat"]
    if abs(made - now) > KEY_BINDING_S:
        raise ValueError("the key binding is too old")
    return payload


async def notify(url, body):
    try:
        async with app.state.receivers.post(url, data=body, headers={"content-type": "application/json"}) as answer:
            await answer.read()
    except aiohttp.ClientError:
        # One attempt, not recorded.
        pass


def main():
    from uvicorn import Config
    from uvicorn.supervisors import Multiprocess

    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    config = Config("server:app", port=0, workers=int(os.environ["PEER_PROCESSES"]), log_level="warning", access_log=False)
    listener = config.bind_socket()
    # Connections that come before the processes are ready wait in the listener's queue.
    listener.listen(128)
    print(json.dumps({"address": "127.0.0.1:%d" % listener.getsockname()[1]}), flush=True)
    threading.Thread(target=exit_with_parent, daemon=True).start()
    Multiprocess(config, sockets=[listener]).run()


if __name__ == "__main__":
    main()
