"""Whether a server is there, told by a small page of it: no model is asked, and no key is needed."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import urlsplit

from eagle_bench.errors import because

CONNECT_S, ANSWER_S = 3.0, 5.0
BUSY = frozenset({429, 502, 503, 504})


@dataclass(frozen=True)
class Seen:
    """What stands at a base URL. `text` is a sentence's end: "can't be reached: …".

    `up` None: something took the connection, and whether it will answer is open.
    """

    up: bool | None
    text: str
    meant: str | None = None  # the base URL that has the API, where it is another one


def look(base_urls: Sequence[str]) -> list[Seen]:
    """What stands at each base URL, all asked at the same time.

    Raises:
        InputError: one can't be asked at all.
    """
    from eagle_bench.adapters.vllm_client.target import Target, address

    for url in base_urls:
        address(Target(url).chat_url)
    with ThreadPoolExecutor(max(1, len(base_urls))) as pool:
        return list(pool.map(_look, base_urls))


def _look(base_url: str) -> Seen:
    import httpx

    url = base_url.rstrip("/")
    try:
        status = _status(f"{url}/models")
        at_root = not urlsplit(url).path
        if at_root and status == httpx.codes.NOT_FOUND and _status(f"{url}/v1/models") != httpx.codes.NOT_FOUND:
            return Seen(False, f"has no such API, {url}/v1 has.", meant=f"{url}/v1")
    except (httpx.ReadTimeout, httpx.WriteTimeout):
        return Seen(None, f"takes the connection, but did not answer within {ANSWER_S:.0f} s.")
    except httpx.TimeoutException:
        return Seen(False, f"can't be reached: no connection within {CONNECT_S:.0f} s.")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return Seen(False, because("can't be reached", error))
    if status in BUSY:
        return Seen(None, f"answers {status}: it is busy, or still starts.")
    return Seen(True, "answers.")


def _status(url: str) -> int:
    """The status of a page. Whatever it is, a server said it.

    Asked as the measuring client asks: directly, whatever proxy the environment names, and by this machine's certificates.
    """
    import httpx

    timeout = httpx.Timeout(ANSWER_S, connect=CONNECT_S)
    return httpx.get(url, timeout=timeout, trust_env=False, verify=ssl.create_default_context()).status_code
