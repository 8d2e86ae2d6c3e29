"""One SQLite file that several threads and processes of a host share: opened in the right mode, used from threads of its own.

The file is in WAL mode: readers never wait for a writer. Calls run in two threads, each with its connection, so that a slow disk
never holds up the event loop. A commit is not synced to the disk: a power cut may cost the last values, which are then made
again, never the file.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from service.errors import StoreDown

T = TypeVar("T")

SCHEMA_VERSION = 2
BUSY_S = 2.0  # how long a writer waits for another process's write

_SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
    kind TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, expires REAL, PRIMARY KEY (kind, key)
);
CREATE INDEX IF NOT EXISTS entries_expires ON entries (expires) WHERE expires IS NOT NULL;
CREATE TABLE IF NOT EXISTS leases (key TEXT NOT NULL PRIMARY KEY, token TEXT NOT NULL, expires REAL NOT NULL, failure BLOB);
"""  # version 1 had no leases


class SqliteFile:
    """The file at `path`, which is made (with its folder) where it does not exist.

    timeout_s: how long a call may take before it fails with StoreDown. clock: seconds since the epoch, for expiry.
    """

    def __init__(self, path: Path, timeout_s: float = 5.0, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self._path = path
        self._timeout_s = timeout_s
        self._threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="sqlite")
        self._local = threading.local()
        self._opened: list[sqlite3.Connection] = []
        self._opening = threading.Lock()
        self._closed = False

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """The result of `work` in one of the threads. Raises StoreDown where the file is of no use, or busy for too long."""
        if self._closed:
            raise StoreDown("the store is closed")
        future = asyncio.get_running_loop().run_in_executor(self._threads, lambda: work(self._connection()))
        try:
            return await asyncio.wait_for(future, self._timeout_s)
        except (sqlite3.Error, OSError) as error:
            raise StoreDown(f"SQLite: {error}") from error
        except TimeoutError:
            raise StoreDown(f"SQLite did not answer within {self._timeout_s:g} s") from None

    async def close(self) -> None:
        self._closed = True
        await asyncio.to_thread(self._threads.shutdown, True)
        for db in self._opened:
            db.close()

    def _connection(self) -> sqlite3.Connection:
        db: sqlite3.Connection | None = getattr(self._local, "db", None)
        if db is None:
            with self._opening:
                db = self._open()
                self._opened.append(db)
            self._local.db = db
        return db

    def _open(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(self._path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("PRAGMA synchronous=NORMAL")
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if version > SCHEMA_VERSION:
                raise sqlite3.DatabaseError(f"{self._path} is of version {version}, not {SCHEMA_VERSION}")
            if version < SCHEMA_VERSION:
                db.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version={SCHEMA_VERSION}; COMMIT;")
        except BaseException:
            db.close()
            raise
        return db


@contextmanager
def writing(db: sqlite3.Connection) -> Iterator[None]:
    """A transaction that nobody else's write comes between."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")
