"""A receiver for Django: `path("hooks/sakshi", webhooks(receiver))`. Set DATA_UPLOAD_MAX_MEMORY_SIZE to at least 24 MiB."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.db import connections
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from .receiver import Receiver

THREADS = 4


def webhooks(receiver: Receiver) -> Callable[[HttpRequest], HttpResponse]:
    """Answers 200 at once and takes the body in one of a few threads."""
    executor = ThreadPoolExecutor(THREADS, thread_name_prefix="sakshi-webhook")

    def take(body: Any) -> None:
        try:
            receiver.take(body)
        finally:
            connections.close_all()  # Django closes only those of its own threads.

    @csrf_exempt
    @require_POST
    def receive(request: HttpRequest) -> HttpResponse:
        try:
            body = json.loads(request.body)
        except RequestDataTooBig:
            return HttpResponse(status=413)
        except (ValueError, RecursionError):
            return HttpResponse(status=400)
        executor.submit(take, body)
        return HttpResponse()

    return receive
