"""The `compiler` of keys: a digest of core's own sources. It follows from what the compiler is, and nobody has to raise it.

The one read core makes of itself, once, at import. A program compiled by other sources has another key.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable


def _sources(folder: Traversable, path: str = "") -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.is_dir() and entry.name != "__pycache__":
            yield from _sources(entry, f"{path}{entry.name}/")
        elif entry.name.endswith(".py"):
            yield path + entry.name, entry.read_bytes()


def digest(folder: Traversable) -> str:
    """SHA-256 over the paths and contents of a folder's Python sources, in the order of their paths."""
    total = sha256()
    for path, source in sorted(_sources(folder)):
        total.update(f"{path}\0{len(source)}\0".encode())
        total.update(source)
    return total.hexdigest()


COMPILER = f"lathe-{digest(files('core'))[:16]}"
