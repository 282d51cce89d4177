"""What the cloud says of a run before it: bucket, what caller and job may do, secrets, quota. Nothing is made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from eagle_bench.adapters import iam
from eagle_bench.adapters.storage import split
from eagle_bench.adapters.vertex_address import credentials, place_of
from eagle_bench.adapters.vertex_models import check_publisher_model
from eagle_bench.adapters.vertex_quota import Quota, quota, quota_id
from eagle_bench.config import Config
from eagle_bench.errors import InputError, ServiceError
from eagle_bench.permissions import Holder, Resource, needed, roles_with
from eagle_bench.run_plan import Check
from eagle_bench.variants import resolve

NOT_THERE = frozenset({"not-found"})
QUOTAS_PAGE = "https://console.cloud.google.com/iam-admin/quotas"


def answered(name: str, ask: Callable[[], Check | str], refusing: frozenset[str] = NOT_THERE) -> Check:
    """The check that a question leads to: text is ok; errors of the kinds in `refusing` refuse, others leave it open."""
    try:
        found = ask()
    except InputError as error:
        return Check(name=name, status="refused", text=error.message, hint=error.hint)
    except ServiceError as error:
        status = "refused" if error.kind in refusing else "not checked"
        return Check(name=name, status=status, text=error.message, hint=error.hint)
    return found if isinstance(found, Check) else Check(name=name, status="ok", text=found)


def cloud_checks(config: Config) -> Iterator[Check]:
    """Everything that Google Cloud is asked, one answer at a time."""
    signed_in = answered("credentials", _credentials)
    yield signed_in
    asked = {
        "model": _model,
        "bucket": _bucket,
        "caller": _caller,
        "service-account": _account,
        "job": _job,
        "secrets": _secrets,
        "quota": _quota,
    }
    if not any(variant.deployed for variant in config.variants) or "@" not in (config.model or ""):
        del asked["model"]  # nothing is deployed, or the hub is asked
    for name, ask in asked.items():
        if signed_in.status != "ok":
            yield _open(name, "there are no Google credentials here.", None)
        else:
            yield answered(name, lambda ask=ask: ask(config))  # type: ignore[misc]


def _credentials() -> str:
    credentials()
    account = iam.whoami()
    return f"signed in as {account}." if account else "signed in."


def _model(config: Config) -> str:
    assert config.model is not None
    check_publisher_model(place_of(config), config.model)
    licence = "" if config.serving.accept_eula else " If it has a licence, `serving.accept_eula: true` is needed."
    return f"Model Garden has {config.model}.{licence}"


def _bucket(config: Config) -> Check | str:
    if not config.pipeline_root:
        raise InputError("`pipeline_root` is missing: a gs:// folder for the artifacts of the run.")
    bucket, _ = split(config.pipeline_root)
    try:
        missing = _missing("caller", "bucket", bucket)
    except ServiceError as error:
        if error.kind in NOT_THERE:
            error.hint = (
                f"Make it: `gcloud storage buckets create gs://{bucket} --project={config.project} "
                f"--location={config.location}`."
            )
        raise
    if missing:
        return _lacks("bucket", f"you lack {', '.join(missing)} on gs://{bucket}.", missing, f"gs://{bucket}", "caller")
    return f"gs://{bucket} is there, and you may look into it."


def _caller(config: Config) -> Check | str:
    project = f"projects/{config.project}"
    missing = _missing("caller", "project", project)
    if missing:
        return _lacks("caller", f"you lack {', '.join(missing)} on {project}.", missing, project, "caller")
    extra = _missing("caller", "project", project, optional=True)
    also = f" Without {', '.join(extra)} some of the checks can't be made." if extra else ""
    return f"you may submit, follow, cancel and clean up in {project}.{also}"


def _account(config: Config) -> Check | str:
    account = config.service_account
    if account is None:
        return _open("service-account", "no `service_account` is set: the job runs as the project's default one.", None)
    missing = _missing("caller", "service account", _resource_of(account, config))
    if missing:
        return _lacks("service-account", f"you may not let a job run as {account}.", missing, account, "caller")
    return f"you may let a job run as {account}."


def _job(config: Config) -> Check | str:
    account = config.service_account
    if account is None:
        return _open("job", "the project's default account can't be asked for.", "Set `service_account`.")
    if account != iam.whoami() and _missing("caller", "service account", _resource_of(account, config), optional=True):
        return _open(
            "job",
            f"what {account} may do can only be asked by who may act as it.",
            f"Grant yourself {roles_with(['iam.serviceAccounts.getAccessToken'])[0]} on it, or see docs/permissions.md.",
        )
    places: list[tuple[Resource, str]] = [("project", f"projects/{config.project}")]
    if config.pipeline_root:
        places.append(("bucket", split(config.pipeline_root)[0]))
    places += [("secret", name) for name in _secret_names(config)]
    lacking = {name: found for kind, name in places if (found := _missing("job", kind, name, account=account))}
    if lacking:
        words = "; ".join(f"{', '.join(found)} on {name}" for name, found in lacking.items())
        every = [permission for found in lacking.values() for permission in found]
        return _lacks("job", f"{account} lacks {words}.", every, " and ".join(lacking), "job")
    return f"{account} may deploy, measure, write results and give back."


def _secrets(config: Config) -> Check | str:
    names = _secret_names(config)
    if not names:
        return "none is named."
    # Secret Manager answers "no permission" also for a secret that is not there.
    closed = [name for name in names if _missing("caller", "secret", name, optional=True)]
    if closed:
        return _open("secrets", f"you may not read {', '.join(closed)}, or there is no such secret.", None)
    return f"{', '.join(names)} can be read."


def _quota(config: Config) -> Check | str:
    place = place_of(config)
    wanted: Counter[tuple[str, bool]] = Counter()
    for spec in resolve(config):
        if spec.serving and spec.serving.reservation:
            return _open("quota", f"the machines come from the reservation {spec.serving.reservation}.", None)
        if spec.serving and spec.serving.accelerator:
            wanted[spec.serving.accelerator.type, spec.serving.spot] += spec.serving.accelerator.count
    if not wanted:
        return "no accelerator is deployed."
    said = []
    for (accelerator, spot), count in wanted.items():
        known = quota_id(accelerator, spot=spot)
        if known is None:
            return _open("quota", f"the name of the quota for {accelerator} is not known here.", QUOTAS_PAGE)
        found = quota(place, known)
        words = _quota_words(found, count, accelerator, config)
        if found.limit is not None and (found.used or 0) + count > found.limit:
            hint = f"Ask for more of {found.id} ({QUOTAS_PAGE}?project={config.project}), or take another region."
            return Check(name="quota", status="refused", text=words, hint=hint)
        said.append(words)
    return " ".join(said)


def _quota_words(found: Quota, count: int, accelerator: str, config: Config) -> str:
    deployed = sum(variant.deployed for variant in config.variants)
    limit = "no limit" if found.limit is None else f"a limit of {found.limit}"
    used = "how much is in use is not known" if found.used is None else f"{found.used} in use"
    return f"{count} {accelerator} are needed for {deployed} endpoints; {config.location} has {limit}, {used}."


def _secret_names(config: Config) -> tuple[str, ...]:
    """Secrets without their versions, each once."""
    named = [config.hf_token_secret, *(variant.api_key_secret for variant in config.variants)]
    return tuple(dict.fromkeys(name.split("/versions/")[0] for name in named if name))


def _resource_of(account: str, config: Config) -> str:
    domain = account.partition("@")[2]
    project = domain.removesuffix(".iam.gserviceaccount.com") if domain.endswith(".iam.gserviceaccount.com") else ""
    return f"projects/{project or config.project}/serviceAccounts/{account}"


def _missing(
    holder: Holder, resource: Resource, name: str, *, optional: bool = False, account: str | None = None
) -> list[str]:
    wanted = needed(holder, resource, optional=optional)
    have = iam.held(resource, name, wanted, account=account)
    return [permission for permission in wanted if permission not in have]


def _lacks(name: str, text: str, missing: Sequence[str], on: str, holder: Holder) -> Check:
    roles = " and ".join(roles_with(missing, holder))
    whom = "the job's account" if holder == "job" else "yourself"
    return Check(name=name, status="refused", text=text, hint=f"Grant {whom} {roles} on {on}, or ask for it.")


def _open(name: str, text: str, hint: str | None) -> Check:
    return Check(name=name, status="not checked", text=text, hint=hint)
