"""Which nodes of the kernel a value stems from: noted while lowering, looked up only when somebody asks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from core.ir.value import Value


class Provenance(Mapping[Value, tuple[int, ...]]):
    """Rows of the kernel per value, in the order in which they were noted. Most programs are never asked, so a note is all that is kept."""

    def __init__(self) -> None:
        self._notes: list[tuple[int, Sequence[Value]]] = []
        self._rows: dict[Value, tuple[int, ...]] | None = None

    def note(self, row: int, values: Sequence[Value]) -> None:
        """These values are what node `row` gives."""
        self._notes.append((row, values))
        self._rows = None

    def _known(self) -> dict[Value, tuple[int, ...]]:
        if self._rows is None:
            rows: dict[Value, dict[int, None]] = {}
            for row, values in self._notes:
                for value in values:
                    rows.setdefault(value, {})[row] = None
            self._rows = {value: tuple(found) for value, found in rows.items()}
        return self._rows

    def __getitem__(self, value: Value) -> tuple[int, ...]:
        return self._known()[value]

    def __iter__(self) -> Iterator[Value]:
        return iter(self._known())

    def __len__(self) -> int:
        return len(self._known())
