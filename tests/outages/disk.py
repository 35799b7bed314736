"""A disk that can be broken: an ext4 file system on a loop device, whose bytes this program serves to the kernel by FUSE. So errors and
delays come from below the file system, and the kernel's page cache does with them what it does with those of a real disk. With
`cut_power` only what had reached the disk is left."""

import errno
import mmap
import os
import re
import select
import struct
import time

from machines import WORK, mount_call, run, skip, until

# One block group, so that everything but contents lies at the beginning.
MEGABYTES = 120
BLOCK = 4_096
# Shared with the process that serves: fail writes between two bytes, delay each (ms), and what to do with all.
CONTROL = struct.Struct("=QQII")
# Answers; keeps writes and syncs without an answer; fails them; fails reads too.
WORK_ON, HOLD, FAIL, GONE = range(4)
WRITE_MAX = 128 * 1_024


class Disk:
    def __init__(self, name):
        if not os.path.exists("/dev/fuse"):
            skip("/dev/fuse is not here")
        self.image, self.place = WORK / f"{name}.img", WORK / name
        self.place.mkdir()
        with open(self.image, "wb") as image:
            image.truncate(MEGABYTES * 1_048_576)
        # Directories are in their inodes.
        own_first = "packed_meta_blocks=1,lazy_itable_init=0,lazy_journal_init=0"
        shape = ["-b", BLOCK, "-I", 1_024, "-N", 1_024, "-O", "inline_data", "-m", 0, "-J", "size=8", "-E", own_first]
        run("mkfs.ext4", "-q", *shape, self.image)
        free = re.search(r"Free blocks: (\d+)", run("dumpe2fs", self.image).split("Group 0:")[1])
        self.size, self.contents = MEGABYTES * 1_048_576, int(free[1]) * BLOCK
        self.control = mmap.mmap(-1, CONTROL.size)
        self.serve()
        self.mount()

    def serve(self):
        beneath = WORK / f"{self.place.name}.fuse"
        beneath.mkdir()
        device = os.open("/dev/fuse", os.O_RDWR)
        mount_call("outage", beneath, "fuse", f"fd={device},rootmode=40000,user_id=0,group_id=0")
        if os.fork() == 0:
            try:
                Server(device, self.image, self.control).run()
            finally:
                os._exit(1)
        os.close(device)
        self.beneath = beneath / "disk"

    def mount(self):
        run("mount", "-o", "loop", self.beneath, self.place)

    def set(self, failing=(0, 0), delay_ms=0, mode=WORK_ON):
        self.control[:] = CONTROL.pack(*failing, delay_ms, mode)

    def fail_contents(self):
        """Writes of files' contents fail, and the file system's own do not."""
        self.set(failing=(self.contents, self.size))

    def fill(self):
        """Takes all free space."""
        with open(self.place / "filler", "ab") as filler:
            size = 1_048_576
            while size:
                try:
                    os.posix_fallocate(filler.fileno(), filler.tell(), size)
                    filler.seek(0, os.SEEK_END)
                except OSError:
                    size //= 2

    def free(self):
        (self.place / "filler").unlink(missing_ok=True)

    def become_read_only(self):
        """Fails writes of ext4's journal until it has given up; then the disk works, and the file system stays as it is."""
        self.set(failing=(0, self.contents))
        until("ext4 has given up", self.refuses)
        self.set()

    def refuses(self):
        try:
            (self.place / "tried").write_text("")
        except OSError as error:
            return error.errno == errno.EROFS

    def cut_power(self, kill):
        """Stops all writes and their answers at one moment, so that no process notices; then the processes end. A new mount has the content
        that had reached the disk at that moment."""
        self.set(mode=HOLD)
        kill(lambda: self.set(mode=FAIL))
        self.remount()

    def be_gone(self):
        """Every request fails from now on."""
        self.set(mode=GONE)

    def remount(self):
        """Mounts it anew, as it is; what was not written is forgotten."""
        until("the disk can be unmounted", lambda: run("umount", self.place) == "", 20)
        self.set()
        self.mount()


class Server:
    """The FUSE protocol for one file (linux/fuse.h, 7.31)."""

    HEAD, OUT, ROOT, FILE = struct.Struct("=IIQQIIIHH"), struct.Struct("=IiQ"), 1, 2
    # READ; WRITE and FSYNC.
    READ, CHANGES = 15, (16, 20)

    def __init__(self, device, image, control):
        self.device, self.control = device, control
        self.image = os.open(image, os.O_RDWR)
        self.size = os.fstat(self.image).st_size
        self.calls = {1: self.lookup, 3: self.attributes, 4: self.attributes, 14: self.opened, 15: self.read, 16: self.write}
        self.calls |= {17: self.statfs, 26: self.init, 27: self.opened, **dict.fromkeys((18, 20, 25, 29), self.nothing)}

    def run(self):
        held = []
        while True:
            mode = CONTROL.unpack(self.control[:])[3]
            if mode != HOLD:
                for request in held:
                    self.answer(request, mode)
                held = []
            if held and not select.select([self.device], [], [], 0.01)[0]:
                continue
            request = os.read(self.device, WRITE_MAX + 8_192)
            if CONTROL.unpack(self.control[:])[3] == HOLD and self.HEAD.unpack_from(request)[1] in self.CHANGES:
                held.append(request)
            else:
                self.answer(request, mode)

    def answer(self, request, mode):
        _, code, unique, node, *_ = self.HEAD.unpack_from(request)
        # FORGET, INTERRUPT and BATCH_FORGET are not answered.
        if code in (2, 36, 42):
            return
        error, body = 0, b""
        try:
            if (mode in (FAIL, GONE) and code in self.CHANGES) or (mode == GONE and code == self.READ):
                raise OSError(5, "the disk is gone")
            # ENOSYS: the kernel does without.
            body = self.calls[code](node, request[self.HEAD.size :]) if code in self.calls else None
            error = -38 if body is None else 0
        except OSError as failed:
            error = -failed.errno
        body = body or b""
        os.write(self.device, self.OUT.pack(self.OUT.size + len(body), error, unique) + body)

    def init(self, node, body):
        readahead = struct.unpack_from("=III", body)[2]
        # FUSE_BIG_WRITES and FUSE_MAX_PAGES.
        return struct.pack("=IIIIHHIIHHII24x", 7, 31, readahead, 1 << 5 | 1 << 22, 8, 6, WRITE_MAX, 1, WRITE_MAX // BLOCK, 0, 0, 0)

    def nothing(self, node, body):
        return b""

    def stat(self, node):
        mode, size = (0o040755, 4_096) if node == self.ROOT else (0o100600, self.size)
        return struct.pack("=6Q10I", node, size, size // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, BLOCK, 0)

    def lookup(self, node, body):
        if body.rstrip(b"\0") != b"disk":
            raise OSError(2, "nothing else is here")
        return struct.pack("=QQQQII", self.FILE, 0, 3_600, 3_600, 0, 0) + self.stat(self.FILE)

    def attributes(self, node, body):
        return struct.pack("=QII", 3_600, 0, 0) + self.stat(node)

    def opened(self, node, body):
        return struct.pack("=QII", node, 0, 0)

    def statfs(self, node, body):
        return struct.pack("=5Q4I24x", 1 << 20, 1 << 19, 1 << 19, 9, 9, BLOCK, 255, BLOCK, 0)

    def read(self, node, body):
        _, offset, size = struct.unpack_from("=QQI", body)
        return os.pread(self.image, size, offset)

    def write(self, node, body):
        _, offset, size = struct.unpack_from("=QQI", body)
        first, last, delay_ms, _ = CONTROL.unpack(self.control[:])
        # A block of a file's extents (its magic number) is the file system's own, wherever it lies.
        if first <= offset < last and body[40:42] != b"\x0a\xf3":
            raise OSError(5, "the disk fails")
        time.sleep(delay_ms / 1000)
        os.pwrite(self.image, body[40 : 40 + size], offset)
        return struct.pack("=II", size, 0)
