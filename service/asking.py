"""A request body becomes what the service needs to know of it: the key, and what is to be done beside compiling.

Between HTTP and `flow`: `core` reads and resolves; what this service does not offer is refused here, by name.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass

from core import Limits, OptionRefused, Request, Search, TargetError, program_key, read_json
from service.store.keys import Key


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that was read: what it comes to.

    body: what was read. job: the request for a worker, which need not read it again. tuned: whether the best list known was asked for.
    require: "validated" or None.
    """

    key: Key
    target: str
    body: bytes
    job: bytes
    tuned: bool = False
    require: str | None = None

    @property
    def plain(self) -> bool:
        """Does the same body always lead to the same answer, with nothing to look up or do beside it?"""
        return not self.tuned and self.require is None


def asked_in(body: bytes, limits: Limits) -> Asked:
    """The request in a body. Raises a RequestError where it is none, or asks for what this service does not offer.

    `"tuned"` is the heuristic as long as nothing was tuned, and has its key.
    """
    request = Request.from_json(read_json(body, limits), limits)
    target = request.device.target
    if request.binary:
        raise TargetError("/binary", target=target, feature="binaries on this service")
    if isinstance(request.optimize, Search):
        raise OptionRefused("/optimize", option="search", reason="this service has no device to search on")
    job = pickle.dumps(request, pickle.HIGHEST_PROTOCOL)  # here, for it takes its time where the request is large
    return Asked(Key(program_key(request)), target, body, job, request.optimize == "tuned", request.require)
