"""What an account may do: Google's own answer (`testIamPermissions`) for projects, buckets, accounts and secrets.

The API answers for whoever asks. Another account is asked for as that account, which needs the right to act as it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from eagle_bench.adapters.google_rest import call
from eagle_bench.adapters.vertex_address import credentials, impersonated
from eagle_bench.permissions import Resource


def held(resource: Resource, name: str, permissions: Sequence[str], *, account: str | None = None) -> frozenset[str]:
    """Those of the permissions that an account has on a resource.

    Args:
        name: `projects/p`, a bucket's name, `projects/p/serviceAccounts/E`, `projects/p/secrets/s`.
        account: e-mail address of a service account; the caller when absent.

    Raises:
        ServiceError: kind "not-found" where the resource is not there; any other where it can't be asked.
    """
    doing = f"say what {account or 'this account'} may do on {name}"
    as_account: Any = impersonated(account) if account and account != whoami() else None
    if resource == "bucket":
        found = call(
            "storage",
            "GET",
            f"storage/v1/b/{quote(name, safe='')}/iam/testPermissions",
            doing=doing,
            query={"permissions": list(permissions)},
            account=as_account,
        )
    else:
        service = {"project": "cloudresourcemanager", "service account": "iam", "secret": "secretmanager"}[resource]
        found = call(
            service,
            "POST",
            f"v1/{quote(name, safe='/@')}:testIamPermissions",
            doing=doing,
            body={"permissions": list(permissions)},
            account=as_account,
        )
    return frozenset(found.get("permissions", ()))


def whoami() -> str | None:
    """The service account of the default credentials; None for a person's, which don't tell."""
    email = getattr(credentials(), "service_account_email", None)
    return str(email) if email and email != "default" else None
