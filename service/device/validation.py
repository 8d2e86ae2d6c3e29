"""Validations: a stored program is run on an attached device, and what came of it is kept beside it.

What has run right on a device of its kind need not run again to answer `"require": "validated"`; who asks for the same program meanwhile
waits for the one run. A program that ran wrong goes into quarantine (`catalog` sees to that).
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from core import CompilerBug, LimitExceeded, OptionRefused
from service.answer import Answer
from service.catalog import WRONG, Catalog
from service.device.device import Device, DeviceLost, Trial, Verdict
from service.errors import Quarantined, ServiceError
from service.flight.local import Flights
from service.logs import logger
from service.metrics import Metrics
from service.store.keys import Key

log = logger("validation")

RIGHT = "right"
REQUIRED: Sequence[tuple[int, bool]] = ((0, False), (1, False), (2, True))  # the runs of `"require": "validated"`

Report = dict[str, object]


class Validation:
    """The attached devices, and what is done on them. attach: finds them; it may take a second and runs in a thread."""

    def __init__(self, attach: Callable[[], list[Device]], catalog: Catalog, metrics: Metrics, points: int) -> None:
        self._attach = attach
        self._catalog = catalog
        self._metrics = metrics
        self._points = points
        self._flights: Flights[Report] = Flights()
        self._starts: set[asyncio.Task[None]] = set()
        self.devices: list[Device] = []

    async def start(self) -> bool:
        """Finds the devices. Is there one? (Whether it answers is seen to in the background.)"""
        self.devices = await asyncio.to_thread(self._attach)
        for device in self.devices:
            self._metrics.device_up.labels(device.facts.name).set(0)
            self._wake(device)
        return bool(self.devices)

    def _wake(self, device: Device) -> None:
        start = asyncio.ensure_future(self._started(device))
        self._starts.add(start)
        start.add_done_callback(self._starts.discard)

    async def _started(self, device: Device) -> None:
        alive = await device.start()
        self._metrics.device_up.labels(device.facts.name).set(alive)
        log.info("device", device=device.facts.name, driver=device.facts.driver, alive=alive)

    async def close(self) -> None:
        """Ends the devices' processes."""
        for start in self._starts:
            start.cancel()
        for device in self.devices:
            await device.close()

    def device(self, target: str, name: str | None, pointer: str) -> Device:
        """A device that runs this target's programs, the named one if there is a name. Raises OptionRefused where there is none."""
        fitting = [device for device in self.devices if device.facts.target == target and name in (None, device.facts.name)]
        if not fitting:
            names = ", ".join(device.facts.name for device in self.devices)
            wanted = f"no attached device {'runs ' + target + ' programs' if name is None else 'of this name runs ' + target + ' programs'}"
            raise OptionRefused(pointer, option=name or target, reason=f"{wanted}; attached are {names}")
        return next((device for device in fitting if device.alive), fitting[0])

    async def device_for(self, answer: Answer) -> str:
        """For `"require": "validated"`: the attached device the program has run right on. Raises where it does not."""
        device = self.device(answer.target, None, "/require")
        names = {attached.facts.name for attached in self.devices if attached.facts.target == answer.target}
        for known in reversed(await self._catalog.validations(answer.key)):
            if known.get("verdict") == RIGHT and known.get("device") in names:
                return str(known["device"])
        report, _ = await self._flights.run(answer.key, lambda _: self.validate(answer, device, REQUIRED))
        if report["verdict"] == WRONG:
            raise Quarantined(answer.key)
        if report["verdict"] != RIGHT:
            raise OptionRefused("/require", option="validated", reason=f"{device.facts.name} can't run this program: {report['detail']}")
        return device.facts.name

    async def validate(self, answer: Answer, device: Device, runs: Sequence[tuple[int, bool]]) -> Report:
        """Runs the program and keeps what came of it. Raises ServiceError where the device does not answer, or not in time."""
        trial = Trial(answer.program(), await self._request(answer.key), runs, self._points)
        started, name = time.perf_counter(), device.facts.name
        try:
            verdict = await device.judge(trial)
        except (ServiceError, LimitExceeded) as error:
            self._metrics.device_jobs.labels(name, "validate", error.category).inc()
            if isinstance(error, DeviceLost):
                self._metrics.device_up.labels(name).set(0)
                self._wake(device)
            if isinstance(error, LimitExceeded):  # the reference's budget: a setting here
                facts = error.facts()
                raise LimitExceeded("", limit="validate_points", needed=facts["needed"], allowed=facts["allowed"]) from None
            raise
        report = reported(answer.key, device, verdict, time.perf_counter() - started)
        self._metrics.device_jobs.labels(name, "validate", "done").inc()
        self._metrics.validations.labels(name, verdict.verdict).inc()
        await self._catalog.keep_validation(answer.key, report)
        if verdict.verdict == WRONG:
            log.error("a defect: a program ran wrong", key=answer.key, device=name, why=verdict.why, detail=verdict.detail)
        return report

    async def _request(self, key: Key) -> Mapping[str, object]:
        request = await self._catalog.request(key)
        if request is None:
            raise CompilerBug("validate", f"the request of the program {key} is not stored beside it")
        value: Mapping[str, object] = json.loads(request)
        return value


def reported(key: Key, device: Device, verdict: Verdict, seconds: float) -> Report:
    """A verdict as it is answered and kept."""
    return {
        "key": key, "verdict": verdict.verdict, "why": verdict.why, "detail": verdict.detail, "device": device.facts.name,
        "driver": device.facts.driver, "runs": list(verdict.runs), "seconds": round(seconds, 6),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }  # fmt: skip
