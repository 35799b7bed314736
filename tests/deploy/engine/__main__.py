"""Runs both Compose files as deploy/compose/README.md says, in a Docker engine of their own: built, started, used, killed, stopped, upgraded.

    python3 tests/deploy/engine DEPLOY BINARY

Ends with 3 where no engine can start, with a sentence that says why. Everything runs in namespaces of processes, mounts and network, so the
files keep their ports and subnet, and nothing outlives the run."""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PROGRAMS = {"dockerd": "docker.io", "iptables": "iptables", "mmdebstrap": "mmdebstrap",
            "unshare": "util-linux", "setpriv": "util-linux", "ip": "iproute2", "openssl": "openssl"}
HERE = pathlib.Path(__file__).parent
IN_NAMESPACES = "SAKSHI_ENGINE_WORK"


def cannot(why):
    print(why)
    sys.exit(3)


def expect_engine():
    if os.getuid() != 0:
        cannot("an engine is started by root only")
    for program, package in PROGRAMS.items():
        if shutil.which(program) is None:
            cannot(f"{program} is not here (Debian package {package})")
    if shutil.which("docker-compose") is None and subprocess.run(["docker", "compose", "version"], capture_output=True).returncode:
        cannot("Compose is not here (Debian package docker-compose)")
    if subprocess.run(["unshare", "--mount", "--net", "--pid", "--fork", "true"], capture_output=True).returncode:
        cannot("namespaces cannot be made here")
    import images
    from daemon import Failed

    try:
        images.fetch()
    except Failed as failed:
        cannot(f"packages cannot be fetched: {failed}")


def remove_groups(name):
    """Removes the control groups of the engine, inner ones first, as soon as their last process is gone."""
    end = time.monotonic() + 10
    for root in [*pathlib.Path("/sys/fs/cgroup").glob(f"*/{name}"), pathlib.Path("/sys/fs/cgroup") / name]:
        for folder, _, _ in os.walk(root, topdown=False):
            while os.path.isdir(folder) and time.monotonic() < end:
                with contextlib.suppress(OSError):
                    os.rmdir(folder)
                    break
                time.sleep(0.05)


def run_in_namespaces(work):
    command = ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--net", "--pid", "--mount-proc", "--fork", "--kill-child"]
    process = subprocess.Popen([*command, sys.executable, str(HERE), *sys.argv[1:]], env=os.environ | {IN_NAMESPACES: str(work)})
    try:
        return process.wait()
    finally:
        process.kill()
        process.wait()


def end(*_):
    """Ends the run once: a second signal, as `timeout` sends it, must not cut off the removal."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    sys.exit(1)


def main():
    if IN_NAMESPACES in os.environ:
        import scenario

        scenario.run(pathlib.Path(os.environ[IN_NAMESPACES]), *map(pathlib.Path, sys.argv[1:]))
        return
    expect_engine()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    work = pathlib.Path(tempfile.mkdtemp(prefix="sakshi-engine-"))
    try:
        sys.exit(run_in_namespaces(work))
    finally:
        remove_groups(work.name)
        shutil.rmtree(work, ignore_errors=True)


main()
