"""A receiver for Django: `path("hooks/sakshi", webhooks(receiver))`. Set DATA_UPLOAD_MAX_MEMORY_SIZE to at least 24 MiB."""

from __future__ import annotations

import json
from collections.abc import Callable

from django.core.exceptions import RequestDataTooBig
from django.db import connections
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from .receiver import Receiver


def webhooks(receiver: Receiver) -> Callable[[HttpRequest], HttpResponse]:
    """Answers 200 at once and takes the body in one of a few threads; 503 while too many wait."""

    @csrf_exempt
    @require_POST
    def receive(request: HttpRequest) -> HttpResponse:
        try:
            body = json.loads(request.body)
        except RequestDataTooBig:
            return HttpResponse(status=413)
        except (ValueError, RecursionError):
            return HttpResponse(status=400)
        # Django closes only the database connections of its own threads.
        return HttpResponse(status=200 if receiver.take_later(body, connections.close_all) else 503)

    return receive
