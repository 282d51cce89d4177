"""The cells that a run took from an earlier one, read from where they lie: a bucket, or a folder of this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from eagle_bench.adapters import storage
from eagle_bench.errors import EagleBenchError
from eagle_bench.progress import say
from eagle_bench.results import CellResult
from eagle_bench.resuming import Kept, addresses
from eagle_bench.unreadable import reason


def read_earlier(earlier: Mapping[str, Any]) -> Iterator[Kept]:
    """The cells that the `earlier` of a run's parameters names.

    One that can't be read any more is told of and left out, so that it is missing: the others are not lost for it.
    """
    for address in addresses(earlier):
        try:
            content = storage.read(address) if address.startswith(storage.SCHEME) else Path(address).read_bytes()
            yield Kept(address, CellResult.model_validate_json(content))
        except (EagleBenchError, OSError, ValidationError) as error:
            say("earlier run", f"{address} can't be taken: {reason(error)}")
