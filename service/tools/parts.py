"""The service's parts at work without HTTP: its store and workers under the same settings, for a command that ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from service.app import build
from service.errors import NotReady
from service.services import Services
from service.settings import Settings


@asynccontextmanager
async def parts(settings: Settings, *, compiling: bool = False) -> AsyncIterator[Services]:
    """The parts, with a store that answers; compiling: and with workers that do. Raises StoreDown, or NotReady where none starts."""
    _, services = build(settings.model_copy(update={"devices": "none"}))
    try:
        await services.catalog.check()
        if compiling:
            await services.compiler.start()
            async with asyncio.timeout(settings.worker_start_s):
                while not services.compiler.answers:
                    await asyncio.sleep(0.02)
        yield services
    except TimeoutError:
        raise NotReady("no worker has started") from None
    finally:
        await services.compiler.close()
        await services.catalog.close()


@contextmanager
def progress(console: Console, what: str, total: int | None) -> Iterator[Progress]:
    """A progress bar of one task, on a terminal; elsewhere nothing is drawn. Tell it `advance(TaskID(0))`."""
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        bar.add_task(what, total=total)
        yield bar
