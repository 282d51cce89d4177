"""What a machine holds: what can't be is refused with what was meant, what is not known is not."""

from __future__ import annotations

import pytest
from google.cloud.aiplatform_v1 import AcceleratorType

from eagle_bench import config_file
from eagle_bench.errors import InputError
from eagle_bench.machines import ACCELERATORS, MACHINES


def config(**serving):
    variants = [{"id": "baseline"}, {"id": "eagle3", "args": ["--speculative-algo=EAGLE3"]}]
    given = {"project": "p", "location": "l", "model": "a/b", "tokenizer": "a/b", "variants": variants}
    return config_file.validate({**given, "serving": serving})


def test_the_names_are_those_of_the_api():
    assert set(ACCELERATORS) == set(AcceleratorType.__members__) - {"ACCELERATOR_TYPE_UNSPECIFIED"}
    assert {gpus.type for gpus in MACHINES.values()} <= set(ACCELERATORS)


@pytest.mark.parametrize("name", MACHINES)
def test_a_machine_takes_its_own_gpus_and_fewer(name):
    has = MACHINES[name]
    for count in (1, has.count):
        taken = config(machine_type=name, accelerator={"type": has.type, "count": count})
        assert taken.serving.accelerator.count == count


@pytest.mark.parametrize(
    ("machine", "accelerator", "words"),
    [
        (
            "g2-standard-12",
            {"type": "NVIDIA_L4", "count": 2},
            "asks for 2 NVIDIA_L4. 2 NVIDIA_L4 are in: g2-standard-24.",
        ),
        ("a3-highgpu-8g", {"type": "NVIDIA_B200", "count": 8}, "has 8 NVIDIA_H100_80GB, and `accelerator` asks for"),
        ("a3-highgpu-8g", {"type": "NVIDIA_H1000"}, "does not know. Did you mean `NVIDIA_H100_80GB`?"),
        ("g2-standard-4", {"type": "nvidia_l4"}, "Did you mean `NVIDIA_L4`?"),
        ("a3-highgpu-8g", {"type": "NVIDIA_H100"}, "Did you mean `NVIDIA_H100_80GB`?"),
        ("a3-highgpu-8g", {"type": "h100"}, "Did you mean `NVIDIA_H100_80GB`?"),
        ("somewhat-new", {"type": "H100"}, "NVIDIA_H100_80GB, "),
    ],
)
def test_what_can_not_be_is_refused_once_with_what_was_meant(machine, accelerator, words):
    with pytest.raises(InputError) as refused:
        config(machine_type=machine, accelerator=accelerator)
    assert words in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize("accelerator", [None, {"type": "NVIDIA_B200", "count": 72}, {"type": "NVIDIA_TESLA_T4"}])
def test_a_machine_that_is_not_known_may_be_right(accelerator):
    assert config(machine_type="a9-highgpu-72g", accelerator=accelerator)
