"""Free ports below those that the system hands out by itself, so that no connection of another process takes one meanwhile.

  python3 tests/deploy/ports.py COUNT    prints them on one line
"""
import contextlib
import random
import socket
import sys


def free_ports(count):
    with contextlib.ExitStack() as held:
        ports = []
        while len(ports) < count:
            port = random.randrange(30_000, 32_700)
            with contextlib.suppress(OSError):
                held.enter_context(socket.create_server(("127.0.0.1", port)))
                ports.append(port)
        return ports


if __name__ == "__main__":
    print(*free_ports(int(sys.argv[1])))
