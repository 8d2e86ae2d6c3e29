"""The store in a file: survives its process, is shared by several, and says so when the file is no use."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from service.errors import StoreDown
from service.store.keys import Key, Kind, Name
from service.store.sqlite import SWEEP_EVERY, SqliteStore
from service.store.sqlite_file import SqliteFile
from service.store.store import Entry

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]


def name(i: int, kind: Kind = Kind.PROGRAM) -> Name:
    return Name(kind, Key(f"{i:064x}"))


async def test_values_are_there_after_closing_and_opening_again(tmp_path: Path) -> None:
    file = tmp_path / "new" / "folder" / "lathe.db"
    store = SqliteStore(SqliteFile(file))
    await store.put(Entry(name(1), b"value"))
    await store.close()
    again = SqliteStore(SqliteFile(file))

    assert [b"value"] == await again.many([name(1)])
    await again.close()


WRITER = """
import asyncio, sys
from pathlib import Path
from service.store.keys import Key, Kind, Name
from service.store.sqlite import SqliteStore
from service.store.sqlite_file import SqliteFile
from service.store.store import Entry

async def main(first: int) -> None:
    store = SqliteStore(SqliteFile(Path(sys.argv[1]), timeout_s=60))
    for i in range(first, first + 50):
        await store.put(Entry(Name(Kind.PROGRAM, Key(f"{i:064x}")), b"%d" % i))
    await store.close()

asyncio.run(main(int(sys.argv[2])))
"""


async def test_several_processes_write_at_the_same_time(tmp_path: Path) -> None:
    file = tmp_path / "lathe.db"
    command = [sys.executable, "-c", WRITER, str(file)]
    writers = [subprocess.Popen([*command, str(100 * i)], cwd=ROOT) for i in range(3)]
    store = SqliteStore(SqliteFile(file, timeout_s=60))
    while any(writer.poll() is None for writer in writers):
        await store.many([name(i) for i in range(300)])
        await asyncio.sleep(0.01)

    assert [0, 0, 0] == [writer.returncode for writer in writers]
    expected = [100 * k + i for k in range(3) for i in range(50)]
    assert [b"%d" % i for i in expected] == await store.many([name(i) for i in expected])
    await store.close()


async def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "diary.txt"
    file.write_text("dear diary " * 100)
    store = SqliteStore(SqliteFile(file))

    with pytest.raises(StoreDown, match="not a database"):
        await store.ping()
    await store.close()
    assert "dear diary " * 100 == file.read_text()


async def test_a_file_of_a_later_version_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "lathe.db"
    with sqlite3.connect(file) as db:
        db.execute("PRAGMA user_version=99")
    store = SqliteStore(SqliteFile(file))

    with pytest.raises(StoreDown, match="version 99"):
        await store.ping()
    await store.close()


async def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = SqliteStore(SqliteFile(tmp_path / "lathe.db"))
    await store.close()

    with pytest.raises(StoreDown, match="closed"):
        await store.ping()


async def test_a_locked_file_costs_its_time_limit_and_is_used_again_afterwards(tmp_path: Path) -> None:
    file = tmp_path / "lathe.db"
    store = SqliteStore(SqliteFile(file, timeout_s=0.1))
    await SqliteStore(SqliteFile(file)).ping()
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StoreDown):
        await store.put(Entry(name(1), b"v"))
    other.execute("ROLLBACK")
    other.close()
    patient = SqliteStore(SqliteFile(file, timeout_s=60))
    await patient.put(Entry(name(1), b"v"))

    assert [b"v"] == await patient.many([name(1)])
    await patient.close()
    await store.close()


async def test_what_has_expired_is_swept_out_of_the_file(tmp_path: Path) -> None:
    now = [1000.0]
    file = tmp_path / "lathe.db"
    store = SqliteStore(SqliteFile(file, timeout_s=60, clock=lambda: now[0]))
    await store.put(*(Entry(name(i), b"v", 10.0) for i in range(50)))
    now[0] += 11
    for i in range(SWEEP_EVERY):
        await store.put(Entry(name(1000 + i % 3), b"w", 1000.0))
    await store.close()

    with sqlite3.connect(file) as db:
        assert 3 == db.execute("SELECT count(*) FROM entries").fetchone()[0]
