"""Machines on one network: network namespaces, each with a cable to this process' own namespace, which routes between them. Here
packets are dropped (nftables) and delayed (a TUN device), so that no program notices anything but what a network does to it.
Everything is in namespaces of this run: mounts, devices, addresses and processes end with it, however it ends."""

import ctypes
import fcntl
import heapq
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time

# In the run's own mount namespace this is its directory, in memory.
WORK = pathlib.Path("/mnt")
INSIDE = "SAKSHI_OUTAGES_INSIDE"
NEEDED = ("unshare", "nsenter", "ip", "nft", "mkfs.ext4", "redis-server", "redis-cli", "haproxy")
ROOT = pathlib.Path(__file__).resolve().parents[2]


def enter():
    """Runs this program again in namespaces of its own; returns there. Ends with 3 where that is not possible."""
    if os.environ.get(INSIDE):
        run("mount", "-t", "tmpfs", "tmpfs", "/run")
        run("mount", "-t", "tmpfs", "tmpfs", str(WORK))
        return
    missing = [program for program in NEEDED if not shutil.which(program)]
    command = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if missing:
        skip(f"not installed: {' '.join(missing)}")
    probe = subprocess.run([*command, "nft", "add", "table", "inet", "outage"], capture_output=True, text=True)
    if probe.returncode:
        skip(f"no namespaces with nftables can be made here: {probe.stderr.strip()}")
    os.environ[INSIDE] = "yes"
    # `unshare` ignores SIGTERM while it waits; when it is killed, so is everything inside.
    whole = subprocess.Popen([*command, sys.executable, *sys.argv], preexec_fn=lambda: die_with_parent(signal.SIGKILL))
    signal.signal(signal.SIGTERM, lambda *_: whole.kill())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(whole.wait())


def die_with_parent(how):
    """PR_SET_PDEATHSIG."""
    ctypes.CDLL(None).prctl(1, how)


def skip(why):
    print(why)
    sys.exit(3)


def run(*command):
    try:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=20)
    except subprocess.TimeoutExpired as slow:
        raise OSError(str(slow)) from slow
    if done.returncode:
        raise OSError(f"{' '.join(str(part) for part in command)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout.strip()


class Machine:
    """A namespace with an address. Its programs end with the run, or by `kill`."""

    def __init__(self, network, name, number):
        self.network, self.name, self.number = network, name, number
        self.address, self.router = f"10.77.{number}.2", f"10.77.{number}.1"

    def start(self, command, log, **options):
        inside = ["nsenter", f"--net=/run/netns/{self.name}", *(str(part) for part in command)]
        with open(WORK / f"{log}.log", "ab") as out:
            return subprocess.Popen(inside, stdout=options.pop("stdout", out), stderr=out, start_new_session=True, **options)


class Network:
    def __init__(self):
        self.machines, self.slow = {}, None
        for name in ("all", "default"):
            pathlib.Path(f"/proc/sys/net/ipv4/conf/{name}/rp_filter").write_text("0")
            # Delayed packets of this process come from a device, with an address of its own.
            pathlib.Path(f"/proc/sys/net/ipv4/conf/{name}/accept_local").write_text("1")
        pathlib.Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
        run("ip", "link", "set", "lo", "up")
        self.nft("add table inet outage")
        for hook in ("forward", "input"):
            self.nft(f"add chain inet outage {hook} {{ type filter hook {hook} priority 0; }}")

    def add(self, name):
        machine = self.machines[name] = Machine(self, name, len(self.machines) + 1)
        run("ip", "netns", "add", name)
        run("ip", "link", "add", "name", name, "type", "veth", "peer", "name", "eth0", "netns", name)
        run("ip", "address", "add", f"{machine.router}/24", "dev", name)
        run("ip", "link", "set", name, "up")
        inside = f"address add {machine.address}/24 dev eth0; link set lo up; link set eth0 up; route add default via {machine.router}"
        for words in inside.split(";"):
            run("ip", "-n", name, *words.split())
        return machine

    def nft(self, rule):
        run("nft", rule)

    def drop(self, source, target):
        """Drops packets between one machine and another, also of open connections."""
        self.nft(f"add rule inet outage forward ip saddr {source.address} ip daddr {target.address} counter drop")

    def cut(self, machine, others):
        for other in others:
            self.drop(machine, other)
            self.drop(other, machine)

    def lose(self, machine, percent):
        """Drops this percentage of packets from and to a machine, at random."""
        for side in ("saddr", "daddr"):
            self.nft(f"add rule inet outage forward ip {side} {machine.address} numgen random mod 100 < {percent} counter drop")

    def silence(self, port):
        """Drops queries to this machine's own UDP port."""
        self.nft(f"add rule inet outage input udp dport {port} counter drop")

    def dropped(self):
        """Returns the number of packets dropped by the rules in effect."""
        return sum(int(count) for count in re.findall(r"counter packets (\d+)", run("nft", "list", "table", "inet", "outage")))

    def delay(self, machine, ms):
        """Delays every packet to a machine."""
        self.slow = self.slow or Delay()
        self.slow.seconds = ms / 1000
        run("ip", "rule", "add", "pref", "100", "to", machine.address, "lookup", "77")

    def heal(self):
        self.nft("flush chain inet outage forward")
        self.nft("flush chain inet outage input")
        while self.slow and subprocess.run(["ip", "rule", "del", "pref", "100"], capture_output=True).returncode == 0:
            pass


class Delay:
    """A device that returns each packet after a delay. This kernel may lack netem; a TUN device is everywhere."""

    def __init__(self):
        self.seconds, self.waiting, self.changed = 0, [], threading.Condition()
        self.device = os.open("/dev/net/tun", os.O_RDWR)
        # TUNSETIFF, IFF_TUN | IFF_NO_PI.
        fcntl.ioctl(self.device, 0x400454CA, struct.pack("16sH22x", b"slow0", 0x1001))
        run("ip", "link", "set", "slow0", "up")
        run("ip", "route", "add", "default", "dev", "slow0", "table", "77")
        # Packets that return from it use the normal routing table.
        run("ip", "rule", "add", "pref", "50", "iif", "slow0", "lookup", "main")
        for work in (self.take, self.give):
            threading.Thread(target=work, daemon=True).start()

    def take(self):
        while True:
            packet = os.read(self.device, 65_536)
            with self.changed:
                heapq.heappush(self.waiting, (time.monotonic() + self.seconds, packet))
                self.changed.notify()

    def give(self):
        while True:
            with self.changed:
                while not self.waiting or self.waiting[0][0] > time.monotonic():
                    self.changed.wait(max(0.0005, self.waiting[0][0] - time.monotonic()) if self.waiting else None)
                _, packet = heapq.heappop(self.waiting)
            os.write(self.device, packet)


def until(what, holds, seconds=30):
    """Waits for a condition; returns its value."""
    end = time.monotonic() + seconds
    while True:
        try:
            found = holds()
        except (OSError, ValueError):
            found = None
        if found:
            return found
        if time.monotonic() > end:
            raise Broken(f"did not happen within {seconds} s: {what}")
        time.sleep(0.02)


class Broken(Exception):
    """A broken promise, or a fault that shows nowhere."""


def mount_call(source, target, kind, options):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(source.encode(), str(target).encode(), kind.encode(), 0, options.encode()):
        raise OSError(ctypes.get_errno(), f"mount {target}")


def end(process, how=signal.SIGKILL):
    if process and process.poll() is None:
        process.send_signal(how)
    return process and process.wait()
