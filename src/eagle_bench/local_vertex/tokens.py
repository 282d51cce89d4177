"""The token server: a service account's key, signed assertions in, short-lived access tokens out."""

from __future__ import annotations

import json
import secrets
import time
from pathlib import Path
from typing import Any

from eagle_bench.local_vertex.refusals import Refusal

GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
GOOGLE_AUDIENCE = "https://oauth2.googleapis.com/token"  # google.auth writes it whatever the key's token_uri is


class Tokens:
    """Who may call: access tokens of this server, and assertions signed with its service account's key.

    Google's generated clients send a self-signed assertion to the API instead of an access token, so both
    are taken there; endpoints' traffic takes access tokens only.
    """

    def __init__(self, key_file: Path, *, project: str, token_uri: str, lifetime_s: float) -> None:
        self.lifetime_s = lifetime_s
        self._token_uri = token_uri
        self._expiry: dict[str, float] = {}
        self._account: dict[str, str] = {}
        self._revoked_before = 0.0
        key = _read_or_make_key(key_file, project=project, token_uri=token_uri)
        self._email = key["client_email"]
        self._public_key = _public_key(key["private_key"])

    def grant(self, form: dict[str, str]) -> dict[str, Any]:
        """Answer a JWT bearer grant (RFC 7523).

        Raises:
            Refusal: the grant or its assertion is not right.
        """
        if form.get("grant_type") != GRANT:
            raise Refusal(400, "unsupported_grant_type")
        claims = self._claims(form.get("assertion", ""))
        if claims is None or claims.get("aud") not in {self._token_uri, GOOGLE_AUDIENCE}:
            raise Refusal(400, "invalid_grant: Invalid JWT Signature or audience.")
        token = self.issue(self._email, self.lifetime_s)
        return {"access_token": token, "expires_in": int(self.lifetime_s), "token_type": "Bearer"}

    def issue(self, account: str, lifetime_s: float) -> str:
        """A new access token of an account."""
        now = time.time()
        self._expiry = {token: end for token, end in self._expiry.items() if end > now}
        self._account = {token: owner for token, owner in self._account.items() if token in self._expiry}
        token = "local." + secrets.token_urlsafe(32)
        self._expiry[token], self._account[token] = now + lifetime_s, account
        return token

    def account_of(self, authorization: str | None) -> str:
        """The account whose token (or assertion: this server's own) a request carries."""
        return self._account.get((authorization or "").partition(" ")[2], self._email)

    def revoke_all(self) -> None:
        """No token given out so far works any longer."""
        self._expiry.clear()
        self._revoked_before = time.time()

    def check(self, authorization: str | None, *, assertions: bool) -> None:
        """Let a request pass, or refuse it.

        Raises:
            Refusal: 401, there is no valid token.
        """
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() == "bearer" and token:
            if self._expiry.get(token, 0.0) > time.time():
                return
            claims = self._claims(token) if assertions and token.count(".") == 2 else None
            if claims and claims["iat"] >= int(self._revoked_before):
                return
        raise Refusal(
            401,
            "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other "
            "valid authentication credential.",
        )

    def _claims(self, assertion: str) -> dict[str, Any] | None:
        import jwt

        try:
            claims: dict[str, Any] = jwt.decode(
                assertion,
                self._public_key,
                algorithms=["RS256"],
                issuer=self._email,
                options={"verify_aud": False, "require": ["exp", "iat", "iss"]},
                leeway=10,
            )
        except jwt.InvalidTokenError:
            return None
        return claims


def _read_or_make_key(key_file: Path, *, project: str, token_uri: str) -> dict[str, str]:
    """The key file, made at the first start and kept; only its owner can read it."""
    if key_file.exists():
        key: dict[str, str] = json.loads(key_file.read_text())
        if key["token_uri"] == token_uri and key["project_id"] == project:
            return key
    else:
        key = {"private_key": _new_private_key(), "private_key_id": secrets.token_hex(20)}
    key |= {
        "type": "service_account",
        "project_id": project,
        "client_email": f"eagle-bench@{project}.iam.gserviceaccount.com",
        "client_id": "100000000000000000001",
        "token_uri": token_uri,
    }
    key_file.touch(mode=0o600)
    key_file.write_text(json.dumps(key, indent=2))
    return key


def _new_private_key() -> str:
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _public_key(private_key: str) -> Any:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    return load_pem_private_key(private_key.encode(), password=None).public_key()
