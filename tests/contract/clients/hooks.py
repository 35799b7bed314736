"""Knowledge that schemathesis cannot get from a schema: sentences of refusals, and the reason why no schema expresses each."""

import re

import schemathesis

BEYOND_A_SCHEMA = {
    r"must be in the future": "a schema has no clock",
    r"must be at most 366 days from now": "a schema has no clock",
    r"must be in the future, at most 90 days from now": "a schema has no clock",
    r"must be the name of a time zone of the IANA database, such as Asia/Kolkata": "a schema has no list of them",
    r"must be at most \d+ characters when it is percent-encoded": "a schema counts the characters that are sent",
    r"is only for channel app": "the generators do not read conditions between fields",
    r"is required together with app_(id|signature)": "the generators do not read conditions between fields",
    r"is read-only and must be .*, if it is given": "a schema does not know the event",
    r"must be before expires_at, by 366 days at most": "the generators do not read conditions between fields",
    r"must be darker: its contrast with the page is [\d.]+, and at least 4.5 is needed": "no pattern computes a contrast",
    r"must be a (JPEG, )?PNG or SVG file of at most \d+ bytes in Base64": "a schema does not decode",
    r"must be an e-mail address, a telephone number or an https URL": "no single pattern says it as well",
    r"must be a whole number from 1 to \d+, or below zero for an adjustment": "the generators do not read conditions between fields",
    r"belongs to another (client|key) here": "a schema does not know what was imported",
    r"is given more than once": "a schema compares whole entries, not their ids",
    r"must be at most \d+, as the settings say": "a schema does not know the settings",
    r"must be an id of the given kind, \w+": "the generators do not read conditions between fields",
    r"must be the id of an intent key that this node has": "a schema does not know the keys",
    r"must be the cursor of an earlier answer": "a schema does not know the answers",
    r"must be at least the registration count, which is \d+": "a schema does not know the guests",
    r"must be \* or entity tags, such as the `ETag` of `getEvent`": "an empty header is sent, which the pattern does not allow",
}
# A key belongs to the first body that came with it, and schemathesis repeats keys. No pattern computes a check digit, and no schema
# knows the tag of an event.
BEYOND_A_SCHEMA_CODES = {"event_changed", "idempotency_key_reused", "malformed_gstin"}


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Keeps a failure unless a request was refused only for the listed reasons, or accepted with null for absent."""
    if failure.code == "ST201":
        return not has_null(case.body)
    if failure.code != "ST202":
        return True
    refusal = response.json()
    problems = refusal.get("errors", [])
    return not (refusal["code"] in BEYOND_A_SCHEMA_CODES or (problems and all(is_explained(problem, case.body) for problem in problems)))


def has_null(value):
    """Null is the same as absent in a request, which the document says in words: schemas with it make poor types."""
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return any(member is None or has_null(member) for member in members)


def is_explained(problem, body):
    # Beyond 2^53 a number with a fraction of zero is an integer to a schema, and none to this service.
    if isinstance(body, dict) and isinstance(body.get(problem["field"]), float):
        return True
    return any(re.fullmatch(sentence, problem["message"]) for sentence in BEYOND_A_SCHEMA)


@schemathesis.deserializer("image/png")
def png(context, response):
    if not response.content.startswith(b"\x89PNG\r\n\x1a\n"):
        raise ValueError("no PNG")
    return response.content.decode("latin-1")
