"""Device binaries over real HTTP, by real compilers: loaded and run, read as what they are, the same bytes in every process."""

from __future__ import annotations

import ctypes
import json
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from service.api.examples import SUM
from tests.service.process import Service, served, until
from tests.tools.cuda.nvrtc import ptx

Json = dict[str, Any]
REAL = ["service", "serve"]
EM_CUDA = 190  # e_machine of NVIDIA's ELF files
ROWS = np.arange(1024, dtype=np.float32).reshape(16, 64) / 7


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    store = tmp_path_factory.mktemp("store") / "lathe.db"
    with served(REAL, store=f"sqlite:///{store}", devices="auto", compile_seconds=120) as started:
        yield started


@pytest.fixture(scope="module")
def other() -> Iterator[Service]:
    with served(REAL, store="memory://", devices="auto", compile_seconds=120) as started:
        yield started


def request(target: str, binary: object, **device: object) -> Json:
    return {"ast": SUM, "device": {"target": target, **device}, "binary": binary}


def made(service: Service, target: str, format_: str, **device: object) -> tuple[Json, httpx.Response]:
    """The program, and its binary as the link to it gives it."""
    compiled = service.compile(**request(target, [format_], **device))
    assert 200 == compiled.status_code, compiled.text
    found = service.client.get(link_of(compiled))
    assert 200 == found.status_code, found.text
    return compiled.json(), found


def link_of(response: httpx.Response) -> str:
    return response.headers["link"].partition(">")[0].removeprefix("<")


@pytest.mark.parametrize("target", ["c", "llvm"])
def test_a_shared_object_is_loaded_and_runs_right(service: Service, tmp_path: Path, target: str) -> None:
    program, binary = made(service, target, "so")
    (tmp_path / "kernel.so").write_bytes(binary.content)
    out = np.zeros(16, np.float32)
    function = getattr(ctypes.CDLL(str(tmp_path / "kernel.so")), program["name"])
    function(out.ctypes.data_as(ctypes.c_void_p), ROWS.ctypes.data_as(ctypes.c_void_p))

    np.testing.assert_allclose(out, ROWS.sum(1), rtol=1e-5)
    assert "application/x-sharedlib" == binary.headers["content-type"]


RUN = """
import json, sys
import numpy as np, pyopencl as cl
program, out = json.load(open("program.json")), np.zeros(16, np.float32)
device = cl.get_platforms()[0].get_devices()[0]
context = cl.Context([device])
queue = cl.CommandQueue(context)
built = cl.Program(context, [device], [open("kernel.clbin", "rb").read()]).build()
kernel = cl.Kernel(built, program["name"])
d0 = cl.Buffer(context, cl.mem_flags.READ_WRITE, out.nbytes)
d1 = cl.Buffer(context, cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR, hostbuf=np.load("rows.npy"))
kernel.set_args(d0, d1)
items = [groups * size for groups, size in zip(program["global_size"], program["local_size"])]
cl.enqueue_nd_range_kernel(queue, kernel, items, program["local_size"]).wait()
cl.enqueue_copy(queue, out, d0)
np.save("out.npy", out)
"""


def test_an_opencl_binary_is_loaded_and_runs_right_and_is_compiled_for_its_group(service: Service, tmp_path: Path) -> None:
    program, binary = made(service, "opencl", "clbin")
    (tmp_path / "kernel.clbin").write_bytes(binary.content)
    (tmp_path / "program.json").write_text(json.dumps(program))
    np.save(tmp_path / "rows.npy", ROWS)
    subprocess.run([sys.executable, "-c", RUN], cwd=tmp_path, check=True, timeout=60)

    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), ROWS.sum(1), rtol=1e-5)
    assert f"/{'-'.join(map(str, program['local_size']))}-goffs0-smallgrid/".encode() in binary.content
    assert binary.headers["lathe-arch"] in [device["name"] for device in service.client.get("/devices").json()["devices"]]


@pytest.mark.parametrize(
    ("target", "arch", "number", "compiler"),
    [
        ("cuda", "sm_75", 75, "nvrtc"), ("cuda", "sm_80", 80, "nvrtc"), ("cuda", "sm_90", 90, "nvrtc"), ("cuda", "sm_120", 120, "nvrtc"),
        ("ptx", "sm_80", 80, "ptxas"), ("ptx", "sm_90", 90, "ptxas"),
    ],
)  # fmt: skip
def test_a_cubin_is_machine_code_for_the_architecture_and_has_the_kernel(
    service: Service, target: str, arch: str, number: int, compiler: str
) -> None:
    program, binary = made(service, target, "cubin", arch=arch)
    machine, flags = struct.unpack_from("<18xH28xI", binary.content)[0:2]

    assert (b"\x7fELF", EM_CUDA) == (binary.content[:4], machine)
    assert number in (flags & 0xFF, flags >> 8 & 0xFF)
    assert f".text.{program['name']}".encode() in binary.content
    assert (arch, compiler) == (binary.headers["lathe-arch"], binary.headers["lathe-compiler"])


def test_ptx_is_what_the_runtime_compiler_gives(service: Service) -> None:
    program, binary = made(service, "cuda", "ptx")

    assert ptx(program["source"], "sm_80") == binary.content
    assert b".target sm_80" in binary.content


@pytest.mark.parametrize(
    ("target", "format_"),
    [("c", "so"), ("cuda", "cubin"), ("cuda", "ptx"), ("ptx", "cubin"), ("llvm", "so"), ("hip", "hsaco"), ("opencl", "clbin")],
)
def test_two_processes_make_the_same_bytes(service: Service, other: Service, target: str, format_: str) -> None:
    one, two = made(service, target, format_)[1], made(other, target, format_)[1]

    assert one.content == two.content
    assert one.headers["etag"] == two.headers["etag"]


def test_true_is_the_usual_format_and_the_program_is_the_same_with_and_without(service: Service) -> None:
    plain = service.compile(ast=SUM, device={"target": "cuda", "alignment": 32})
    usual = service.compile(**request("cuda", True, alignment=32))
    both = service.compile(**request("cuda", ["ptx", "cubin"], alignment=32))

    assert "link" not in plain.headers
    assert "/binary/cubin?arch=sm_80" in usual.headers["link"]
    assert ["ptx", "cubin"] == [link.partition("?")[0].rpartition("/")[2] for link in both.headers.get_list("link", split_commas=True)]
    assert [plain.content] * 2 == [usual.content, both.content]
    assert 2 == len(service.client.get(plain.headers["location"]).headers.get_list("link", split_commas=True))


def test_a_binary_is_served_with_what_made_it_and_asked_for_on_conditions(service: Service) -> None:
    program, binary = made(service, "c", "so", arch="x86-64-v3")
    path = f"/program/{program['key']}/binary/so"
    head = service.client.head(path)
    known = service.client.get(path, headers={"if-none-match": f'"other", {binary.headers["etag"]}'})

    assert ("gcc", "x86-64-v3") == (binary.headers["lathe-compiler"], binary.headers["lathe-arch"])
    assert "-march=x86-64-v3" in binary.headers["lathe-compiler-options"].split()
    assert "12." in binary.headers["lathe-compiler-version"] or "GNU ld" in binary.headers["lathe-compiler-version"]
    assert str(len(binary.content)) == binary.headers["content-length"] == head.headers["content-length"]
    assert (200, b"", binary.headers["etag"]) == (head.status_code, head.content, head.headers["etag"])
    assert (304, b"", binary.headers["etag"]) == (known.status_code, known.content, known.headers["etag"])
    assert "public, no-cache" == binary.headers["cache-control"]
    assert 406 == service.client.get(path, headers={"accept": "application/json"}).status_code
    assert binary.content == service.client.get(path, params={"arch": "x86-64-v3"}).content
    assert 404 == service.client.get(path, params={"arch": "x86-64-v2"}).status_code


def test_what_was_not_made_is_not_there(service: Service) -> None:
    key = service.compile(ast=SUM, device={"target": "c", "alignment": 64}).json()["key"]
    answers = [
        service.client.get(path) for path in (f"/program/{key}/binary/so", f"/program/{key}/binary/exe", f"/program/{'0' * 64}/binary/so")
    ]

    assert [(404, "request", "no-store")] * 3 == [(a.status_code, a.json()["category"], a.headers["cache-control"]) for a in answers]
    assert "POST /compile with binary" in answers[0].json()["detail"]


@pytest.mark.parametrize(
    ("body", "category", "pointer", "said"),
    [
        (request("c", ["cubin"]), "target", "/binary/0", "binary format cubin"),
        (request("opencl", ["clbin", "spirv"]), "target", "/binary/1", "compiler for the binary format spirv"),
        (request("wgsl", ["spirv"]), "target", "/binary/0", "compiler for the binary format spirv"),
        (request("c", ["exe"]), "wire", "/binary/0", "one of cubin"),
        (request("c", True, arch="x86-64-v9"), "target", "/device/arch", "x86-64-v2"),
        (request("cuda", True, arch="sm_110"), "target", "/device/arch", "sm_110"),
        (request("opencl", True, arch="gone"), "target", "/device/arch", "'gone'"),
    ],
)
def test_what_can_t_be_made_is_refused_by_name(service: Service, body: Json, category: str, pointer: str, said: str) -> None:
    refused = service.compile(**body)
    problem = refused.json()

    assert (422, category, pointer) == (refused.status_code, problem["category"], problem["pointer"])
    assert said in problem["detail"]


def test_targets_tell_which_compilers_are_here(service: Service) -> None:
    targets = service.client.get("/targets").json()["targets"]

    formats = {"c": ["so"], "cuda": ["cubin", "ptx"], "hip": ["hsaco"], "llvm": ["so"], "opencl": ["clbin"], "ptx": ["cubin"]}
    assert {**formats, "metal": [], "wgsl": []} == {name: target["binaries"] for name, target in targets.items()}
    assert ("gcc", "application/x-sharedlib") == tuple(targets["c"]["compilers"]["so"][name] for name in ("compiler", "type"))
    assert "x86-64-v3" in targets["c"]["compilers"]["so"]["architectures"]
    assert "headers" in targets["cuda"]["compilers"]["ptx"]["version"]
    assert 16 << 20 == service.client.get("/limits").json()["binary_bytes"]


def test_explanations_batches_and_jobs_name_binaries(service: Service) -> None:
    body = request("c", True, alignment=128)
    lines = service.client.post("/compile/batch", json={"requests": [body]}).text.splitlines()
    (link,) = json.loads(lines[0])["links"]
    key = json.loads(lines[0])["program"]["key"]
    (told,) = service.client.get(f"/program/{key}/explain").json()["binaries"]
    fresh = request("c", True, alignment=512)
    job = service.client.post("/compile", json=fresh, headers={"prefer": "respond-async"}).json()
    job = until(lambda: (now := service.client.get(f"/jobs/{job['id']}").json())["state"] == "done" and now, "the job is done")

    assert ("alternate", "application/x-sharedlib", "x86-64") == (link["rel"], link["type"], link["arch"])
    assert told["bytes"] == len(service.client.get(link["href"]).content)
    assert ("so", "gcc") == (told["format"], told["compiler"])
    assert [f"/program/{job['result']['key']}/binary/so?arch=x86-64"] == [one["href"] for one in job["result"]["binaries"]]


def test_it_is_counted(service: Service) -> None:
    before = [service.metric(f'lathe_binaries_total{{format="so",result="{result}"}}') for result in ("compiled", "hit")]
    for _ in range(3):
        service.compile(**request("c", True, alignment=256))
    after = [service.metric(f'lathe_binaries_total{{format="so",result="{result}"}}') for result in ("compiled", "hit")]

    assert [1, 2] == [new - old for new, old in zip(after, before, strict=True)]
    assert service.metric('lathe_compile_stage_seconds_count{stage="binary-so"}') >= 1


def test_the_path_is_described(service: Service) -> None:
    described = service.client.get("/openapi.json").json()["paths"]["/program/{key}/binary/{format}"]

    assert {"get", "head"} <= set(described)
    assert "application/x-cubin" in described["get"]["responses"]["200"]["content"]
    assert {"key", "format", "arch"} == {parameter["name"] for parameter in described["get"]["parameters"]}
