"""Work that is done by worker processes: what may be given to them, and what is made of what comes back.

Whatever a worker does for a key (a program's, a binary's) is done here in the same way: kernels that kill workers are left alone,
refusals are kept, defects are logged, times are counted.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from core import RequestError
from service import tracing
from service.catalog import Catalog
from service.errors import WorkerLost
from service.logs import logger
from service.metrics import Metrics
from service.shun import Shun
from service.store.keys import Key
from service.workers.job import Built, Failed, Made, Outcome, Told

log = logger("flow")

Work = Callable[[], Awaitable[tuple[Outcome, float]]]


class Supervision:
    """Of everything that workers do."""

    def __init__(self, catalog: Catalog, shun: Shun, metrics: Metrics) -> None:
        self._catalog = catalog
        self._shun = shun
        self._metrics = metrics

    async def worked(self, key: Key, work: Work, asked: bytes) -> tuple[Made | Told | Built, float]:
        """What a worker process has made, and the seconds it was waited for. Raises why there is nothing.

        asked: what the log is to show of a request that meets a defect.
        """
        self._shun.refuse(key)
        try:
            outcome, waited_s = await work()
        except WorkerLost:
            offence = self._shun.offended(key, await self._catalog.offence(key))
            await self._catalog.keep_offence(key, offence)
            raise
        self._shun.absolve(key)
        self._observe(outcome, waited_s)
        tracing.worked(outcome.began_ns, outcome.pid, outcome.stages, waited_s)
        if isinstance(outcome, Failed):
            await self._refused(key, outcome, asked)
            raise outcome.error
        return outcome, waited_s

    async def _refused(self, key: Key, failed: Failed, asked: bytes) -> None:
        if isinstance(failed.error, RequestError):
            await self._catalog.keep_refusal(key, failed.error)
        elif failed.trace is not None:
            log.error("a defect of the compiler", key=key, error=str(failed.error), trace=failed.trace, request=_short(asked))

    def _observe(self, outcome: Outcome, waited_s: float) -> None:
        self._metrics.stage("queue").observe(waited_s)
        if not isinstance(outcome, Failed):
            for name, stage_s in outcome.stages.items():
                self._metrics.stage(name).observe(stage_s)


def _short(text: bytes, most: int = 4000) -> str:
    return text[:most].decode(errors="replace") + ("…" if len(text) > most else "")
