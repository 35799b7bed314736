"""Requests to a sakshi service: what each operation is called, and how a request is repeated."""

from __future__ import annotations

import http.client
import io
import json
import random
import socket
import ssl
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast
from urllib.parse import quote, urlsplit

if TYPE_CHECKING:
    from . import models

OVSE = "/api/v1/nationalid-ovse"
REPEATABLE = frozenset({0, 408, 429, 500, 502, 503, 504})
# Retries that a client may save up, and the part of one that each request adds. They bound the load of an outage.
RETRIES_MAX, RETRIES_PER_REQUEST = 50, 0.1
POLL_S = 25

Check = Literal["pan", "gst", "bank-account", "ifsc", "voter-id"]
Json = Mapping[str, Any]


class SakshiError(Exception):
    """The service refused a request, or (status 0) gave no answer.

    `code` is the stable code of the refusal, `no_answer` when there was none; `errors` has what is wrong with each field, and by
    `error_id` the operator finds the request.
    """

    def __init__(self, status: int, code: str, message: str, errors: list[dict[str, str]], error_id: str | None = None) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status, self.code, self.message, self.errors, self.error_id = status, code, message, errors, error_id


@dataclass(frozen=True)
class Verdict:
    """How a verification ended, whatever spelling the app is set to."""

    state: Literal["passed", "failed", "expired"]
    txn_id: str
    message: str
    claims: dict[str, Any] = field(default_factory=dict)
    error_code: str | None = None


class Sakshi:
    """The service at `base`, for one app. It keeps no connection, so threads may share it.

    `attempts` is how often a request is sent at most, where repeating it is safe; `timeout_s` what one attempt may take, beside what
    the service is asked to wait.
    """

    def __init__(self, base: str, key: str, app: str, *, attempts: int = 5, timeout_s: float = 30) -> None:
        self._base = urlsplit(base)
        self._headers = {"X-API-KEY": key, "X-API-APP-ID": app}
        self._attempts, self._timeout_s = attempts, timeout_s
        self._retries, self._lock = float(RETRIES_MAX), threading.Lock()
        self._tls = ssl.create_default_context() if self._base.scheme == "https" else None
        # Without a port, http.client would read one from the end of an IPv6 address.
        self._port = self._base.port or (443 if self._tls else 80)

    def open_verification(self, terms: models.InitRequest, *, idempotency_key: str | None = None) -> models.InitResponse:
        """Opens a verification. It costs one credit. Send the person to `requestUrl`."""
        return cast("models.InitResponse", self._post(f"{OVSE}/init", terms, idempotency_key))

    def qr_intent(self, txn_id: str) -> models.QrIntentResponse:
        """The value of a QR code for the identity app's scanner."""
        return cast("models.QrIntentResponse", self.call("POST", f"{OVSE}/qr-intent", {"txnId": txn_id}, is_safe=True))

    def result(self, txn_id: str, wait_s: int = 0) -> dict[str, Any]:
        """The result as it is now, or within `wait_s` seconds (30 at most)."""
        return self.call("GET", f"{OVSE}/result/{_escaped(txn_id)}?wait={wait_s}", wait_s=wait_s)

    def verdict(self, txn_id: str, wait_s: int = 0) -> Verdict | None:
        """How a verification ended; None while it is pending."""
        try:
            return _verdict_of(txn_id, self.result(txn_id, wait_s))
        except SakshiError as error:
            if error.status != 410:
                raise
            return Verdict("expired", txn_id, error.message)

    def wait_for_result(self, txn_id: str) -> Verdict:
        """Waits until a verification has ended."""
        while True:
            if verdict := self.verdict(txn_id, POLL_S):
                return verdict

    def create_event(self, terms: models.CreateEventRequest, *, idempotency_key: str | None = None) -> models.CreateEventResponse:
        return cast("models.CreateEventResponse", self._post(f"{OVSE}/events", terms, idempotency_key))

    def event(self, event_id: str) -> models.EventResponse:
        return cast("models.EventResponse", self.call("GET", f"{OVSE}/events/{_escaped(event_id)}"))

    def change_event(self, event_id: str, changes: models.PatchEventRequest) -> models.EventResponse:
        return cast("models.EventResponse", self.call("PATCH", f"{OVSE}/events/{_escaped(event_id)}", changes))

    def guests(self, event_id: str) -> Iterator[models.RegistrationRow]:
        """All verified guests of an event, oldest first."""
        page: str | None = f"{OVSE}/events/{_escaped(event_id)}/registrations?page_size=100"
        while page:
            listed = self.call("GET", page)
            yield from listed["registrations"]
            page = listed.get("next")

    def check(self, kind: Check, request: Json) -> dict[str, Any]:
        """Verifies a number while you wait. It costs no credit."""
        return self.call("POST", f"/api/v1/{_escaped(kind)}/verify", request, is_safe=True)

    def order_esign(self, order: models.EsignRequest, *, idempotency_key: str | None = None) -> models.EsignResponse:
        return cast("models.EsignResponse", self._post("/api/v1/esign/request", order, idempotency_key))

    def esign_status(self, document_id: str) -> dict[str, Any]:
        return self.call("POST", "/api/v1/esign/status", {"documentId": document_id}, is_safe=True)

    def request_documents(self, order: models.DocLockerInitRequest, *, idempotency_key: str | None = None) -> models.DocLockerResponse:
        return cast("models.DocLockerResponse", self._post("/api/v1/doclocker/init", order, idempotency_key))

    def documents(self, transaction_id: str) -> dict[str, Any]:
        return self.call("GET", f"/api/v1/doclocker/details/{_escaped(transaction_id)}")

    def order_estamp(self, order: models.EStampInitRequest, *, idempotency_key: str | None = None) -> models.EStampResponse:
        return cast("models.EStampResponse", self._post("/api/v1/estamp/init", order, idempotency_key))

    def request_wealth_consent(
        self, order: models.WealthConsentRequest, *, idempotency_key: str | None = None
    ) -> models.WealthConsentResponse:
        return cast("models.WealthConsentResponse", self._post("/api/v1/wealth/consents", order, idempotency_key))

    def credits(self) -> models.Balance:
        return cast("models.Balance", self.call("GET", "/api/v1/credits"))

    def set_webhook_url(self, api_type: str, webhook_url: str | None) -> None:
        """Sets the webhook URL of a flow, or removes it."""
        self.call("PUT", "/api/v1/user/webhook", {"apiType": api_type, "webhookUrl": webhook_url})

    def _post(self, path: str, body: Any, idempotency_key: str | None) -> dict[str, Any]:
        key = str(uuid.uuid4()) if idempotency_key is None else idempotency_key
        return self.call("POST", path, body, idempotency_key=key)

    def call(
        self, method: str, path: str, body: Any = None, *, idempotency_key: str | None = None, is_safe: bool = False, wait_s: int = 0
    ) -> dict[str, Any]:
        """Any operation. A POST without an idempotency key is sent once, unless it changes nothing (`is_safe`)."""
        headers = dict(self._headers)
        if body is not None:
            headers["Content-Type"] = "application/json"
        if idempotency_key is not None:
            headers["Idempotency-Key"] = idempotency_key
        sent = None if body is None else json.dumps(body)
        may_repeat = method != "POST" or is_safe or idempotency_key is not None
        attempt = 0
        self._add_retries(RETRIES_PER_REQUEST)
        while True:
            attempt += 1
            answer, retry_after = self._attempt(method, path, sent, headers, wait_s)
            if not isinstance(answer, SakshiError):
                return answer
            if not may_repeat or attempt >= self._attempts or answer.status not in REPEATABLE or not self._add_retries(-1):
                raise answer
            # Clients that were refused at the same moment come back at different ones.
            time.sleep((2 ** (attempt - 1) if retry_after is None else retry_after) * random.uniform(1, 1.5))

    def _add_retries(self, number: float) -> bool:
        """Changes the retries left, up to `RETRIES_MAX`. Returns false, and changes nothing, if there are too few."""
        with self._lock:
            if self._retries + number < 0:
                return False
            self._retries = min(self._retries + number, RETRIES_MAX)
            return True

    def _attempt(
        self, method: str, path: str, sent: str | None, headers: dict[str, str], wait_s: int
    ) -> tuple[dict[str, Any] | SakshiError, int | None]:
        """The body of the answer or the failure, and the seconds that the service asks to wait."""
        response: http.client.HTTPResponse | None = None
        host, timeout = self._base.hostname or "", self._timeout_s + wait_s
        deadline = time.monotonic() + timeout
        connection = (
            http.client.HTTPSConnection(host, self._port, timeout=timeout, context=self._tls)
            if self._tls
            else http.client.HTTPConnection(host, self._port, timeout=timeout)
        )
        try:
            connection.request(method, path, sent, headers)
            response = http.client.HTTPResponse(cast(Any, _Timed(connection.sock, deadline)), method=method)
            response.begin()  # A redirect is not followed: the key goes nowhere else.
            status, pause, words = response.status, response.getheader("Retry-After", ""), response.read()
        except http.client.InvalidURL:
            raise  # Nothing was sent, and a retry would not help.
        except (OSError, http.client.HTTPException) as error:
            return SakshiError(0, "no_answer", f"{type(error).__name__} {error}", []), None
        finally:
            if response:
                response.close()
            connection.close()
        body = _parsed(words)
        if 200 <= status < 300:
            if body is None:
                return SakshiError(0, "no_answer", "the response is not JSON", []), None
            return body, None
        body = body or {}
        errors = body.get("errors")
        failure = SakshiError(
            status,
            str(body.get("code") or "unknown"),
            str(body.get("message") or f"status {status}"),
            errors if isinstance(errors, list) else [],
            body.get("errorId"),
        )
        return failure, int(pause) if pause.isdecimal() and len(pause) < 6 else None


class _Timed(io.RawIOBase):
    """The bytes of a socket until a deadline. The timeout of a socket alone begins anew with each read."""

    def __init__(self, connection: socket.socket, deadline: float) -> None:
        self._connection, self._deadline = connection, deadline

    def makefile(self, _mode: str) -> Any:
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the response takes too long")
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)


def _parsed(words: bytes) -> dict[str, Any] | None:
    """The object in a body; None if there is none, as in a proxy's page."""
    try:
        body = json.loads(words)
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def _escaped(id: str) -> str:
    """Escapes an id for a path."""
    return quote(id, safe="", errors="replace")


def _verdict_of(txn_id: str, result: dict[str, Any]) -> Verdict | None:
    """A setting of the app chooses between `verification_passed` and `verificationPassed`."""
    data = result["data"]
    if data.get("pending") is not False:
        return None
    passed = data.get("verification_passed", data.get("verificationPassed")) is True
    return Verdict(
        "passed" if passed else "failed",
        str(data.get("txn_id") or data.get("txnId") or txn_id),
        str(data.get("message") or result.get("message", "")),
        dict(data.get("verified_claims", data.get("verifiedClaims", {}))),
        data.get("error_code", data.get("errorCode")),
    )
