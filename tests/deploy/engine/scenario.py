"""The order of a run: engine, images, then the sandbox and the three nodes side by side."""

import os
import pathlib
import queue
import shutil
import threading
import time
import traceback

import images
import nodes
import sandbox
from daemon import Engine, Failed
from daemon import run as call

ROOT = pathlib.Path(__file__).parents[3]
# Public, so that no setting is needed for webhooks to it.
OUTSIDE = "11.0.0.1"
NAME = "verify.example.com"
LEFT_OUT = shutil.ignore_patterns(".git", "target", "var", "node_modules", "secrets", "__pycache__")


def prepare_machine(work):
    """A directory in memory, a loopback, an address of the outside and a name for this machine, for this run only."""
    call("mount", "-t", "tmpfs", "-o", "size=80%", "tmpfs", str(work))
    call("ip", "link", "set", "lo", "up")
    call("ip", "address", "add", f"{OUTSIDE}/32", "dev", "lo")
    (work / "hosts").write_text(f"127.0.0.1 localhost {NAME}\n")
    call("mount", "--bind", str(work / "hosts"), "/etc/hosts")


def make_certificates(work):
    """An authority, and a certificate with its key for haproxy's name and for the receiver's address."""
    authority, key = work / "authority.pem", work / "authority.key"
    new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    call("openssl", "req", "-x509", *new, "-subj", "/CN=Authority of a test", "-keyout", str(key), "-out", str(authority))
    for name, other in (("tls", f"DNS:{NAME}"), ("receiver", f"IP:{OUTSIDE}")):
        request = work / f"{name}.csr"
        call("openssl", "req", *new, "-subj", "/CN=test", "-addext", f"subjectAltName={other}", "-keyout", str(work / f"{name}.key"), "-out", str(request))
        signed = call("openssl", "x509", "-req", "-in", str(request), "-CA", str(authority), "-CAkey", str(key), "-CAcreateserial", "-days", "2",
                     "-copy_extensions", "copy")
        (work / f"{name}.pem").write_text(signed + (work / f"{name}.key").read_text())
    os.environ["SSL_CERT_FILE"] = str(authority)
    return authority


def clone(deploy, work):
    """A copy of the repository, as a user has it, with the given deploy/."""
    copy = work / "sakshi"
    shutil.copytree(ROOT, copy, ignore=LEFT_OUT, symlinks=True)
    shutil.rmtree(copy / "deploy")
    shutil.copytree(deploy, copy / "deploy", ignore=LEFT_OUT, symlinks=True)
    return copy


def run_side_by_side(*steps):
    """Runs named steps in threads and prints the findings of each. Ends the run at the first failure."""
    ended = queue.Queue()

    def do(name, step):
        try:
            ended.put((True, "\n".join(step())))
        except Failed as failed:
            ended.put((False, f"{name}: {failed}"))
        except Exception:
            ended.put((False, f"{name}: {traceback.format_exc()}"))

    for step in steps:
        threading.Thread(target=do, args=step, daemon=True).start()
    for _ in steps:
        held, said = ended.get()
        print(said, flush=True)
        if not held:
            raise SystemExit(1)


def run(work, deploy, binary):
    began = time.monotonic()
    prepare_machine(work)
    authority = make_certificates(work)
    engine = Engine(work)
    different = images.make(engine, binary, authority)
    repository = clone(deploy, work)
    made = time.monotonic() - began
    cluster = nodes.Cluster(engine, repository, OUTSIDE)
    run_side_by_side(("sandbox", lambda: sandbox.check(engine, repository, OUTSIDE)), ("compose", lambda: nodes.check(cluster)))
    run_side_by_side(("images", lambda: images.check_features(engine)))
    run_side_by_side(("restart", lambda: nodes.check_restart(cluster)))
    print(*(f"instead: {one}" for one in different), sep="\n")
    print(f"engine and images: {made:.1f} s, in all {time.monotonic() - began:.1f} s")
