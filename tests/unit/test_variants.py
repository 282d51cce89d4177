"""A variant as the tasks get it: shared serving and its own arguments in one value."""

from __future__ import annotations

import json

from eagle_bench import config_file
from eagle_bench.variants import VariantSpec, resolve

CONFIG = config_file.validate(
    {
        "project": "p",
        "location": "l",
        "model": "owner/name",
        "tokenizer": "owner/name",
        "hf_token_secret": "projects/p/secrets/hf/versions/latest",
        "serving": {"args": ["--tp=8"], "env": {"A": "1"}},
        "variants": [
            {"id": "eagle3", "args": ["--speculative-algo=EAGLE3"], "env": {"B": "2"}},
            {"id": "baseline"},
            {"id": "there", "url": "https://example.com/v1", "served_model": "m"},
            {"id": "kept", "endpoint": "projects/p/locations/l/endpoints/1"},
        ],
    }
)


def by_id():
    return {spec.id: spec for spec in resolve(CONFIG)}


def test_the_baseline_comes_first():
    assert [spec.id for spec in resolve(CONFIG)] == ["baseline", "eagle3", "there", "kept"]


def test_variants_differ_in_their_own_arguments_only():
    baseline, eagle = by_id()["baseline"], by_id()["eagle3"]
    assert baseline.serving.args == ("--tp=8",)
    assert eagle.serving.args == ("--tp=8", "--speculative-algo=EAGLE3")
    assert eagle.serving.env == {"A": "1", "B": "2"}
    own = {"args": (), "env": {}}
    assert eagle.serving.model_copy(update=own) == baseline.serving.model_copy(update=own)
    assert eagle.model == baseline.model == "owner/name"


def test_what_runs_already_is_not_deployed():
    for name in ("there", "kept"):
        spec = by_id()[name]
        assert not spec.deployed
        assert spec.model is None
        assert spec.serving is None
        assert spec.hf_token_secret is None


def test_a_parameter_comes_back_as_the_same_variant():
    for spec in resolve(CONFIG):
        sent = json.loads(json.dumps(spec.as_parameter()), parse_int=float)  # as kfp hands them on
        assert VariantSpec.model_validate(sent) == spec
