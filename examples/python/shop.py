"""A shop that verifies its customers: an order page, a return page, a receiver of webhooks and a reconciler. README.md says how to run it."""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import time
import uuid
from pathlib import Path
from typing import Any

from sakshi_client import Arrival, Receiver, Sakshi, SakshiError, Verdict

QUIET_S = 10  # So long a webhook may take before the result is polled.
AGAIN_S = 2  # After a failure that may pass.
FORM = """<!doctype html><title>Shop</title><form method="post" action="/orders">
<label>Order <input name="reference" required pattern="[\\w-]+"></label> <input type="hidden" name="claims" value="name age_above_18">
<button>Verify my age</button></form>"""

Order = dict[str, Any]


class Orders:
    """The orders, in a file that is only appended to. In production a table, where the reference and the transaction are unique."""

    def __init__(self, file: Path) -> None:
        self._file, self._all, self._lock = file, {}, threading.RLock()
        for line in file.read_text().splitlines() if file.exists() else []:
            self._apply(json.loads(line))

    def _apply(self, order: Order) -> None:
        self._all[order["reference"]] = self._all.get(order["reference"], {}) | order

    def keep(self, order: Order) -> None:
        """Written before it counts: what was sent to the service is never forgotten."""
        with self._lock, self._file.open("a") as file:
            file.write(json.dumps(order) + "\n")
            file.flush()
            os.fsync(file.fileno())
            self._apply(order)

    def keep_new(self, order: Order) -> Order:
        """Keeps an order unless its reference is known; returns the known one. So several presses of the button share one key."""
        with self._lock:
            known = self.find(order["reference"])
            if known is None:
                self.keep(order)
            return known or order

    def settle(self, txn: str, outcome: str) -> None:
        """The first outcome of an order stays."""
        with self._lock:
            order = self.of(txn)
            if order is None or "outcome" in order:
                return
            self.keep(order | {"outcome": outcome})
        print(f"outcome {order['reference']} {outcome}")

    def find(self, reference: str) -> Order | None:
        return self._all.get(reference)

    def of(self, txn: str) -> Order | None:
        return next((order for order in list(self._all.values()) if order.get("txn") == txn), None)

    def open(self) -> list[Order]:
        return [order for order in self._all.values() if "outcome" not in order]


class Shop:
    def __init__(self) -> None:
        self.sakshi = Sakshi(*(os.environ.get(name) or sys.exit(f"{name} is not set") for name in ("BASE", "KEY", "APP")))
        self.orders = Orders(Path(os.environ.get("ORDERS", "orders.jsonl")))
        self.receiver = Receiver(
            self.sakshi,
            is_open=self.is_open,
            on_outcome=self.on_outcome,
            on_error=lambda error: print(f"webhook: {error}", file=sys.stderr),
        )
        self.url = ""

    def is_open(self, kind: str, id: str) -> bool:
        order = self.orders.of(id)
        return kind == "ovse" and order is not None and "outcome" not in order

    def on_outcome(self, arrival: Arrival) -> None:
        self.orders.settle(arrival.id, told(arrival.outcome))

    def open(self, order: Order) -> Order:
        """Opens the verification of an order. However often this happens, it is opened and paid once: the key is kept with the order."""
        opened = self.sakshi.open_verification(
            {
                "claims": order["claims"],
                "channel": "web",
                "client_reference_id": order["reference"],
                "redirect_url": f"{order['url']}/orders/{order['reference']}",
                "webhook_url": f"{order['url']}/hooks/sakshi",
            },
            idempotency_key=order["key"],
        )
        order = order | {"txn": opened["txnId"], "page": opened["requestUrl"]}
        self.orders.keep(order)
        print(f"order {order['reference']} {order['txn']}")
        return order

    def place(self, reference: str, claims: list[str]) -> Order:
        order = self.orders.keep_new({"reference": reference, "key": str(uuid.uuid4()), "claims": claims, "url": self.url})
        if "page" not in order:
            order = self.open(order)
        self.reconcile_later(order, QUIET_S)
        return order

    def reconcile_later(self, order: Order, quiet_s: float) -> None:
        threading.Thread(target=self.reconcile, args=(order, quiet_s), daemon=True).start()

    def reconcile(self, order: Order, quiet_s: float) -> None:
        """Finds the outcome if no webhook does: a webhook may be lost, and one that came may have been for nothing."""
        time.sleep(quiet_s)
        while "outcome" not in (self.orders.find(order["reference"]) or {}):
            try:
                order = order if "txn" in order else self.open(order)
                self.orders.settle(order["txn"], told(self.sakshi.wait_for_result(order["txn"])))
            except SakshiError as error:
                print(f"{order['reference']}: {error}", file=sys.stderr)
                if 400 <= error.status < 429 and error.status != 408:
                    return
                time.sleep(AGAIN_S)


def told(verdict: Verdict) -> str:
    if verdict.state == "expired":
        return "expired"
    return f"passed: {', '.join(sorted(verdict.claims))}" if verdict.state == "passed" else f"not passed: {verdict.message}"


def return_page(order: Order) -> str:
    state = order.get("outcome", "we are waiting for your answer").split(":")[0]
    return f"<!doctype html><title>Order {order['reference']}</title><p>Order {order['reference']}: {state}</p>"


def order_of(form: dict[str, str]) -> tuple[str, list[str]] | None:
    reference = form.get("reference", "")
    return (reference, form.get("claims", "name").split(" ")) if re.fullmatch(r"[\w-]{1,64}", reference) else None


def words_of(error: SakshiError) -> str:
    return f"{error} {json.dumps(error.errors)} {error.error_id}"


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    if os.environ.get("FRAMEWORK") == "django":
        from django_shop import serve
    else:
        from fastapi_shop import serve
    serve(Shop())
