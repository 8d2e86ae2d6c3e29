"""Leases in an SQLite file, for several processes on one host. There is no word of their end: who waits looks now and then."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable

from service.flight.leases import LANDED, Standing
from service.store.keys import Key
from service.store.sqlite_file import SqliteFile, writing

FAILED_S = 5.0  # how long word of a failure stays; whoever waits looks far more often


class SqliteLeases:
    """Rows of a table beside the values. A row with a failure is held by nobody: it is word of how its holder ended."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    async def take(self, key: Key, token: str, lease_s: float) -> Standing:
        return await self._file.run(lambda db: self._take(db, key, token, lease_s))

    def _take(self, db: sqlite3.Connection, key: Key, token: str, lease_s: float) -> Standing:
        with writing(db):
            before = self._standing(db, key)
            if before.holder is not None:
                return before
            row = (key, token, self._file.clock() + lease_s)
            db.execute("INSERT OR REPLACE INTO leases (key, token, expires) VALUES (?,?,?)", row)
        return Standing(token, before.landed, before.failed)

    async def renew(self, key: Key, token: str, lease_s: float) -> bool:
        def extend(db: sqlite3.Connection) -> bool:
            now = self._file.clock()
            row = (now + lease_s, key, token, now)
            return db.execute("UPDATE leases SET expires=? WHERE key=? AND token=? AND failure IS NULL AND expires>?", row).rowcount == 1

        return await self._file.run(extend)

    async def release(self, key: Key, token: str, failure: bytes | None = None) -> None:
        def end(db: sqlite3.Connection) -> None:
            if failure is None:
                db.execute("DELETE FROM leases WHERE key=? AND token=?", (key, token))
            else:
                row = (failure, self._file.clock() + FAILED_S, key, token)
                db.execute("UPDATE leases SET failure=?, expires=? WHERE key=? AND token=?", row)

        await self._file.run(end)

    async def standing(self, key: Key) -> Standing:
        return await self._file.run(lambda db: self._standing(db, key))

    def _standing(self, db: sqlite3.Connection, key: Key) -> Standing:
        now = self._file.clock()
        there = f"SELECT 1 FROM entries WHERE key=? AND kind IN ({','.join('?' * len(LANDED))}) AND (expires IS NULL OR expires>?)"
        landed = db.execute(there, (key, *LANDED, now)).fetchone() is not None
        row = db.execute("SELECT token, failure FROM leases WHERE key=? AND expires>?", (key, now)).fetchone()
        if row is None:
            return Standing(None, landed)
        token, failure = row
        return Standing(token, landed) if failure is None else Standing(None, landed, (token, bytes(failure)))

    async def listen(self, heard: Callable[[Key], None]) -> None:
        await asyncio.Event().wait()
