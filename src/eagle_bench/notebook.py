"""For notebooks: the built-in example on this machine, with all commands pointed at it."""

from __future__ import annotations

import atexit
import os
from collections.abc import Sequence
from pathlib import Path

import yaml

from eagle_bench import config_file
from eagle_bench.local_vertex.server import LocalVertex
from eagle_bench.runs.local_engines import EXAMPLE, settings_for, with_local_place, with_local_tokenizer


def example_on_this_machine(
    config: str | Path,
    *,
    levels: Sequence[int] = (1, 2),
    variants: Sequence[str] = ("eagle3",),
    engines: str | Path | None = None,
    folder: str | Path = "local-vertex",
) -> LocalVertex:
    """Start Local Vertex, point this process and all that it starts at it, and write the example's config.

    Args:
        config: the file to write; its folder is made.
        levels: concurrencies to measure.
        variants: ids of the example's variants, beside its baseline.
        engines: as for `eagle-bench run --engines`; without one, the built-in engine is made when it is missing.
        folder: for logs, buckets and the service account's key.

    Returns:
        The server; `stop` ends it, and so does the end of this process.

    Raises:
        InputError: the file of engines can't be used.
        ServiceError: the server did not start.
    """
    example = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
    wanted = ["baseline", *variants]
    example |= {"variants": [v for v in example["variants"] if v["id"] in wanted], "concurrency": list(levels)}
    checked = with_local_place(config_file.validate(example, source=EXAMPLE.name))
    settings = settings_for(checked, Path(folder).absolute(), Path(engines) if engines else None, 1, print)
    ready = with_local_tokenizer(checked, settings)
    Path(config).parent.mkdir(parents=True, exist_ok=True)
    Path(config).write_text(yaml.safe_dump(ready.model_dump(mode="json", exclude_unset=True), sort_keys=False))
    server = LocalVertex(settings)
    server.start()
    atexit.register(server.stop)
    os.environ.update(server.environment)
    return server
