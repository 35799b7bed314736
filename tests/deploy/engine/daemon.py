"""The Docker engine of a run, and its reports about containers.

It starts with an empty data directory and without a registry. Commands go through the same `docker` and `docker-compose` that a user has."""

import json
import os
import pathlib
import subprocess
import time

PATIENCE_S = 240
# Builds of the long form are real.
COMMAND_S = 3_600 if os.environ.get("SAKSHI_TESTS") == "long" else 300


class Failed(Exception):
    """An expectation that does not hold."""


def expect(held, what):
    if not held:
        raise Failed(what)


def run(*command, name=None, patience=COMMAND_S, **options):
    """Returns the output of a command that must succeed. `name`: what a failure calls it."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=patience, **options)
    if done.returncode:
        raise Failed(f"{name or ' '.join(map(str, command))} ends with {done.returncode}:\n{(done.stdout + done.stderr)[-3_000:]}")
    return done.stdout


def until(what, held, patience=PATIENCE_S):
    """Waits until `held` returns something true, and returns it."""
    end = time.monotonic() + patience
    while not (found := held()):
        expect(time.monotonic() < end, what() if callable(what) else what)
        time.sleep(0.1)
    return found


class Engine:
    def __init__(self, work):
        self.work = work
        self.environment = os.environ | {"DOCKER_HOST": f"unix://{work}/docker.sock", "DOCKER_CONFIG": str(work / "config")}
        self.prefer_debians_client()
        self.start()
        self.compose = ["docker", "compose"] if self.succeeds("compose", "version") else ["docker-compose"]

    def start(self):
        self.log = open(self.work / "dockerd.log", "a")
        work = self.work
        self.process = subprocess.Popen(
            ["dockerd", "--data-root", work / "data", "--exec-root", work / "exec", "--host", f"unix://{work}/docker.sock", "--pidfile", work / "pid",
             "--exec-opt", "native.cgroupdriver=cgroupfs", "--cgroup-parent", f"/{work.name}"], stdout=self.log, stderr=self.log)
        until(self.describe_failure, lambda: self.process.poll() is not None or self.succeeds("version"))
        expect(self.process.poll() is None, self.describe_failure())
        # Followed from the beginning, because the engine keeps a few hundred events only.
        command = ["docker", "events", "--filter", "event=kill", "--filter", "event=die", "--format", "{{json .}}"]
        self.follower = subprocess.Popen(command, env=self.environment, stdout=open(work / "events", "a"), stderr=subprocess.DEVNULL)

    def restart(self):
        self.process.terminate()
        self.process.wait(PATIENCE_S)
        self.start()

    def prefer_debians_client(self):
        """Puts the client of the engine's own package first: another version lacks the builder that belongs to this one."""
        if os.access("/usr/bin/docker", os.X_OK):
            first = self.work / "bin"
            first.mkdir()
            (first / "docker").symlink_to("/usr/bin/docker")
            self.environment["PATH"] = f"{first}:{os.environ['PATH']}"

    def succeeds(self, *command):
        return subprocess.run(["docker", *command], env=self.environment, capture_output=True).returncode == 0

    def describe_failure(self):
        return "the engine does not start:\n" + pathlib.Path(self.log.name).read_text()[-1_500:]

    def docker(self, *arguments, **options):
        return run("docker", *arguments, env=self.environment, **options)

    def inspect(self, container):
        return json.loads(self.docker("inspect", container))[0]

    def wait_until_healthy(self, *containers):
        """Waits until the engine's own checks are good; a container that has ended for good is not waited for."""
        for name in containers:
            state = lambda: self.inspect(name)["State"]
            settled = lambda: state()["Status"] == "exited" or state().get("Health", {}).get("Status") == "healthy"
            last = lambda: f"{name} does not become healthy: {json.dumps(state())[-600:]}\n{self.read_log(name)[-1_200:]}"
            until(last, settled)
            expect(state()["Status"] == "running", last())

    def read_log(self, container):
        done = subprocess.run(["docker", "logs", container], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done.stdout

    def build_from(self, tar, name, lines, fill=lambda context: None):
        """Makes an image of a tar with a Dockerfile's lines. `fill` puts files into the context of the build."""
        context = self.work / "images" / name.replace("/", "-").replace(":", "-")
        context.mkdir(parents=True)
        base = f"{tar.stem}:kept"
        if not self.docker("images", "--quiet", base):
            self.docker("import", str(tar), base)
        fill(context)
        (context / "Dockerfile").write_text("\n".join([f"FROM {base}", *lines]) + "\n")
        self.docker("build", "--quiet", "--tag", name, str(context))

    def find_container(self, project, service):
        """Returns the container of a service; versions of Compose name it differently."""
        labels = [f"--filter=label=com.docker.compose.{key}={value}" for key, value in (("project", project), ("service", service), ("oneoff", "False"))]
        (name,) = self.docker("ps", "--all", "--format", "{{.Names}}", *labels).split() or [f"no container of {service}"]
        return name

    def list_ends(self, project):
        """Returns every exit of a project's containers: service, exit code, and seconds since the stop was requested."""
        ended, asked = [], {}
        for event in map(json.loads, (self.work / "events").read_text().splitlines()):
            about, at = event["Actor"]["Attributes"], event["timeNano"] / 1e9
            if event["Action"] == "kill":
                asked.setdefault(event["Actor"]["ID"], at)
            else:
                seconds = at - asked.pop(event["Actor"]["ID"], at)
                if about.get("com.docker.compose.project") == project and about.get("com.docker.compose.oneoff") == "False":
                    ended.append((about["com.docker.compose.service"], int(about["exitCode"]), seconds))
        return ended
