"""A target in JSON, for whoever asks what can be rendered."""

from __future__ import annotations

from core.dtypes import DTYPES
from core.schedule.option import MEMBERS
from core.targets.defaults import tensor_cores_of
from core.targets.target import Target

LIMITS = ("global_max", "local_max", "lanes_max", "shared_max", "alignment")


def describe(target: Target) -> dict[str, object]:
    """What it has at its defaults: dtypes, limits, tensor cores; the defaults themselves; what it can't promise.

    options: the schedule options, what their members mean. emulated: dtypes it computes in a wider one and rounds. architectures: those
    known, where one selects dtypes and tensor cores.
    """
    defaults = target.defaults
    every = defaults.to_json()
    return {
        "name": target.name,
        "called": target.called,
        "images": target.images,
        "dtypes": [name for name in DTYPES if name not in target.lacks],
        "emulated": [*([] if defaults.float16 else ["float16"]), "bfloat16"],
        "limits": {name: every[name] for name in LIMITS},
        "tensor_cores": [core.to_json() for core in tensor_cores_of(target.name, defaults.arch)],
        "architectures": list(target.arches),
        "options": {op: {n: m.meaning for n, m in zip(("axis", "amount"), members, strict=True) if m} for op, members in MEMBERS.items()},
        "binaries": list(target.binaries),
        "defaults": every,
        "promises": list(target.promises),
    }
