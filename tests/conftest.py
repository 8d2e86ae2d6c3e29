"""What holds for every test: examples are given as much time as the machine takes."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("lathe", deadline=None)
settings.load_profile("lathe")
