"""Compilers that do as a test says, on a PATH of its own: programs by the name of a real one, in the place where the service finds it."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

GCC = shutil.which("gcc")
# Each call is noted, then: what the test says.
_FAKE = """#!{python} -IS
import os, subprocess, sys, time
if "--version" in sys.argv:
    print("gcc (test) {version}")
    sys.exit()
with open({tally!r}, "a") as tally:
    tally.write(f"{{os.getpid()}}\\n")
calls = len(open({tally!r}).readlines())
def real():
    sys.exit(subprocess.run([{gcc!r}, *sys.argv[1:]]).returncode)
{does}
"""


class Toolbox:
    """A folder with a `gcc`. path: with it in front; alone: with nothing else."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._tally = folder.with_name(f"{folder.name}.calls")
        folder.mkdir()

    @property
    def path(self) -> str:
        return os.pathsep.join((str(self.folder), os.environ["PATH"]))

    def gcc(self, does: str = "real()", version: str = "1") -> Toolbox:
        """Has `gcc` do this: Python, in which `real()` is the real one and `calls` how often it was called."""
        file = self.folder / "gcc"
        file.write_text(_FAKE.format(python=sys.executable, version=version, tally=str(self._tally), gcc=GCC, does=does))
        file.chmod(0o755)
        return self

    def calls(self) -> list[int]:
        """The process ids it was called as."""
        return [int(line) for line in self._tally.read_text().splitlines()] if self._tally.exists() else []
