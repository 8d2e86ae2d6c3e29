"""The compiler: pure functions from a request to a program. This is its whole public surface."""

from core.device import DeviceOptions, TensorCore
from core.errors import (
    CompilerBug,
    KernelError,
    LatheError,
    LimitExceeded,
    NotJson,
    OptionRefused,
    Pointer,
    RequestError,
    TargetError,
    TextRejected,
    WireError,
)
from core.json_text import read_json
from core.limits import Limits
from core.request import Request, Search, program_key
from core.schedule.option import ScheduleOption
from core.version import COMPILER

__all__ = [
    "COMPILER", "CompilerBug", "DeviceOptions", "KernelError", "LatheError", "LimitExceeded", "Limits", "NotJson", "OptionRefused", "Pointer",
    "Request", "RequestError", "ScheduleOption", "Search", "TargetError", "TensorCore", "TextRejected", "WireError", "program_key",
    "read_json",
]  # fmt: skip
