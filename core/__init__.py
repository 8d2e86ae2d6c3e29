"""The compiler: pure functions from a request to a program. This is its whole public surface."""

from core.compiler import compile_kernel
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
from core.explanation import explain
from core.json_text import read_json
from core.limits import Limits
from core.program import Argument, Program
from core.request import Request, Search, program_key
from core.schedule.option import ScheduleOption
from core.targets import TARGETS, Target
from core.targets.describe import describe
from core.version import COMPILER

__all__ = [
    "COMPILER",
    "TARGETS",
    "Argument",
    "CompilerBug",
    "DeviceOptions",
    "KernelError",
    "LatheError",
    "LimitExceeded",
    "Limits",
    "NotJson",
    "OptionRefused",
    "Pointer",
    "Program",
    "Request",
    "RequestError",
    "ScheduleOption",
    "Search",
    "Target",
    "TargetError",
    "TensorCore",
    "TextRejected",
    "WireError",
    "compile_kernel",
    "describe",
    "explain",
    "program_key",
    "read_json",
]
