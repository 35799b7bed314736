"""A receiver for FastAPI: `app.include_router(webhooks(receiver), prefix="/hooks")` adds `POST /hooks/sakshi`."""

from __future__ import annotations

import json

from fastapi import APIRouter, Request, Response

from .receiver import BYTES_MAX, Receiver


def webhooks(receiver: Receiver) -> APIRouter:
    """Answers 200 at once and takes the body in one of a few threads; 503 while too many wait."""
    router = APIRouter()

    async def receive(request: Request) -> Response:
        body = bytearray()  # Bytes would be copied with each part.
        async for part in request.stream():
            body += part
            if len(body) > BYTES_MAX:
                return Response(status_code=413)
        try:
            webhook = json.loads(body)
        except (ValueError, RecursionError):
            return Response(status_code=400)
        return Response(status_code=200 if receiver.take_later(webhook) else 503)

    # The types of a route are read when it is added, which `from __future__ import annotations` would hinder.
    receive.__annotations__ = {"request": Request, "return": Response}
    router.add_api_route("/sakshi", receive, methods=["POST"], response_model=None)
    return router
