"""The pieces of code in the documentation, between their marks. tests/clients/run.sh runs all of them against a sandbox."""

import os
from datetime import datetime, timedelta, timezone

# code: credits
from sakshi_client import Sakshi

sakshi = Sakshi(os.environ["BASE"], os.environ["KEY"], os.environ["APP"])
print(sakshi.credits()["balance"])
# end

FILE = "JVBERi0xLjQKJSVFT0YK"


def web() -> str:
    # code: open-web
    opened = sakshi.open_verification(
        {
            "claims": ["name", "age_above_18"],
            "channel": "web",
            "client_reference_id": "order-42",
            "redirect_url": "https://shop.example/return?order=42",
            "webhook_url": "https://shop.example/hooks/sakshi",
        }
    )
    print(opened["txnId"], opened["requestUrl"])
    # end
    return opened["txnId"]


def result(txn_id: str) -> None:
    # code: result
    verdict = sakshi.wait_for_result(txn_id)
    if verdict.state == "passed":
        print("hello", verdict.claims["residentName"])
    else:
        print(verdict.state, verdict.error_code, verdict.message)
    # end


def qr() -> str:
    # code: open-qr
    opened = sakshi.open_verification({"claims": ["name"], "channel": "qr"})
    print(sakshi.qr_intent(opened["txnId"])["qrPayload"])
    # end
    return opened["txnId"]


def event() -> str:
    # code: create-event
    end = datetime.now(timezone.utc) + timedelta(hours=8)
    event = sakshi.create_event(
        {
            "name": "Open day",
            "claims": ["name"],
            "max_guests": 200,
            "expires_at": end.isoformat(),
            "webhook_url": "https://shop.example/hooks/sakshi",
        },
        idempotency_key=f"open-day-{end:%Y-%m-%d-%H-%M-%S}",
    )
    print(event["qr_url"])
    # end
    return event["event_id"]


def guests(event_id: str) -> None:
    # code: list-guests
    for guest in sakshi.guests(event_id):
        print(guest["verified_at"], guest["verified_claims"]["residentName"])
    # end


def check() -> None:
    # code: check
    answer = sakshi.check(
        "bank-account",
        {"account_number": "123456789012", "ifsc": "EXMP0001234", "name": "Asha Rao", "consent": "Y", "consent_text": "I agree."},
    )
    print(answer["data"]["status"], answer["data"]["name_match"])
    # end


def repeat() -> None:
    # code: repeat
    terms = {"claims": ["name"], "channel": "web"}
    first = sakshi.open_verification(terms, idempotency_key="order-78-1")
    again = sakshi.open_verification(terms, idempotency_key="order-78-1")
    print(first["txnId"] == again["txnId"])
    # end


def esign() -> str:
    # code: order-esign
    ordered = sakshi.order_esign(
        {
            "documentInfo": {"name": "Loan agreement", "content": FILE},
            "signerInfo": [{"signerName": "Asha Rao", "signerRefId": "borrower"}],
            "documentReferenceId": "loan-agreement-7",
            "responseUrl": "https://shop.example/hooks/sakshi",
        }
    )
    for signer in ordered["signerInfo"]:
        print(signer["signerRefId"], signer["signingUrl"])
    # end
    return ordered["documentId"]


def signed(document_id: str) -> None:
    # code: poll-esign
    status = sakshi.esign_status(document_id)
    print("waiting" if status.get("pending") else status["documentStatus"])
    # end


def documents() -> str:
    # code: order-documents
    ordered = sakshi.request_documents(
        {"docs": ["driving_licence"], "consent": "Y", "consent_text": "I agree that Example Bank fetches this document from my locker."}
    )
    print(ordered["requestUrl"])
    # end
    return ordered["transactionId"]


def estamp() -> str:
    # code: order-estamp
    ordered = sakshi.order_estamp(
        {
            "apiType": "RegistryEStamp",
            "document": {"documentName": "lease.pdf", "base64FileData": FILE},
            "signatoriesInfo": [{"name": "Asha Rao", "emailID": "asha@example.com", "signType": "electronic"}],
        }
    )
    print(ordered["eStampId"])
    # end
    return ordered["eStampId"]


def wealth() -> str:
    # code: ask-wealth
    ordered = sakshi.request_wealth_consent({"consent": "Y", "consent_text": "I agree that Example Bank asks for my account statements."})
    print(ordered["uniqueIdentifier"], ordered["requestUrl"])
    # end
    return ordered["uniqueIdentifier"]


def receive() -> object:
    # code: receive
    from fastapi import FastAPI
    from sakshi_client import Receiver
    from sakshi_client.fastapi import webhooks

    orders: dict[str, object] = {}  # By transaction, None while it is open. In production a table.
    receiver = Receiver(
        sakshi,
        is_open=lambda kind, id: id in orders and orders[id] is None,
        on_outcome=lambda arrival: orders.update({arrival.id: arrival.outcome}),
    )
    app = FastAPI()
    app.include_router(webhooks(receiver), prefix="/hooks")
    # end
    return app


if __name__ == "__main__":
    print("txn", web())
    qr()
    guests(event())
    check()
    repeat()
    signed(esign())
    documents()
    estamp()
    wealth()
    receive()
    if txn_id := os.environ.get("ENDED"):
        result(txn_id)
