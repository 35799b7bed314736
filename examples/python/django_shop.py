"""The shop with Django, in one file."""

import os
import sys
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

import django
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from sakshi_client import SakshiError
from shop import FORM, Shop, order_of, return_page, words_of

urlpatterns: list = []


def routes(shop: Shop) -> list:
    from sakshi_client.django import webhooks

    def order_page(request: HttpRequest) -> HttpResponse:
        return HttpResponse(FORM)

    @csrf_exempt  # A shop with sign-in has Django's token in its form.
    def place(request: HttpRequest) -> HttpResponse:
        placed = order_of(request.POST.dict())
        if placed is None:
            return HttpResponse("an order has letters, digits and -", status=400)
        try:
            response = HttpResponseRedirect(shop.place(*placed)["page"])
        except SakshiError as error:
            print(words_of(error), file=sys.stderr)
            return HttpResponse("This did not work. Please try again.", status=502)
        response.status_code = 303
        return response

    def returned(request: HttpRequest, reference: str) -> HttpResponse:
        order = shop.orders.find(reference)
        return HttpResponse(return_page(order)) if order else HttpResponse("no such order", status=404)

    def guests(request: HttpRequest, event: str) -> HttpResponse:
        """The verified guests of an event."""
        return JsonResponse([guest["verified_claims"]["residentName"] for guest in shop.sakshi.guests(event)], safe=False)

    return [
        path("", order_page),
        path("orders", place),
        path("orders/<reference>", returned),
        path("events/<event>/guests", guests),
        path("hooks/sakshi", webhooks(shop.receiver)),
    ]


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class Quiet(WSGIRequestHandler):
    timeout = 30  # Seconds for a sender that sends nothing.

    def log_message(self, *_: object) -> None:
        pass


def serve(shop: Shop) -> None:
    settings.configure(
        ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY=os.urandom(16).hex(), DATA_UPLOAD_MAX_MEMORY_SIZE=24 * 1024 * 1024
    )
    django.setup()
    urlpatterns.extend(routes(shop))
    server = Server(("127.0.0.1", int(os.environ.get("PORT", "0"))), Quiet)  # In production behind a proxy with TLS.
    server.set_app(get_wsgi_application())
    here = f"http://127.0.0.1:{server.server_port}"
    shop.url = os.environ.get("PUBLIC_URL", here)
    print(f"listening {here}\nreceiver {here}/hooks/sakshi")
    for order in shop.orders.open():
        shop.reconcile_later(order, 0)
    server.serve_forever()
