"""The schedule options: per op when it may be applied and what it does. Adding one is a file here and a line in OPTIONS."""

from __future__ import annotations

from core.schedule.options.base import Apply
from core.schedule.options.upcast import upcast

OPTIONS: dict[str, Apply] = {"UPCAST": upcast}
