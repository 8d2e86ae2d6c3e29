"""The schedule options: per op when it may be applied and what it does. Adding one is a file here and a line in OPTIONS."""

from __future__ import annotations

from core.schedule.options.base import Apply
from core.schedule.options.group import group, grouptop
from core.schedule.options.local import local
from core.schedule.options.loop import loop
from core.schedule.options.mid import upcastmid
from core.schedule.options.nolocals import nolocals
from core.schedule.options.pad import padto
from core.schedule.options.tensor import tensor_core
from core.schedule.options.unroll import unroll
from core.schedule.options.upcast import upcast

OPTIONS: dict[str, Apply] = {
    "UPCAST": upcast,
    "UNROLL": unroll,
    "LOCAL": local,
    "LOOP": loop,
    "GROUP": group,
    "GROUPTOP": grouptop,
    "UPCASTMID": upcastmid,
    "PADTO": padto,
    "TC": tensor_core,
    "NOLOCALS": nolocals,
}
