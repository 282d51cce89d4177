"""How many accelerators a project may deploy in a region (Cloud Quotas), and how many it has (Cloud Monitoring)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from eagle_bench.adapters.google_rest import call
from eagle_bench.adapters.vertex_address import Place
from eagle_bench.errors import ServiceError

SERVICE = "aiplatform.googleapis.com"
UNLIMITED = -1
USAGE_AGE = timedelta(hours=25)  # usage is written once a day where it doesn't change

# How the quotas call what `serving.accelerator.type` names.
NAMES = {
    "NVIDIA_TESLA_P4": "P4",
    "NVIDIA_TESLA_P100": "P100",
    "NVIDIA_TESLA_V100": "V100",
    "NVIDIA_TESLA_T4": "T4",
    "NVIDIA_TESLA_A100": "A100",
    "NVIDIA_A100_80GB": "A10080GB",
    "NVIDIA_L4": "L4",
    "NVIDIA_H100_80GB": "H100",
    "NVIDIA_H100_MEGA_80GB": "H100MEGA",
    "NVIDIA_H200_141GB": "H200",
    "NVIDIA_RTX_PRO_6000": "RTXPRO6000",
}


@dataclass(frozen=True)
class Quota:
    """A quota in one region. `limit` None: no limit. `used` None: not known."""

    id: str
    metric: str
    limit: int | None
    used: int | None


def quota_id(accelerator: str, *, spot: bool) -> str | None:
    """The id of the quota that serving with this accelerator counts against; None where it isn't known here."""
    name = NAMES.get(accelerator)
    return f"CustomModelServing{'Preemptible' if spot else ''}{name}GPUsPerProjectPerRegion" if name else None


def quota(place: Place, quota_id: str) -> Quota:
    """A quota's limit in a region; 0 where the region has none of it.

    Raises:
        ServiceError: it can't be read.
    """
    doing = f"read the quota {quota_id}"
    found = call(
        "cloudquotas",
        "GET",
        f"v1/projects/{place.project}/locations/global/services/{SERVICE}/quotaInfos/{quota_id}",
        doing=doing,
    )
    limit = 0
    try:
        for dimensions in found.get("dimensionsInfos", ()):
            if place.location in dimensions.get("applicableLocations", ()):
                limit = int(dimensions.get("details", {}).get("value", 0))  # JSON of protobuf leaves 0 out
        metric = str(found["metric"])
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ServiceError(f"cloudquotas.googleapis.com was asked to {doing} and sent no quota.") from None
    return Quota(quota_id, metric, None if limit == UNLIMITED else limit, _used(place, metric))


def _used(place: Place, metric: str) -> int | None:
    """How much of a quota is in use; None where that can't be read."""
    now = datetime.now(UTC)
    clauses = {
        "metric.type": "serviceruntime.googleapis.com/quota/allocation/usage",
        "resource.type": "consumer_quota",
        "metric.label.quota_metric": metric,
        "resource.label.project_id": place.project,
        "resource.label.location": place.location,
        "resource.label.service": SERVICE,
    }
    query = {
        "filter": " AND ".join(f'{key}="{value}"' for key, value in clauses.items()),
        "interval.startTime": f"{now - USAGE_AGE:%Y-%m-%dT%H:%M:%SZ}",
        "interval.endTime": f"{now:%Y-%m-%dT%H:%M:%SZ}",
    }
    try:
        found = call(
            "monitoring",
            "GET",
            f"v3/projects/{place.project}/timeSeries",
            doing=f"read the usage of {metric}",
            query=query,
        )
        series = found.get("timeSeries", ())
        return int(series[0]["points"][0]["value"]["int64Value"]) if series else 0
    except (ServiceError, KeyError, IndexError, TypeError, ValueError):
        return None
