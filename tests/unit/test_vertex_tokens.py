"""Tokens that are always valid, with a clock that the test turns."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest
from google.auth.exceptions import RefreshError

from eagle_bench.adapters.vertex_traffic import TokenSupplier, tokens_for
from eagle_bench.adapters.vllm_client.tokens import RenewingSupplier
from eagle_bench.errors import ServiceError
from eagle_bench.variants import VariantSpec


class Clock:
    def __init__(self):
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self):
        return self.now


class Source:
    """Credentials that count; `expiry` is naive UTC, as google.auth's is."""

    def __init__(self, clock, lifetime_s=3600.0):
        self.clock, self.lifetime_s = clock, lifetime_s
        self.token, self.expiry, self.count, self.down = None, None, 0, False

    def refresh(self, request):
        if self.down:
            raise RefreshError("the token server is down")
        self.count += 1
        self.token = f"token-{self.count}"
        self.expiry = (self.clock.now + timedelta(seconds=self.lifetime_s)).replace(tzinfo=None)


@pytest.fixture
def clock():
    return Clock()


def test_a_token_is_kept_while_it_lasts_and_renewed_ahead_of_its_end(clock):
    source = Source(clock)
    tokens = TokenSupplier(source, clock=clock)
    assert [tokens(), tokens()] == ["token-1", "token-1"]
    clock.now += timedelta(seconds=3299)
    assert tokens() == "token-1"
    clock.now += timedelta(seconds=2)
    assert tokens() == "token-2"


def test_short_tokens_are_renewed_ahead_too(clock):
    tokens = TokenSupplier(Source(clock, lifetime_s=8), clock=clock)
    assert tokens() == "token-1"
    clock.now += timedelta(seconds=5)
    assert tokens() == "token-1"
    clock.now += timedelta(seconds=2)
    assert tokens() == "token-2"


def test_a_token_outlives_a_token_server_that_is_down_but_not_its_own_end(clock):
    source = Source(clock)
    tokens = TokenSupplier(source, clock=clock)
    assert tokens() == "token-1"
    source.down = True
    clock.now += timedelta(seconds=3400)
    assert tokens() == "token-1"
    clock.now += timedelta(seconds=300)
    with pytest.raises(ServiceError) as caught:
        tokens()
    assert caught.value.kind == "authentication"
    source.down = False
    assert tokens() == "token-2"


def test_never_none(clock):
    source = Source(clock)
    source.refresh = lambda request: None
    with pytest.raises(ServiceError, match="no access token"):
        TokenSupplier(source, clock=clock)()


def test_many_threads_renew_once(clock):
    source, inside, go = Source(clock), threading.Event(), threading.Event()
    plain = source.refresh

    def slow(request):
        inside.set()
        assert go.wait(60)
        plain(request)

    tokens, got = TokenSupplier(source, clock=clock), []
    assert tokens() == "token-1"
    source.refresh = slow
    clock.now += timedelta(seconds=3400)
    renewing = threading.Thread(target=lambda: got.append(tokens()))
    renewing.start()
    assert inside.wait(60)
    assert [tokens() for _ in range(5)] == ["token-1"] * 5  # nobody waits: the old one is still good
    go.set()
    renewing.join(60)
    assert (got, tokens(), source.count) == (["token-2"], "token-2", 2)


def test_threads_that_have_no_token_wait_for_the_one_that_gets_it(clock):
    source, got = Source(clock), []
    tokens = TokenSupplier(source, clock=clock)
    threads = [threading.Thread(target=lambda: got.append(tokens())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert got == ["token-1"] * 8


def test_a_refused_token_is_not_given_again(clock):
    tokens = TokenSupplier(Source(clock), clock=clock)
    assert isinstance(tokens, RenewingSupplier)  # the client tells only such a one
    assert not isinstance(lambda: "a key that stays as it is", RenewingSupplier)
    tokens.refused(tokens())
    assert tokens() == "token-2"
    tokens.refused("token-1")  # a late answer about an old one
    assert tokens() == "token-2"


def test_a_url_without_a_secret_needs_no_token():
    assert tokens_for(VariantSpec(id="mine", url="http://127.0.0.1:1/v1")) is None
