"""A store in one SQLite file: the embedded default. Survives restarts; several threads and processes of a host may share it.

The file is in WAL mode: readers never wait for a writer. Calls run in two threads of their own, each with its connection, so
that a slow disk never holds up the event loop. A commit is not synced to the disk: a power cut may cost the last values, which
are then compiled again, never the file.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from service.errors import StoreDown
from service.store.keys import LASTING, Name
from service.store.store import Entry

T = TypeVar("T")

SCHEMA_VERSION = 1
BUSY_S = 2.0  # how long a writer waits for another process's write
SWEEP_EVERY = 256  # puts between two sweeps of what has expired
SWEEP_MOST = 1000  # rows one sweep deletes, so that it stays short
MANY = 400  # names in one statement: two variables each, below the bound of 999 of SQLite before 3.32
RENEW_BELOW = 0.9  # part of a lifetime that must have run down before a read renews it: a write per read would be too many

_SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
    kind TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, expires REAL, PRIMARY KEY (kind, key)
);
CREATE INDEX IF NOT EXISTS entries_expires ON entries (expires) WHERE expires IS NOT NULL;
"""


class SqliteStore:
    """Keeps values in the file at `path`, which is made (with its folder) where it does not exist.

    timeout_s: how long a call may take before it fails with StoreDown. clock: seconds since the epoch, for expiry.
    """

    def __init__(self, path: Path, timeout_s: float = 5.0, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._timeout_s = timeout_s
        self._clock = clock
        self._threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="sqlite")
        self._local = threading.local()
        self._opened: list[sqlite3.Connection] = []
        self._opening = threading.Lock()
        self._puts = 0
        self._closed = False

    async def many(self, names: Sequence[Name], renew_s: float | None = None) -> list[bytes | None]:
        return await self._run(lambda db: self._many(db, names, renew_s))

    async def put(self, *entries: Entry) -> None:
        await self._run(lambda db: self._put(db, entries))

    async def delete(self, *names: Name) -> None:
        await self._run(lambda db: self._delete(db, names))

    async def ping(self) -> None:
        await self._run(lambda db: db.execute("SELECT 1 FROM entries LIMIT 1").fetchone())

    async def close(self) -> None:
        self._closed = True
        await asyncio.to_thread(self._threads.shutdown, True)
        for db in self._opened:
            db.close()

    async def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._closed:
            raise StoreDown("the store is closed")
        future = asyncio.get_running_loop().run_in_executor(self._threads, lambda: work(self._connection()))
        try:
            return await asyncio.wait_for(future, self._timeout_s)
        except (sqlite3.Error, OSError) as error:
            raise StoreDown(f"SQLite: {error}") from error
        except TimeoutError:
            raise StoreDown(f"SQLite did not answer within {self._timeout_s:g} s") from None

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
            if version not in (0, SCHEMA_VERSION):
                raise sqlite3.DatabaseError(f"{self._path} is of version {version}, not {SCHEMA_VERSION}")
            if version == 0:
                db.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version={SCHEMA_VERSION}; COMMIT;")
        except BaseException:
            db.close()
            raise
        return db

    def _many(self, db: sqlite3.Connection, names: Sequence[Name], renew_s: float | None) -> list[bytes | None]:
        now = self._clock()
        found: dict[tuple[str, str], bytes] = {}
        stale: list[tuple[float, str, str]] = []
        for start in range(0, len(names), MANY):
            part = names[start : start + MANY]
            places = ",".join("(?,?)" for _ in part)
            query = f"SELECT kind, key, value, expires FROM entries WHERE (kind, key) IN (VALUES {places})"
            for kind, key, value, expires in db.execute(query, [word for name in part for word in (name.kind, name.key)]):
                if expires is not None and expires <= now:
                    continue
                found[(kind, key)] = bytes(value)
                if renew_s is not None and kind in LASTING and expires is not None and expires < now + RENEW_BELOW * renew_s:
                    stale.append((now + renew_s, kind, key))
        if stale:
            db.executemany("UPDATE entries SET expires=? WHERE kind=? AND key=?", stale)
        return [found.get((name.kind, name.key)) for name in names]

    def _put(self, db: sqlite3.Connection, entries: Sequence[Entry]) -> None:
        now = self._clock()
        rows = [
            (entry.name.kind, entry.name.key, entry.value, None if entry.lifetime_s is None else now + entry.lifetime_s)
            for entry in entries
        ]
        self._puts += 1
        db.execute("BEGIN IMMEDIATE")
        try:
            db.executemany("INSERT OR REPLACE INTO entries (kind, key, value, expires) VALUES (?,?,?,?)", rows)
            if self._puts % SWEEP_EVERY == 1:
                db.execute("DELETE FROM entries WHERE rowid IN (SELECT rowid FROM entries WHERE expires<=? LIMIT ?)", (now, SWEEP_MOST))
        except BaseException:
            db.execute("ROLLBACK")
            raise
        db.execute("COMMIT")

    def _delete(self, db: sqlite3.Connection, names: Sequence[Name]) -> None:
        db.executemany("DELETE FROM entries WHERE kind=? AND key=?", [(name.kind, name.key) for name in names])
