"""The compiler's own choice of schedule: a short list of decisions, taken in order, each with its reason.

The result is a legal list of options, always the same for the same kernel, device options and compiler. A step looks at the nest as it
stands and may apply options to it; the two lists below are the whole of the heuristic.
"""

from __future__ import annotations

from collections.abc import Callable

from core.device import DeviceOptions
from core.limits import Limits
from core.schedule.heuristic.cpu import groups, running_sums, shared_reduce, tiles
from core.schedule.heuristic.gpu import channels_as_lanes, few_outputs, grouped_is_done, lanes, matrix_vector, register_tiles
from core.schedule.heuristic.state import Decision, State
from core.schedule.heuristic.steps import image_inputs, rows, small_masked_axes, texels, unrolled_reduce, vector_fallback
from core.schedule.heuristic.tensor import tensor_cores
from core.schedule.nest import Nest

Step = Callable[[State], None]

GPU_STEPS: tuple[Step, ...] = (
    texels, tensor_cores, rows, matrix_vector, few_outputs, channels_as_lanes, image_inputs, grouped_is_done, small_masked_axes,
    register_tiles, unrolled_reduce, vector_fallback, lanes,
)  # fmt: skip

CPU_STEPS: tuple[Step, ...] = (
    texels, rows, running_sums, image_inputs, small_masked_axes, shared_reduce, tiles, groups,
)  # fmt: skip


def choose(nest: Nest, device: DeviceOptions, limits: Limits, table: tuple[int, ...]) -> tuple[Nest, tuple[Decision, ...]]:
    """A nest without options as scheduled, mandatory ones included, and the decisions behind it."""
    state = State(nest, device, limits, table, [])
    for step in CPU_STEPS if device.device_class == "cpu" or not device.has_local else GPU_STEPS:
        if state.stopped:
            break
        step(state)
    return state.nest, tuple(state.decisions)


__all__ = ["CPU_STEPS", "GPU_STEPS", "Decision", "choose"]
