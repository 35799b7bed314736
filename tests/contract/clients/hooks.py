"""What schemathesis cannot know from a schema: sentences of refusals, and why no schema says what they say."""

import re

import schemathesis

BEYOND_A_SCHEMA = {
    r"must be in the future": "a schema has no clock",
    r"must be at most 366 days from now": "a schema has no clock",
    r"must be an ISO 8601 timestamp with an offset, in the future and at most 90 days from now": "a schema has no clock",
    r"must be the name of a time zone of the IANA database, such as Asia/Kolkata": "a schema has no list of them",
    r"must be at most \d+ characters when it is percent-encoded": "a schema counts the characters that are sent",
    r"is only for channel app": "the generators do not read conditions between fields",
    r"is required together with app_(id|signature)": "the generators do not read conditions between fields",
    r"must be a whole number from 0 to \d+": "`after` is below the `page_size` of the same request",
    r"must be a whole number from 1 to \d+, or below zero for an adjustment": "the generators do not read conditions between fields",
    r"belongs to another (client|key) here": "a schema does not know what was imported",
    r"is given more than once": "a schema compares whole entries, not their ids",
    r"must be at most \d+, as the settings say": "a schema does not know the settings",
    r"must be an id of the given kind, \w+": "the generators do not read conditions between fields",
    r"must be the id of an intent key that this node has": "a schema does not know the keys",
    r"must be the cursor of an earlier answer": "a schema does not know the answers",
    r"must be at least the registration count, which is \d+": "a schema does not know the guests",
}
# A key belongs to the first body that came with it, and schemathesis repeats keys. No pattern computes a check digit.
BEYOND_A_SCHEMA_CODES = {"idempotency_key_reused", "malformed_gstin"}


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Keeps a failure unless a request was refused for nothing but what is listed above."""
    if failure.code != "ST202":
        return True
    refusal = response.json()
    problems = refusal.get("errors", [])
    return not (refusal["code"] in BEYOND_A_SCHEMA_CODES or (problems and all(is_explained(problem, case.body) for problem in problems)))


def is_explained(problem, body):
    # 2.0 is an integer to a schema, and no whole number to this service.
    if isinstance(body, dict) and isinstance(body.get(problem["field"]), float):
        return True
    return any(re.fullmatch(sentence, problem["message"]) for sentence in BEYOND_A_SCHEMA)


@schemathesis.deserializer("image/png")
def png(context, response):
    if not response.content.startswith(b"\x89PNG\r\n\x1a\n"):
        raise ValueError("no PNG")
    return response.content.decode("latin-1")
