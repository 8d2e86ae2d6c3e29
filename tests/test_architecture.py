"""The rules that no single file can hold: who may import whom, and that whatever a user meets is documented.

The tables are walked as they are, so that a new row is demanded here without another edit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.routing import APIRoute
from importlinter.application.use_cases import lint_imports
from importlinter.configuration import configure

from core.schedule.options import OPTIONS
from service.api import ROUTERS, WITH_DEVICES
from service.errors import TITLES
from service.metrics import Metrics
from service.settings import PREFIX, Settings

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PACKAGES = ("core", "service")


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def test_the_import_contracts_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(str(ROOT))
    configure()

    assert lint_imports(cache_dir=None, no_logo=True)


def drawn() -> Iterator[str]:
    """The paths in the tree of ARCHITECTURE.md: two spaces a level, names first on their line, several where they share one."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    block = re.search(r"^```tree\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert block is not None
    folders: list[str] = []
    for line in block[1].splitlines():
        names = re.match(r" *((?:[\w-]+(?:/|\.py)(?: |$))+)", line)
        if names is None:
            continue  # a description that goes on
        depth = (len(line) - len(line.lstrip())) // 2
        del folders[depth:]
        for name in names[1].split():
            yield "".join([*folders, name])
        if names[1].rstrip().endswith("/"):
            folders.append(names[1].strip())


def present() -> Iterator[str]:
    for package in PACKAGES:
        for path in [ROOT / package, *(ROOT / package).rglob("*")]:
            if path.is_dir() and (path / "__init__.py").exists():
                yield f"{path.relative_to(ROOT)}/"
            elif path.suffix == ".py" and path.name != "__init__.py":
                yield str(path.relative_to(ROOT))


def test_the_tree_in_the_architecture_page_is_the_tree_that_is_here() -> None:
    here, on_the_page = set(present()), set(drawn())

    assert (set(), set()) == (here - on_the_page, on_the_page - here)


def routes() -> list[tuple[str, str]]:
    """Method and path of each endpoint that clients are meant to call."""
    return sorted(
        (method, route.path)
        for router in (*ROUTERS, *WITH_DEVICES)
        for route in router.routes
        if isinstance(route, APIRoute) and route.include_in_schema
        for method in route.methods or ()
    )


@pytest.mark.parametrize(("method", "path"), routes())
def test_every_endpoint_is_documented(method: str, path: str) -> None:
    plain = re.sub(r"\{(\w+):\w+\}", r"{\1}", path)

    assert re.search(rf"`[A-Z`, ]*\b{method}\b[A-Z`, ]* {re.escape(plain)}`", page("http-api.md"))


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_is_documented(name: str) -> None:
    assert f"`{PREFIX}{name.upper()}`" in page("settings.md")


def test_no_setting_is_documented_that_is_not_there() -> None:
    named = set(re.findall(rf"^\| `{PREFIX}(\w+)`", page("settings.md"), re.MULTILINE))

    assert set() == named - {name.upper() for name in Settings.model_fields} - {"CONFIG"}


@pytest.mark.parametrize("op", OPTIONS)
def test_every_schedule_option_is_documented(op: str) -> None:
    assert f"| `{op}` |" in page("schedule.md")


def metrics() -> list[str]:
    """Our own metrics, as they are called in what is scraped, without the endings that belong to a kind."""
    return sorted(family.name for family in Metrics().registry.collect() if family.name.startswith("lathe_"))


@pytest.mark.parametrize("name", metrics())
def test_every_metric_is_documented(name: str) -> None:
    assert re.search(rf"`{name}(_total)?`", page("metrics.md"))


@pytest.mark.parametrize("category", TITLES)
def test_every_category_of_problem_is_documented(category: str) -> None:
    assert f"| `{category}` |" in page("http-api.md")


def links() -> list[tuple[str, str]]:
    pages = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
    return sorted(
        (str(path.relative_to(ROOT)), target)
        for path in pages
        for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", path.read_text(encoding="utf-8"))
    )


@pytest.mark.parametrize(("path", "target"), links())
def test_links_between_pages_lead_somewhere(path: str, target: str) -> None:
    assert (ROOT / path).parent.joinpath(target).exists()


def test_every_page_is_in_the_index() -> None:
    index = page("README.md")

    assert [] == [str(p) for p in DOCS.rglob("*.md") if p.name != "README.md" and f"({p.relative_to(DOCS)})" not in index]
