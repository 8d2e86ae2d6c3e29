"""What the OpenAPI description shows: schemas of what goes in and out, and examples that the tests send as they stand."""

from __future__ import annotations

from typing import Any

from core import TARGETS, Request, program_key

Json = dict[str, Any]

KEY: Json = {"type": "string", "pattern": "^[0-9a-f]{64}$"}


def _view(*shape: int) -> Json:
    strides: list[int] = []
    step = 1
    for extent in reversed(shape):
        strides.insert(0, step if extent > 1 else 0)
        step *= extent
    return {"shape": list(shape), "strides": strides}


SUM: Json = {
    "version": 1,
    "variables": [],
    "nodes": [
        {"op": "LOAD", "buffer": 1, "dtype": "float32", "views": [_view(16, 64)]},
        {"op": "REDUCE_SUM", "axes": [1], "src": [0]},
        {"op": "STORE", "buffer": 0, "dtype": "float32", "views": [_view(16, 1)], "src": [1]},
    ],
    "outputs": [2],
}

TRANSPOSED_ADD: Json = {
    "version": 1,
    "variables": [{"name": "rows", "min": 1, "max": 1024}],
    "nodes": [
        {"op": "LOAD", "buffer": 1, "dtype": "int32", "shape": ["rows", 8], "index": "axis0*8 + axis1"},
        {"op": "LOAD", "buffer": 2, "dtype": "int32", "shape": ["rows", 8], "index": "axis1*rows + axis0"},
        {"op": "ADD", "src": [0, 1]},
        {"op": "STORE", "buffer": 0, "dtype": "int32", "shape": ["rows", 8], "index": "axis0*8 + axis1", "src": [2]},
    ],
    "outputs": [3],
}

COMPILES: Json = {
    "row sums in OpenCL": {"ast": SUM, "device": {"target": "opencl"}},
    "without a schedule, in C": {"ast": SUM, "device": {"target": "c"}, "optimize": "none"},
    "sizes known at launch": {"ast": TRANSPOSED_ADD, "device": {"target": "c"}, "annotate": True},
}

COMPILED_KEY = program_key(Request.from_json(COMPILES["row sums in OpenCL"]))  # has a program once that example was sent

LOOKUPS: Json = {
    "which are here": {"keys": ["0" * 64, "1" * 64]},
    "with their programs": {"keys": ["0" * 64], "return": "programs"},
}

BATCHES: Json = {"two kernels": {"requests": list(COMPILES.values())[:2]}}

EXPLAINED_KEYS: Json = {
    "of one request": {"request": COMPILES["row sums in OpenCL"]},
    "why two differ": {"requests": list(COMPILES.values())[:2]},
}

_SIZE: Json = {"type": ["integer", "string"], "description": "an integer, or an expression of the variables"}
_VIEW: Json = {
    "type": "object",
    "required": ["shape", "strides"],
    "additionalProperties": False,
    "properties": {
        "shape": {"type": "array", "items": _SIZE},
        "strides": {"type": "array", "items": _SIZE},
        "offset": _SIZE,
        "mask": {"type": ["array", "null"], "items": {"type": "array", "items": _SIZE, "minItems": 2, "maxItems": 2}},
    },
}
_NODE: Json = {
    "type": "object",
    "required": ["op"],
    "additionalProperties": False,
    "properties": {
        "op": {"type": "string"},
        "buffer": {"type": "integer", "minimum": 0},
        "dtype": {"type": "string"},
        "src": {"type": "array", "items": {"type": "integer", "minimum": 0}},
        "axes": {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1},
        "views": {"type": "array", "items": _VIEW, "minItems": 1},
        "shape": {"type": "array", "items": _SIZE},
        "index": _SIZE,
        "valid": {"type": "array", "items": {"type": "string"}},
        "value": {"type": ["number", "boolean", "string"]},
        "expr": _SIZE,
        "image": {"type": "array", "items": {"type": "integer"}, "minItems": 3, "maxItems": 3},
    },
}
AST_SCHEMA: Json = {
    "type": "object",
    "required": ["version", "variables", "nodes", "outputs"],
    "additionalProperties": False,
    "properties": {
        "version": {"const": 1},
        "variables": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name", "min", "max"],
                "additionalProperties": False,
                "properties": {"name": {"type": "string"}, "min": {"type": "integer"}, "max": {"type": "integer"}},
            },
        },
        "nodes": {"type": "array", "items": _NODE, "minItems": 1},
        "outputs": {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1},
    },
}
_FORMATS = sorted({format_ for target in TARGETS.values() for format_ in target.binaries})
_OPTION: Json = {
    "type": "object",
    "required": ["op"],
    "properties": {"op": {"type": "string"}, "axis": {"type": "integer"}, "amount": {"type": "integer"}},
}
REQUEST_SCHEMA: Json = {
    "type": "object",
    "required": ["ast", "device"],
    "additionalProperties": False,
    "properties": {
        "ast": AST_SCHEMA,
        "device": {
            "type": "object",
            "required": ["target"],
            "properties": {"target": {"enum": list(TARGETS)}},
            "propertyNames": {"enum": list(TARGETS["c"].defaults.to_json())},
            "description": "the target, and what differs from its defaults: `GET /targets` has them",
        },
        "optimize": {
            "oneOf": [
                {"enum": ["none", "heuristic", "tuned"]},
                {"type": "array", "items": _OPTION},
                {"type": "object", "required": ["search"], "properties": {"search": {"const": "beam"}}},
            ],
            "default": "heuristic",
        },
        "annotate": {"type": "boolean", "default": False},
        "binary": {"oneOf": [{"const": True}, {"type": "array", "items": {"enum": _FORMATS}, "uniqueItems": True}]},
        "require": {"enum": ["validated"]},
    },
}
_SIZES: Json = {"type": ["array", "null"], "items": _SIZE, "minItems": 3, "maxItems": 3}
_ARGUMENT: Json = {
    "type": "object",
    "required": ["kind", "dtype"],
    "properties": {"kind": {"enum": ["buffer", "variable"]}, "dtype": {"type": "string"}, "size": _SIZE},
}
PROGRAM_SCHEMA: Json = {
    "type": "object",
    "required": [
        "key", "ast_hash", "name", "target", "device", "optimize", "annotate", "source", "global_size", "local_size",
        "arguments", "shared_bytes", "applied", "flops", "memory_bytes", "proofs", "compiler",
    ],
    "properties": {
        "key": KEY,
        "ast_hash": KEY,
        "name": {"type": "string"},
        "target": {"type": "string"},
        "device": {"type": "object"},
        "optimize": {"oneOf": [{"const": "heuristic"}, {"type": "array", "items": _OPTION}]},
        "annotate": {"type": "boolean"},
        "source": {"type": "string"},
        "global_size": _SIZES,
        "local_size": _SIZES,
        "arguments": {"type": "array", "items": _ARGUMENT},
        "shared_bytes": {"type": "integer"},
        "applied": {"type": "array", "items": _OPTION},
        "flops": _SIZE,
        "memory_bytes": _SIZE,
        "proofs": {"type": "object"},
        "compiler": {"type": "string"},
    },
}  # fmt: skip


def _object(**properties: Json) -> Json:
    return {"type": "object", "required": list(properties), "properties": properties}


def _list(items: Json) -> Json:
    return {"type": "array", "items": items}


_TEXT = {"type": "string"}
_NODES = _list({"type": "integer"})
_AXIS = _object(kind=_TEXT, extent=_SIZE, reduce_class={"type": ["integer", "null"]}, **{"from": _NODES})
EXPLANATION_SCHEMA = _object(
    key=KEY,
    name=_TEXT,
    ast={"type": "object", "description": "the canonical AST, which `ast_hash` is the digest of"},
    kernel=_TEXT,
    axes=_list(_object(option={"oneOf": [_OPTION, {"type": "null"}]}, axes=_list(_AXIS))),
    decisions=_list(_object(step=_TEXT, options=_list(_OPTION), reason=_TEXT, refused=_list(_object(option=_OPTION, reason=_TEXT)))),
    micro_ops=_list(_object(text=_TEXT, nodes=_NODES)),
    estimates=_object(flops=_SIZE, memory_bytes=_SIZE),
    proofs={"type": "object"},
    validations=_list({"type": "object"}),
    tunings=_list({"type": "object"}),
    binaries=_list({"type": "object"}),
)
_PROBLEM = {"oneOf": [{"$ref": "#/components/schemas/Problem"}, {"type": "null"}]}
JOB_SCHEMA = _object(
    id=KEY,
    kind={"enum": ["compile", "validate"]},
    state={"enum": ["queued", "running", "done", "failed", "cancelled"]},
    created_at={"type": "string", "format": "date-time"},
    updated_at={"type": "string", "format": "date-time"},
    attempts={"type": "integer", "minimum": 1, "description": "how many processes have begun it"},
    result={"type": ["object", "null"]},
    problem=_PROBLEM,
    links=_object(self=_TEXT, events=_TEXT),
)
JOB_SCHEMA["properties"]["program"] = {"description": "of a compile that is done: what it would have answered"}

_PARTS = {
    "type": "object",
    "description": "each part of the key, with its value and a digest of it",
    "additionalProperties": _object(digest=KEY, value={}),
}
_DIFFERENCE = _object(part=_TEXT, pointer=_TEXT)
KEY_SCHEMA: Json = {
    "type": "object",
    "required": ["keys", "parts"],
    "properties": {
        "keys": _list(KEY),
        "parts": _list(_PARTS),
        "differ": _list(_TEXT),
        "differences": _list(_DIFFERENCE),
    },
}
