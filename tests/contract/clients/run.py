"""One verification and one event through the client that openapi-python-client makes of /openapi.json.

Environment: BASE, KEY, APP. Ends with 0 and one line for each of them, or with an error.
"""

import os
from datetime import datetime, timedelta, timezone

import httpx
from sakshi_client import AuthenticatedClient
from sakshi_client.api.events import create_event, get_event, list_event_registrations
from sakshi_client.api.ovse import get_result, open_transaction
from sakshi_client.models import (
    Claim,
    CreateEventRequest,
    CreateEventResponse,
    Error,
    InitRequest,
    InitRequestChannel,
    InitResponse,
    OvseResult,
    RegistrationsPage,
)

base = os.environ["BASE"]
client = AuthenticatedClient(
    base_url=base,
    token=os.environ["KEY"],
    prefix="",
    auth_header_name="X-API-KEY",
    headers={"X-API-APP-ID": os.environ["APP"]},
    timeout=httpx.Timeout(60),
)


def approve(intent: str) -> None:
    """The sandbox's identity app approves what an intent asks for."""
    body = {"intent": intent, "resident": "asha", "action": "approve"}
    httpx.post(f"{base}/sandbox/app/answer", json=body, timeout=60).raise_for_status()


opened = open_transaction.sync(
    client=client,
    body=InitRequest(claims=[Claim.NAME, Claim.AGE_ABOVE_18], channel=InitRequestChannel.WEB),
)
assert isinstance(opened, InitResponse), opened
waiting = get_result.sync(opened.txn_id, client=client)
assert isinstance(waiting, OvseResult) and waiting.data.pending, waiting
approve(opened.intent_jwt)
ended = get_result.sync(opened.txn_id, client=client, wait=10)
assert isinstance(ended, OvseResult) and ended.success and not ended.data.pending, ended
assert ended.data.verified_claims and ended.data.verified_claims["residentName"] == "Asha Rao"
print("verification", ended.message)

created = create_event.sync(
    client=client,
    body=CreateEventRequest(
        name="Open day",
        claims=[Claim.NAME],
        max_guests=2,
        expires_at=datetime.now(timezone.utc) + timedelta(hours=1),
    ),
)
assert isinstance(created, CreateEventResponse), created
approve(httpx.get(created.qr_url, headers={"Accept": "application/jwt"}, timeout=60).text)
guests = list_event_registrations.sync(created.event_id, client=client)
assert isinstance(guests, RegistrationsPage) and len(guests.registrations) == 1, guests
refused = get_event.sync("none", client=client)
assert isinstance(refused, Error) and refused.code == "not_found", refused
print("event", guests.registrations[0].verified_at)
