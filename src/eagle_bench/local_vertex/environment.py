"""What a process needs in its environment so that Google's clients in it talk to Local Vertex."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

from eagle_bench.local_vertex.settings import Settings


def key_file_of(settings: Settings) -> Path:
    """The service account's key file."""
    return settings.state_dir / "service-account.json"


def client_environment(settings: Settings, url: str) -> dict[str, str]:
    """For the adapter, for `google.auth.default()`, and for the bucket look-up of `PipelineJob.submit()`.

    A proxy that this machine needs for the world is not asked for this server: it would know another 127.0.0.1.
    """
    known = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    hosts = [host for host in known.split(",") if host.strip()]
    direct = ",".join(dict.fromkeys([*hosts, urlsplit(url).hostname or ""]))
    return {
        "NO_PROXY": direct,
        "no_proxy": direct,
        "EAGLE_BENCH_VERTEX_API": url,
        "GOOGLE_APPLICATION_CREDENTIALS": str(key_file_of(settings)),
        "GOOGLE_CLOUD_PROJECT": settings.project_id,
        "STORAGE_EMULATOR_HOST": url,
    }
