"""Who needs which permission on what, and why: the one list. `plan` asks for these, docs/permissions.md shows them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

Holder = Literal["caller", "job", "service agent"]
Resource = Literal["project", "bucket", "service account", "secret", "image repository", "reservation's project"]

HOLDERS: dict[Holder, str] = {
    "caller": "who runs `eagle-bench` (you, or a build's account)",
    "job": "the config's `service_account`, as which the pipeline's tasks run",
    "service agent": "Vertex AI itself: service-PROJECT_NUMBER@gcp-sa-aiplatform.iam.gserviceaccount.com, and for the "
    "components' images service-PROJECT_NUMBER@gcp-sa-aiplatform-cc.iam.gserviceaccount.com",
}
VERTEX_USER = "roles/aiplatform.user"


class Need(NamedTuple):
    """Permissions that one holder needs on one kind of resource, and the least predefined role that has them.

    `optional`: without them less can be checked or done, and a run still works.
    """

    holder: Holder
    resource: Resource
    permissions: tuple[str, ...]
    role: str
    why: str
    optional: bool = False


NEEDS: tuple[Need, ...] = (
    Need(
        "caller",
        "project",
        ("aiplatform.pipelineJobs.create", "aiplatform.pipelineJobs.get", "aiplatform.pipelineJobs.cancel"),
        VERTEX_USER,
        "submit a run, follow it, cancel it",
    ),
    Need(
        "caller",
        "project",
        (
            "aiplatform.endpoints.list",
            "aiplatform.endpoints.get",
            "aiplatform.endpoints.undeploy",
            "aiplatform.endpoints.delete",
            "aiplatform.models.list",
            "aiplatform.models.delete",
        ),
        VERTEX_USER,
        "`cleanup` of what a cancelled run left",
    ),
    Need(
        "caller",
        "bucket",
        ("storage.buckets.get", "storage.objects.list"),
        "roles/storage.legacyBucketReader",
        "`submit` looks the bucket up",
    ),
    Need("caller", "bucket", ("storage.objects.get",), "roles/storage.objectViewer", "fetch results", optional=True),
    Need(
        "caller",
        "service account",
        ("iam.serviceAccounts.actAs",),
        "roles/iam.serviceAccountUser",
        "let the job run as this account",
    ),
    Need(
        "caller",
        "secret",
        ("secretmanager.versions.access",),
        "roles/secretmanager.secretAccessor",
        "see before a run whether the Hugging Face token opens the tokenizer",
        optional=True,
    ),
    Need(
        "caller",
        "service account",
        ("iam.serviceAccounts.getAccessToken",),
        "roles/iam.serviceAccountTokenCreator",
        "`plan` checks what this account may do",
        optional=True,
    ),
    Need(
        "caller",
        "project",
        ("cloudquotas.quotas.get",),
        "roles/cloudquotas.viewer",
        "`plan` reads the accelerators' quota",
        optional=True,
    ),
    Need(
        "caller",
        "project",
        ("monitoring.timeSeries.list",),
        "roles/monitoring.viewer",
        "`plan` reads how much of the quota is in use",
        optional=True,
    ),
    Need(
        "caller",
        "image repository",
        ("artifactregistry.repositories.downloadArtifacts",),
        "roles/artifactregistry.reader",
        "look for images, and take templates from there",
        optional=True,
    ),
    Need(
        "caller",
        "project",
        ("aiplatform.schedules.create",),
        VERTEX_USER,
        "`submit --schedule`",
        optional=True,
    ),
    Need(
        "job",
        "project",
        (
            "aiplatform.endpoints.create",
            "aiplatform.endpoints.deploy",
            "aiplatform.endpoints.get",
            "aiplatform.endpoints.update",
            "aiplatform.models.upload",
            "aiplatform.models.get",
            "aiplatform.models.update",
            "aiplatform.operations.list",
        ),
        VERTEX_USER,
        "deploy a variant, label it, find what an earlier attempt deployed",
    ),
    Need("job", "project", ("aiplatform.endpoints.predict",), VERTEX_USER, "send the benchmark's requests"),
    Need(
        "job",
        "project",
        ("aiplatform.endpoints.undeploy", "aiplatform.endpoints.delete", "aiplatform.models.delete"),
        VERTEX_USER,
        "give everything back",
    ),
    Need(
        "job",
        "bucket",
        ("storage.objects.create", "storage.objects.get", "storage.objects.list", "storage.objects.delete"),
        "roles/storage.objectUser",
        "write results and pass them from task to task",
    ),
    Need("job", "bucket", ("storage.buckets.get",), "roles/storage.legacyBucketReader", "look the bucket up"),
    Need(
        "job",
        "image repository",
        ("artifactregistry.repositories.downloadArtifacts",),
        "roles/artifactregistry.reader",
        "run in the components' images",
    ),
    Need(
        "job",
        "secret",
        ("secretmanager.versions.access",),
        "roles/secretmanager.secretAccessor",
        "read the Hugging Face token and the keys of variants",
    ),
    Need(
        "service agent",
        "image repository",
        ("artifactregistry.repositories.downloadArtifacts",),
        "roles/artifactregistry.reader",
        "pull serving and component images that lie in another project",
    ),
    Need(
        "service agent",
        "reservation's project",
        ("compute.reservations.get",),
        "roles/compute.viewer",
        "use a reservation that `serving.reservation` names",
    ),
)


def needed(holder: Holder, resource: Resource, *, optional: bool = False) -> tuple[str, ...]:
    """The permissions that a holder needs on a resource of a kind, each once; with `optional` those alone."""
    found = [
        permission
        for need in NEEDS
        if (need.holder, need.resource, need.optional) == (holder, resource, optional)
        for permission in need.permissions
    ]
    return tuple(dict.fromkeys(found))


def roles_with(permissions: Iterable[str], holder: Holder | None = None) -> tuple[str, ...]:
    """The least roles that bring these permissions, as the list knows them."""
    wanted = set(permissions)
    needs = [need for need in NEEDS if holder in (None, need.holder) and wanted & set(need.permissions)]
    return tuple(dict.fromkeys(need.role for need in needs))


def table() -> str:
    """The list as Markdown, one table a holder."""
    parts = []
    for holder, words in HOLDERS.items():
        needs = [need for need in NEEDS if need.holder == holder]
        parts.append(f"### {holder.capitalize()}\n\nThat is {words}.\n\n{_rows(needs)}")
    return "\n\n".join(parts) + "\n"


def _rows(needs: Sequence[Need]) -> str:
    lines = ["| on the | role | permissions | for |", "| :-- | :-- | :-- | :-- |"]
    for need in needs:
        permissions = ", ".join(f"`{name}`" for name in need.permissions)
        why = f"{need.why} (optional)" if need.optional else need.why
        lines.append(f"| {need.resource} | `{need.role}` | {permissions} | {why} |")
    return "\n".join(lines)
