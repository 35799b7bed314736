"""What a receiver of webhooks must do.

A webhook has no signature, and anybody can post to its address: so it is matched with what is open, and the record is fetched with the
key before anything is believed.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from .client import Sakshi, Verdict

BYTES_MAX = 24 * 1024 * 1024
"""Bytes of a webhook with documents or a photo."""

THREADS = 8
"""Threads that take webhooks."""

WAITING_MAX = 100
"""Webhooks that wait for a thread or are taken. They keep their bodies, and strangers can post them too."""

_RULES: list[tuple[str, str | None, tuple[tuple[str, ...], ...]]] = [
    # The kind, the member around the fields, and the fields of the key with their spellings; the first is the id.
    ("ovse", "data", (("txn_id", "txnId"),)),
    ("esign", None, (("documentId",),)),
    ("doclocker", "data", (("transactionId",),)),
    ("estamp", "data", (("eStampId",),)),
    ("wealth_data", None, (("uniqueIdentifier",), ("txnId",), ("dataType",))),
    ("wealth_historical", None, (("uniqueIdentifier",), ("consentId",), ("accountId",), ("fromDate",), ("toDate",))),
    ("wealth_consent", None, (("uniqueIdentifier",), ("consentId",), ("status",))),
]

# Kinds whose records are fetched. Their ids are UUIDs.
_POLLED = frozenset({"ovse", "esign", "doclocker"})
_UUID = re.compile("[0-9a-fA-F-]{36}")


@dataclass(frozen=True)
class Arrival:
    """An outcome. Those of `ovse` (a Verdict), `esign` and `doclocker` were fetched; the others have no poll, so keep the URL of their
    webhooks secret."""

    kind: str
    id: str
    key: str
    outcome: Any


class Receiver:
    """`is_open(kind, id)` says whether you wait for this: an id of yours that has no outcome yet. `on_outcome` stores an outcome under
    its key; it may be called twice for one key, so let the key be unique in your database. `on_error` hears of what could not be
    fetched or stored; a poll finds it later."""

    def __init__(
        self,
        sakshi: Sakshi,
        *,
        is_open: Callable[[str, str], bool],
        on_outcome: Callable[[Arrival], None],
        on_error: Callable[[Exception], None] = lambda error: None,
    ) -> None:
        self._sakshi, self._is_open, self._on_outcome, self._on_error = sakshi, is_open, on_outcome, on_error
        self._under_way: set[str] = set()
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="sakshi-webhook")
        self._places = threading.BoundedSemaphore(WAITING_MAX)

    def take_later(self, body: Any, after: Callable[[], None] = lambda: None) -> bool:
        """Takes the body of a webhook in one of a few threads, and then calls `after`. Returns false, and drops the body, while
        `WAITING_MAX` others wait or are taken: answer 503 then."""
        if not self._places.acquire(blocking=False):
            return False
        self._threads.submit(self._take_now, body, after)
        return True

    def _take_now(self, body: Any, after: Callable[[], None]) -> None:
        try:
            self.take(body)
        finally:
            self._places.release()
            after()

    def take(self, body: Any) -> None:
        """Takes the body of a webhook that was answered already. It never raises."""
        try:
            found = recognised(body)
            if found is None or not self._is_open(found[0], found[1]):
                return
            kind, id, key = found
            name = f"{kind} {key}"
            with self._lock:
                if name in self._under_way:
                    return
                self._under_way.add(name)
            try:
                outcome = self._fetched(kind, id, body)
                if isinstance(outcome, Verdict):
                    if outcome.txn_id.lower() == id:
                        self._on_outcome(Arrival(kind, outcome.txn_id, outcome.txn_id, outcome))
                elif outcome is not None:
                    self._on_outcome(Arrival(kind, id, key, outcome))
            finally:
                with self._lock:
                    self._under_way.discard(name)
        except Exception as error:  # Whatever it is, the webhook was answered, and a poll finds the outcome.
            self._on_error(error)

    def _fetched(self, kind: str, id: str, body: Any) -> Verdict | dict[str, Any] | None:
        """The record as the service has it; None while it is pending there."""
        if kind == "ovse":
            return self._sakshi.verdict(id)
        if kind == "esign":
            status = self._sakshi.esign_status(id)
            return None if status.get("pending") is True else status
        if kind == "doclocker":
            details = self._sakshi.documents(id)
            return None if details.get("pending") is True else details
        return dict(body)


def recognised(body: Any) -> tuple[str, str, str] | None:
    """What a body is about: its kind, its id, and the key under which it comes once."""
    if not isinstance(body, dict):
        return None
    for kind, around, fields in _RULES:
        inner = body.get(around) if around else body
        if not isinstance(inner, dict):
            continue
        parts = [next((inner[name] for name in names if isinstance(inner.get(name), str)), None) for names in fields]
        known = [part for part in parts if part]
        if len(known) < len(parts):
            continue
        if kind not in _POLLED:
            return kind, known[0], " ".join(known)
        # The sender chooses the spelling of an id: each record has one key.
        return (kind, known[0].lower(), known[0].lower()) if _UUID.fullmatch(known[0]) else None
    return None
