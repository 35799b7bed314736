"""The models of OpenAPI Generator (python) and datamodel-code-generator from the document read the service's answers, and errors with
codes that came later.

    generated.py BASE KEY APP
"""

import json
import sys
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import models
from openapi_client.models import Error, InitResponse, OvseResult, Pong, WebhookSettings

base, key, app = sys.argv[1:]


def ask(path, body=None):
    headers = {"X-API-KEY": key, "X-API-APP-ID": app, "Content-Type": "application/json"}
    try:
        with urlopen(Request(base + path, None if body is None else json.dumps(body).encode(), headers)) as response:
            return response.read().decode()
    except HTTPError as error:
        return error.read().decode()


def tomorrow(error):
    return json.dumps(json.loads(error) | {"code": "a_code_of_tomorrow"})


opened = ask("/api/v1/nationalid-ovse/init", {"claims": ["name"], "channel": "qr"})
intent, txn = (json.loads(opened)[name] for name in ("intentJwt", "txnId"))
poll = f"/api/v1/nationalid-ovse/result/{txn}"
pending = ask(poll)
ask("/sandbox/app/answer", {"intent": intent, "resident": "asha", "action": "approve"})
ended, refused = ask(poll), ask(f"{poll}0")
ping, settings = ask("/api/ping"), ask("/api/v1/user/webhook")

assert InitResponse.from_json(opened).txn_id
assert OvseResult.from_json(pending).data.pending
assert OvseResult.from_json(ended).data.verified_claims["residentName"] == "Asha Rao"
assert Error.from_json(tomorrow(refused)).code == "a_code_of_tomorrow"
assert Pong.from_json(ping).success and WebhookSettings.from_json(settings).success
print("OpenAPI Generator python reads them")

assert models.OvseResult.model_validate_json(pending).data.pending
assert models.OvseResult.model_validate_json(ended).success
assert models.Error.model_validate_json(tomorrow(refused)).code == "a_code_of_tomorrow"
assert models.Pong.model_validate_json(ping).success and models.InitResponse.model_validate_json(opened).txnId
print("datamodel-code-generator reads them")
