"""A container's privileges according to the engine and the kernel: user, capabilities, file system, limits."""

import pathlib

from daemon import expect


def read_status(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return {key: value.split() for key, _, value in (line.partition(":") for line in lines)}


def read_limit(pid, controller, first, second):
    """Returns a limit of the process's control group, under its name in version 1 or 2."""
    for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        number, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return int((pathlib.Path("/sys/fs/cgroup") / controller / path[1:] / first).read_text())
        if number == "0" and (file := pathlib.Path("/sys/fs/cgroup") / path[1:] / second).exists():
            return int(file.read_text())
    return None


def expect_contained(engine, container, user):
    """Checks that it is not root, has no capabilities, can gain none, and cannot write to its image."""
    said = engine.inspect(container)
    host, pid = said["HostConfig"], said["State"]["Pid"]
    expect(host["ReadonlyRootfs"] and host["CapDrop"] == ["ALL"] and not host["CapAdd"] and not host["Privileged"], f"{container}: the engine gives it {host}")
    expect(any(option.startswith("no-new-privileges") for option in host["SecurityOpt"] or []), f"{container}: the engine lets it gain privileges")
    found = read_status(pid)
    expect(set(found["Uid"]) == {str(user)}, f"{container}: it runs as {found['Uid']}")
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        expect(int(found[name][0], 16) == 0, f"{container}: {name} is {found[name]}")
    expect(found["NoNewPrivs"] == ["1"], f"{container}: it may gain privileges")
    expect(found["Seccomp"] == ["2"], f"{container}: it may make any system call")
    mounts = [line.split() for line in pathlib.Path(f"/proc/{pid}/mountinfo").read_text().splitlines()]
    (root,) = (mount for mount in mounts if mount[4] == "/")
    expect("ro" in root[5].split(","), f"{container}: its file system is mounted as {root[5]}")


def expect_limits(engine, container, service):
    """Checks that the limits of a service in the file are in effect."""
    pid = engine.inspect(container)["State"]["Pid"]
    files = next(line for line in pathlib.Path(f"/proc/{pid}/limits").read_text().splitlines() if line.startswith("Max open files")).split()[3:5]
    wanted = {"memory": parse_bytes(service.get("mem_limit")), "processes": service.get("pids_limit"), "files": service.get("ulimits", {}).get("nofile")}
    found = {"memory": read_limit(pid, "memory", "memory.limit_in_bytes", "memory.max"), "processes": read_limit(pid, "pids", "pids.max", "pids.max")}
    found["files"] = int(files[0]) if len(set(files)) == 1 else files
    for name, value in wanted.items():
        expect(value is None or found[name] == value, f"{container}: {name} is limited to {found[name]} and not to {value}")


def parse_bytes(text):
    return int(text[:-1]) * {"m": 2**20, "g": 2**30}[text[-1]] if text else None
