"""The sandbox of compose/sandbox.yaml: up without preparation, one verification with its webhook, stopped, moved to another address."""

import json
import time

from daemon import expect, run, until
from people import Receiver, ask
from privileges import expect_contained

PROJECT = "sakshi-sandbox"


class Sandbox:
    def __init__(self, engine, repository):
        self.engine, self.repository = engine, repository
        self.receiver = Receiver()

    def compose(self, *arguments, **environment):
        """Returns the command of the file's first lines."""
        command = [*self.engine.compose, "-p", PROJECT, "-f", "deploy/compose/sandbox.yaml", *arguments]
        return run(*command, cwd=self.repository, env=self.engine.environment | environment)

    def up(self, **environment):
        self.compose("up", "--build", "--detach", DOCKER_BUILDKIT="1", **environment)
        self.container = self.engine.find_container(PROJECT, "sakshi")
        self.engine.wait_until_healthy(self.container)

    def read_key(self):
        """Returns the client's key and app id, which the log shows once."""
        said = dict(line.strip().split(": ", 1) for line in self.engine.read_log(self.container).splitlines() if line.strip().startswith("X-API-"))
        expect(said.keys() == {"X-API-KEY", "X-API-APP-ID"}, f"the log shows no key: {self.engine.read_log(self.container)[:600]}")
        return said

    def verify(self, base, key, receiver="host.docker.internal"):
        """Runs one verification by the API, with the sandbox's own person. Returns its transaction."""
        terms = {"claims": ["name"], "channel": "qr", "webhook_url": f"http://{receiver}:{self.receiver.port}/hook"}
        status, _, text = ask("POST", f"{base}/api/v1/nationalid-ovse/init", json.dumps(terms), key)
        expect(status == 200, f"the sandbox answers an init with {status} {text}")
        opened = json.loads(text)
        expect(opened["requestUrl"].startswith(f"{base}/v/"), f"the sandbox names {opened['requestUrl']}, and was asked at {base}")
        status, _, text = ask("POST", f"{base}/sandbox/app/answer", json.dumps({"intent": opened["intentJwt"], "action": "approve"}))
        expect(status == 200, f"the person's answer is refused with {status} {text}")
        self.expect_passed(base, key, opened["txnId"])
        until(f"no webhook comes to {receiver}", lambda: self.receiver.arrived[opened["txnId"]] == 1)
        return opened["txnId"]

    def run_alone(self, receiver):
        """Runs the image without Compose, as docs/install.md says, and verifies once."""
        self.container = self.engine.docker("run", "--detach", "-p", "8080:8080", "sakshi-sandbox:0.1.0").strip()
        self.engine.wait_until_healthy(self.container)
        self.verify("http://127.0.0.1:8080", self.read_key(), receiver)

    def expect_passed(self, base, key, txn):
        status, _, text = ask("GET", f"{base}/api/v1/nationalid-ovse/result/{txn}?wait=10", None, key)
        expect(status == 200 and json.loads(text)["data"].get("verification_passed") is True, f"the result of {txn} is {status} {text}")

    def stop(self):
        """Stops it with the grace of the file. Returns the duration in seconds."""
        began = time.monotonic()
        self.engine.docker("stop", self.container)
        took = time.monotonic() - began
        state = self.engine.inspect(self.container)["State"]
        expect(state["ExitCode"] == 0, f"the sandbox ends with {state['ExitCode']} after {took:.1f} s")
        return took


def check(engine, repository, outside):
    sandbox = Sandbox(engine, repository)
    began = time.monotonic()
    sandbox.up()
    up = time.monotonic() - began
    expect_contained(engine, sandbox.container, 65532)
    base, key = "http://127.0.0.1:8080", sandbox.read_key()
    txn = sandbox.verify(base, key)
    status, _, _ = ask("GET", "http://127.0.0.1:8081/readyz", timeout=2)
    expect(status == 0, "the sandbox's internal listener is published")
    stopped = sandbox.stop()
    sandbox.up()
    sandbox.expect_passed(base, key, txn)
    # Another port of this machine, and an address that a phone reaches.
    for host, port in (("127.0.0.1", "9090"), (outside, "8080")):
        sandbox.up(SAKSHI_HOST=host, SAKSHI_PORT=port)
        base = f"http://{host}:{port}"
        sandbox.expect_passed(base, key, txn)
        sandbox.verify(base, key)
    sandbox.compose("down", "--volumes")
    sandbox.run_alone(outside)
    return [f"sandbox: built and healthy after {up:.1f} s, one container; stopped within {stopped:.1f} s with code 0, and back with its data; "
            f"three verifications with their webhooks, each at an address of its own, and one without Compose"]
