"""Ends the processes that ran programs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.meaning.harness import PROCESSES


@pytest.fixture(scope="session", autouse=True)
def processes_end() -> Iterator[None]:
    yield
    PROCESSES.close()
