"""A request body becomes what the service needs to know of it: the key, and what is to be done beside compiling.

Between HTTP and `flow`: `core` reads and resolves; what this service does not offer is refused here, by name.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass

from core import Limits, OptionRefused, Request, Search, program_key, read_json
from service.binaries.binary import Offers, Recipe
from service.store.keys import Key


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that was read: what it comes to.

    body: what was read. job: the request for a worker, which need not read it again. tuned: whether the best list known was asked for.
    require: "validated" or None. binaries: those to be made of the program, in the order asked for.
    """

    key: Key
    target: str
    body: bytes
    job: bytes
    tuned: bool = False
    require: str | None = None
    binaries: tuple[Recipe, ...] = ()

    @property
    def plain(self) -> bool:
        """Does the same body always lead to the same answer, with nothing to look up or do beside it?"""
        return not self.tuned and self.require is None and not self.binaries


def asked_in(body: bytes, limits: Limits, offers: Offers) -> Asked:
    """The request in a body. Raises a RequestError where it is none, or asks for what this service does not offer.

    `"tuned"` is the heuristic as long as nothing was tuned, and has its key.
    """
    value = read_json(body, limits)
    request = Request.from_json(value, limits)
    target = request.device.target
    if isinstance(request.optimize, Search):
        raise OptionRefused("/optimize", option="search", reason="this service has no device to search on")
    binaries = _recipes(request, isinstance(value, dict) and value.get("binary") is True, offers)
    job = pickle.dumps(request, pickle.HIGHEST_PROTOCOL)  # here, for it takes its time where the request is large
    return Asked(Key(program_key(request)), target, body, job, request.optimize == "tuned", request.require, binaries)


def _recipes(request: Request, usual: bool, offers: Offers) -> tuple[Recipe, ...]:
    """How the binaries that a request asks for are made. usual: it asked for the target's usual one, by no name."""
    device = request.device
    pointers = ("/binary" if usual else f"/binary/{i}" for i in range(len(request.binary)))
    return tuple(offers.recipe(device.target, name, device.arch, at) for name, at in zip(request.binary, pointers, strict=False))
