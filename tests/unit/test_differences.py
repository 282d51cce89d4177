"""What differs between variants beyond speculation: listed by key, refused unless the config allows it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagle_bench import config_file
from eagle_bench.config import Criteria, Serving
from eagle_bench.differences import by_variant, differences, is_speculation, require_equal, speculation
from eagle_bench.errors import InputError
from eagle_bench.tasks.compare import plan_of
from eagle_bench.variants import VariantSpec, resolve

SPECULATIVE = {
    "sglang": [
        "--speculative-algo=EAGLE3",
        "--speculative-algorithm=EAGLE3",
        "--speculative-draft-model-path=gs://b/head",
        "--speculative-num-steps=3",
        "--speculative-eagle-topk=4",
        "--speculative-num-draft-tokens=8",
    ],
    "vllm": [
        '--speculative-config={"method": "eagle3"}',
        "--speculative-config.method=eagle3",
        "--num-speculative-tokens=3",
        "--speculative-model=x",
        "--spec-decoding-acceptance-method=x",
        "-sc={}",
    ],
    "others": ["--speculate=3", "--eagle-choices=x"],
}
OTHER = ["--max-num-seqs=4", "--tp=8", "--specific=1", "--inspect=1", "--mem-fraction-static=0.8", "--dtype=half"]


def spec(*args, name="baseline", env=None, **serving):
    return VariantSpec(id=name, model="owner/name", serving=Serving(args=args, env=env or {}, **serving))


def config(*, allow=(), baseline=(), eagle=("--speculative-algo=EAGLE3",)):
    return config_file.validate(
        {
            "project": "p",
            "location": "l",
            "model": "owner/name",
            "tokenizer": "owner/name",
            "serving": {"image": "i", "args": ["--tp=8"]},
            "allow_difference": list(allow),
            "variants": [{"id": "baseline", "args": list(baseline)}, {"id": "eagle3", "args": list(eagle)}],
        }
    )


@pytest.mark.parametrize("args", SPECULATIVE.values(), ids=SPECULATIVE)
def test_arguments_of_speculation_are_no_difference(args):
    assert differences(spec("--tp=8"), spec("--tp=8", *args)) == ()
    assert len(speculation(spec("--tp=8", *args))) == len(args)


@pytest.mark.parametrize("arg", OTHER)
def test_any_other_argument_is_one(arg):
    (found,) = differences(spec(), spec(arg))
    name, _, value = arg.removeprefix("--").partition("=")
    assert (found.key, found.baseline, found.variant) == (name, None, value)
    assert f"{name} (not set and {value})" == str(found)


def test_the_ways_to_write_an_argument_are_one():
    assert differences(spec("--max-num-seqs=4", "--eager"), spec("--eager", "--max_num_seqs", "4")) == ()
    (found,) = differences(spec("--max-num-seqs", "4"), spec("--max-num-seqs", "8"))
    assert (found.baseline, found.variant) == ("4", "8")
    assert [one.key for one in differences(spec("serve", "--x"), spec("run", "--x"))] == ["word run", "word serve"]


def test_variables_and_what_serves_count_too():
    found = differences(
        spec(env={"OMP_NUM_THREADS": "8"}, image="a", machine_type="small"),
        spec(env={"OMP_NUM_THREADS": "4", "SGLANG_ENABLE_SPEC_V2": "1"}, image="b", machine_type="large", spot=True),
    )
    assert [one.key for one in found] == ["env.OMP_NUM_THREADS", "image", "machine_type", "spot"]


def test_what_runs_already_has_no_settings_here():
    assert differences(spec(), VariantSpec(id="there", url="http://x/v1")) == ()


@given(st.lists(st.sampled_from(OTHER), unique=True), st.lists(st.sampled_from(OTHER), unique=True))
def test_the_law_of_differences(mine, theirs):
    found = differences(spec(*mine), spec(*theirs))
    assert {one.key for one in found} == {arg.lstrip("-").split("=")[0] for arg in set(mine) ^ set(theirs)}
    back = differences(spec(*theirs), spec(*mine))
    assert [(one.key, one.variant, one.baseline) for one in back] == [(o.key, o.baseline, o.variant) for o in found]


@pytest.mark.parametrize("key", ["env.SPECIAL", "specific", "inspect", "respect-order", "tp"])
def test_words_that_look_like_it_are_not_speculation(key):
    assert not is_speculation(key)


def test_a_config_with_other_differences_is_refused_unless_it_allows_them():
    require_equal(config())
    unequal = ("--speculative-algo=EAGLE3", "--max-num-seqs=4", "--dtype=half")
    with pytest.raises(InputError) as caught:
        require_equal(config(eagle=unequal))
    assert "eagle3 differs from baseline in more than speculation: dtype (not set and half)" in caught.value.message
    assert "max-num-seqs (not set and 4)" in caught.value.message
    assert "allow_difference: [dtype, max-num-seqs]" in caught.value.hint
    with pytest.raises(InputError, match="dtype"):
        require_equal(config(eagle=unequal, allow=["max-num-seqs"]))
    require_equal(config(eagle=unequal, allow=["--max_num_seqs", "dtype"]))


def test_the_comparison_is_told_of_both():
    given = config(eagle=("--speculative-algo=X", "--a=1", "--b=2"), allow=["a"])
    plan = plan_of(resolve(given), [1], "baseline", given.criteria, {})
    assert [(one.key, one.allowed) for one in plan.differences["eagle3"]] == [("a", True), ("b", False)]
    assert Criteria.model_validate(given.criteria.model_dump(mode="json")) == given.criteria
    assert by_variant(resolve(config()), "baseline") == {}
