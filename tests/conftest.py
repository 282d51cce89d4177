"""For all tiers: a busy machine is slow, and that is no failure."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")
