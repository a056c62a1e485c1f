"""Control groups of Linux, versions 1 and 2: a memory limit, a throttled disk and counters for one process."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from pathlib import Path

MOUNT = Path("/sys/fs/cgroup")


class Unavailable(Exception):
    """Control groups cannot be used here; the message says why."""


def disk_of(folder: Path) -> str:
    """The disk that holds a folder, as "MAJOR:MINOR".

    Raises:
        Unavailable: The file system is not one on a disk.
    """
    number = folder.stat().st_dev
    device = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve()
    if not device.is_dir():
        raise Unavailable(f"{folder} is not on a disk of its own")
    if (device / "partition").exists():  # only whole disks can be throttled
        device = device.parent
    return (device / "dev").read_text().strip()


class Group(ABC):
    """A group that counts, and may limit, the memory of its processes and what they read from one disk."""

    def __init__(self, name: str, disk: str, *folders: Path) -> None:
        """`disk` as `disk_of` returns it; the group's `folders`, one for each hierarchy."""
        self.name = name
        self._disk = disk
        self._folders = folders

    def create(self, memory_bytes: int | None = None, disk_bytes_per_s: int | None = None) -> None:
        """Creates the group, with limits on memory, page cache included, and on the speed of reading.

        Raises:
            Unavailable: The system does not let this process create it.
        """
        try:
            for folder in self._folders:
                folder.mkdir()
            if memory_bytes is not None:
                self._limit_memory(memory_bytes)
            if disk_bytes_per_s is not None:
                self._limit_disk(disk_bytes_per_s)
        except OSError as error:
            self.remove()
            raise Unavailable(f"{error.filename}: {error.strerror}") from error

    def join(self) -> None:
        """Moves this process into the group. What it has allocated before stays on the old group's account."""
        for folder in self._folders:
            (folder / "cgroup.procs").write_text(str(os.getpid()))

    def remove(self) -> None:
        """Removes the group, which must be empty."""
        for folder in self._folders:
            if folder.exists():
                folder.rmdir()

    @abstractmethod
    def disk_bytes(self) -> int:
        """Bytes read from the disk since the group was created."""

    @abstractmethod
    def memory_bytes(self) -> int:
        """Bytes of resident memory, without the page cache and other files."""

    @abstractmethod
    def _limit_memory(self, size: int) -> None: ...

    @abstractmethod
    def _limit_disk(self, bytes_per_s: int) -> None: ...


class _GroupV1(Group):
    def __init__(self, name: str, disk: str) -> None:
        self._memory, self._blkio = MOUNT / "memory" / name, MOUNT / "blkio" / name
        super().__init__(name, disk, self._memory, self._blkio)

    def disk_bytes(self) -> int:
        lines = map(str.split, (self._blkio / "blkio.throttle.io_service_bytes").read_text().splitlines())
        return next((int(line[2]) for line in lines if line[:2] == [self._disk, "Read"]), 0)

    def memory_bytes(self) -> int:
        return _statistic(self._memory, "rss")

    def _limit_memory(self, size: int) -> None:
        (self._memory / "memory.limit_in_bytes").write_text(str(size))
        swap = self._memory / "memory.memsw.limit_in_bytes"  # of memory and swap together
        if swap.exists():
            swap.write_text(str(size))

    def _limit_disk(self, bytes_per_s: int) -> None:
        (self._blkio / "blkio.throttle.read_bps_device").write_text(f"{self._disk} {bytes_per_s}")


class _GroupV2(Group):
    def __init__(self, name: str, disk: str) -> None:
        self._folder = MOUNT / name
        super().__init__(name, disk, self._folder)

    def disk_bytes(self) -> int:
        lines = map(str.split, (self._folder / "io.stat").read_text().splitlines())
        counters = next((line[1:] for line in lines if line[0] == self._disk), [])
        return next((int(counter[7:]) for counter in counters if counter.startswith("rbytes=")), 0)

    def memory_bytes(self) -> int:
        return _statistic(self._folder, "anon")

    def _limit_memory(self, size: int) -> None:
        (self._folder / "memory.max").write_text(str(size))
        swap = self._folder / "memory.swap.max"
        if swap.exists():
            swap.write_text("0")

    def _limit_disk(self, bytes_per_s: int) -> None:
        (self._folder / "io.max").write_text(f"{self._disk} rbps={bytes_per_s}")


def _statistic(folder: Path, key: str) -> int:
    lines = map(str.split, (folder / "memory.stat").read_text().splitlines())
    return next(int(value) for name, value in lines if name == key)


def group(name: str, disk: str) -> Group:
    """The group of that name, which need not exist yet.

    Raises:
        Unavailable: There are no control groups for memory and disks.
    """
    if (MOUNT / "memory").is_dir() and (MOUNT / "blkio").is_dir():
        return _GroupV1(name, disk)
    controls = MOUNT / "cgroup.subtree_control"
    if controls.is_file() and {"memory", "io"} <= set(controls.read_text().split()):
        return _GroupV2(name, disk)
    raise Unavailable(f"{MOUNT} has no control groups for memory and disks")
