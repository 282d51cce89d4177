"""What `eagle-bench plan` asks before a run: settings, servers, data, models, images and the cloud. Nothing is made."""

from eagle_bench.planning.checks import checks, runs_here
from eagle_bench.planning.local_checks import served_by_builtin

__all__ = ["checks", "runs_here", "served_by_builtin"]
