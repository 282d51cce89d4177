"""What to do about a deploy that was refused: which quota, which role, which page, which field. Pure."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from eagle_bench.adapters.vertex_address import Place
from eagle_bench.errors import ServiceError
from eagle_bench.permissions import VERTEX_USER, roles_with
from eagle_bench.variants import VariantSpec

GARDEN = "https://console.cloud.google.com/vertex-ai/publishers"
QUOTAS = "https://console.cloud.google.com/iam-admin/quotas"
HUB = "https://huggingface.co"
SERVICE_AGENT = "service-PROJECT_NUMBER@gcp-sa-aiplatform.iam.gserviceaccount.com"

QUOTA_NAME = re.compile(r"\b(\w+PerProjectPerRegion|[a-z]+\.googleapis\.com/\w+)\b")
PERMISSION = re.compile(r"\b(?:aiplatform|artifactregistry|compute|iam|secretmanager|storage)\.\w+\.\w+\b")
CAPACITY = re.compile(r"capacity|stockout|out of resources", re.IGNORECASE)
NO_SUCH_HOST = re.compile(r"DNS resolution failed|name resolution|name or service not known|getaddrinfo", re.IGNORECASE)

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Deploying = Callable[Concatenate[Place, str, VariantSpec, Parameters], Result]


def advised(deploy: Deploying[Parameters, Result]) -> Deploying[Parameters, Result]:
    """Let the errors of a function that deploys a variant say what to do about this one."""

    @functools.wraps(deploy)
    def deploying(
        place: Place, run_id: str, spec: VariantSpec, /, *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Result:
        try:
            return deploy(place, run_id, spec, *args, **kwargs)
        except ServiceError as error:
            error.hint = advice(error.kind, error.message, place, spec) or error.hint
            raise

    return deploying


def advice(kind: str, message: str, place: Place, spec: VariantSpec) -> str | None:
    """What to do, for this variant in this place; None where nothing is known beyond what the kind means."""
    if kind == "unavailable" and NO_SUCH_HOST.search(message):
        return f"Check `location`: {place.location} may be no region of Vertex AI. Or the network is down."
    find = {
        "quota": _quota,
        "permission": _permission,
        "eula": _licence,
        "gated-model": _gated,
        "image": _image,
        "region": _region,
        "not-found": _not_found,
    }.get(kind)
    return find(message, place, spec) if find else None


def _quota(message: str, place: Place, spec: VariantSpec) -> str:
    if CAPACITY.search(message):
        return (
            f"No such machine is free in {place.location} now: try again later, in another region (`location`), or with "
            "a reservation (`serving.reservation`)."
        )
    named = QUOTA_NAME.search(message)
    which = named[1] if named else "the quota that is named"
    accelerator = spec.serving.accelerator if spec.serving else None
    need = f" (each endpoint takes {accelerator.count} {accelerator.type})" if accelerator else ""
    return (
        f"Ask for more of {which} in {place.location}{need}: {QUOTAS}?project={place.project}. Or take another region."
    )


def _permission(message: str, place: Place, spec: VariantSpec) -> str:
    lacking = PERMISSION.search(message)
    roles = roles_with([lacking[0]], "job") if lacking else ()
    why = f" (it lacks {lacking[0]})" if lacking else ""
    return (
        f"Grant the job's account {' and '.join(roles) or VERTEX_USER} on projects/{place.project}{why}; "
        "`eagle-bench plan` checks all that it needs."
    )


def _licence(message: str, place: Place, spec: VariantSpec) -> str:
    return f"Read the model's licence at {_page(spec)}, then accept it with `serving.accept_eula: true`."


def _gated(message: str, place: Place, spec: VariantSpec) -> str:
    token = "" if spec.hf_token_secret else ", and name its token in `hf_token_secret`"
    return f"Accept the model's conditions at {_page(spec)} with an account of Hugging Face{token}."


def _image(message: str, place: Place, spec: VariantSpec) -> str:
    image = (spec.serving.image if spec.serving else None) or "the image"
    return (
        f"Check `serving.image`: that {image} is there, and that {SERVICE_AGENT} has roles/artifactregistry.reader on "
        "its repository."
    )


def _region(message: str, place: Place, spec: VariantSpec) -> str:
    machine = spec.serving.machine_type if spec.serving else "the machine"
    return f"Take a region that has {machine} (`location` is {place.location}), or another `serving.machine_type`."


def _not_found(message: str, place: Place, spec: VariantSpec) -> str | None:
    if spec.model is None or not re.search(r"model", message, re.IGNORECASE):
        return None
    return f"Check `model`: is {spec.model} written as on {_page(spec)}, and offered in {place.location}?"


def _page(spec: VariantSpec) -> str:
    """Where people read about a model and accept its conditions."""
    model = spec.model or ""
    if "@" not in model:
        return f"{HUB}/{model}"
    publisher, _, name = model.partition("/")
    return f"{GARDEN}/{publisher}/model-garden/{name.partition('@')[0]}"
