"""A store in one SQLite file: the embedded default. Survives restarts; several processes of a host may share it."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Sequence
from functools import partial

from service.store.keys import Key, Kind, Name
from service.store.sqlite_file import SqliteFile, writing
from service.store.store import Entry

SWEEP_EVERY = 256  # puts between two sweeps of what has expired
SWEEP_MOST = 1000  # rows one sweep deletes, so that it stays short
PAGE = 1000  # keys that are listed at once
MANY = 400  # names in one statement: two variables each, below the bound of 999 of SQLite before 3.32


class SqliteStore:
    """Keeps values in a file."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file
        self._puts = 0

    async def many(self, names: Sequence[Name]) -> list[bytes | None]:
        return await self._file.run(lambda db: self._many(db, names))

    async def put(self, *entries: Entry) -> None:
        await self._file.run(lambda db: self._put(db, entries))

    async def renew(self, names: Sequence[Name], lifetime_s: float) -> None:
        rows = [(self._file.clock() + lifetime_s, name.kind, name.key) for name in names]
        await self._file.run(lambda db: db.executemany("UPDATE entries SET expires=? WHERE kind=? AND key=?", rows))

    async def delete(self, *names: Name) -> None:
        rows = [(name.kind, name.key) for name in names]
        await self._file.run(lambda db: db.executemany("DELETE FROM entries WHERE kind=? AND key=?", rows))

    async def keys(self, kind: Kind) -> AsyncIterator[Key]:
        last = ""
        while True:
            found = await self._file.run(partial(self._page, kind, last))
            for key in found:
                yield Key(key)
                last = key
            if len(found) < PAGE:
                return

    async def ping(self) -> None:
        await self._file.run(lambda db: db.execute("SELECT 1 FROM entries LIMIT 1").fetchone())

    async def close(self) -> None:
        await self._file.close()

    def _page(self, kind: Kind, after: str, db: sqlite3.Connection) -> list[str]:
        query = "SELECT key FROM entries WHERE kind=? AND key>? AND (expires IS NULL OR expires>?) ORDER BY key LIMIT ?"
        return [key for (key,) in db.execute(query, (kind, after, self._file.clock(), PAGE))]

    def _many(self, db: sqlite3.Connection, names: Sequence[Name]) -> list[bytes | None]:
        now = self._file.clock()
        found: dict[tuple[str, str], bytes] = {}
        for start in range(0, len(names), MANY):
            part = names[start : start + MANY]
            places = ",".join("(?,?)" for _ in part)
            query = f"SELECT kind, key, value FROM entries WHERE (kind, key) IN (VALUES {places}) AND (expires IS NULL OR expires>?)"
            words = [word for name in part for word in (name.kind, name.key)]
            for kind, key, value in db.execute(query, [*words, now]):
                found[(kind, key)] = bytes(value)
        return [found.get((name.kind, name.key)) for name in names]

    def _put(self, db: sqlite3.Connection, entries: Sequence[Entry]) -> None:
        now = self._file.clock()
        rows = [
            (entry.name.kind, entry.name.key, entry.value, None if entry.lifetime_s is None else now + entry.lifetime_s)
            for entry in entries
        ]
        self._puts += 1
        with writing(db):
            db.executemany("INSERT OR REPLACE INTO entries (kind, key, value, expires) VALUES (?,?,?,?)", rows)
            if self._puts % SWEEP_EVERY == 1:
                db.execute("DELETE FROM entries WHERE rowid IN (SELECT rowid FROM entries WHERE expires<=? LIMIT ?)", (now, SWEEP_MOST))
                db.execute("DELETE FROM leases WHERE expires<=?", (now,))
