"""The shop with FastAPI."""

import os
import socket
import sys
from urllib.parse import parse_qsl

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from fastapi.concurrency import run_in_threadpool
from sakshi_client import SakshiError
from sakshi_client.fastapi import webhooks
from shop import FORM, Shop, order_of, return_page, words_of


def application(shop: Shop) -> FastAPI:
    app = FastAPI()
    app.include_router(webhooks(shop.receiver), prefix="/hooks")

    @app.get("/")
    def order_page() -> HTMLResponse:
        return HTMLResponse(FORM)

    @app.post("/orders")
    async def place(request: Request) -> Response:
        placed = order_of(dict(parse_qsl((await request.body()).decode("utf-8", "replace"))))
        if placed is None:
            return Response("an order has letters, digits and -", 400)
        try:
            order = await run_in_threadpool(shop.place, *placed)
        except SakshiError as error:
            print(words_of(error), file=sys.stderr)
            return Response("This did not work. Please try again.", 502)
        return RedirectResponse(order["page"], 303)

    @app.get("/orders/{reference}")
    def returned(reference: str) -> HTMLResponse:
        order = shop.orders.find(reference)
        return HTMLResponse(return_page(order)) if order else HTMLResponse("no such order", 404)

    @app.get("/events/{event}/guests")
    def guests(event: str) -> list[str]:
        """The verified guests of an event."""
        return [guest["verified_claims"]["residentName"] for guest in shop.sakshi.guests(event)]

    return app


def serve(shop: Shop) -> None:
    listener = socket.create_server(("127.0.0.1", int(os.environ.get("PORT", "0"))))  # In production behind a proxy with TLS.
    here = f"http://127.0.0.1:{listener.getsockname()[1]}"
    shop.url = os.environ.get("PUBLIC_URL", here)
    print(f"listening {here}\nreceiver {here}/hooks/sakshi")
    for order in shop.orders.open():
        shop.reconcile_later(order, 0)
    uvicorn.Server(uvicorn.Config(application(shop), log_level="warning")).run(sockets=[listener])
