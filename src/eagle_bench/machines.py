"""The machines with GPUs that Vertex AI serves models on, and the GPUs in each: the one table.

From Google's pages on accelerator-optimized machines and on compute resources for inference. Google adds machines: one
that is not here is not known, and may be right.
"""

from __future__ import annotations

from dataclasses import dataclass

from eagle_bench.nearest import did_you_mean

THIS_MACHINE = "this-machine"
"""The machine type of a config that is meant for `run`: Vertex AI has none of that name."""


@dataclass(frozen=True)
class Gpus:
    """What one machine holds, `type` as Vertex AI names it."""

    type: str
    count: int

    def __str__(self) -> str:
        return f"{self.count} {self.type}"


ACCELERATORS = (
    "NVIDIA_TESLA_K80",
    "NVIDIA_TESLA_P100",
    "NVIDIA_TESLA_V100",
    "NVIDIA_TESLA_P4",
    "NVIDIA_TESLA_T4",
    "NVIDIA_TESLA_A100",
    "NVIDIA_A100_80GB",
    "NVIDIA_L4",
    "NVIDIA_H100_80GB",
    "NVIDIA_H100_MEGA_80GB",
    "NVIDIA_H200_141GB",
    "NVIDIA_B200",
    "NVIDIA_GB200",
    "NVIDIA_RTX_PRO_6000",
    "TPU_V2",
    "TPU_V3",
    "TPU_V4_POD",
    "TPU_V5_LITEPOD",
)
"""The names that the API takes; a test holds them against its client."""

MACHINES: dict[str, Gpus] = {
    **{f"a2-highgpu-{count}g": Gpus("NVIDIA_TESLA_A100", count) for count in (1, 2, 4, 8)},
    "a2-megagpu-16g": Gpus("NVIDIA_TESLA_A100", 16),
    **{f"a2-ultragpu-{count}g": Gpus("NVIDIA_A100_80GB", count) for count in (1, 2, 4, 8)},
    **{f"a3-highgpu-{count}g": Gpus("NVIDIA_H100_80GB", count) for count in (1, 2, 4, 8)},
    "a3-edgegpu-8g": Gpus("NVIDIA_H100_80GB", 8),
    "a3-megagpu-8g": Gpus("NVIDIA_H100_MEGA_80GB", 8),
    "a3-ultragpu-8g": Gpus("NVIDIA_H200_141GB", 8),
    "a4-highgpu-8g": Gpus("NVIDIA_B200", 8),
    "a4x-highgpu-4g": Gpus("NVIDIA_GB200", 4),
    **{f"g2-standard-{cpus}": Gpus("NVIDIA_L4", 1) for cpus in (4, 8, 12, 16, 32)},
    "g2-standard-24": Gpus("NVIDIA_L4", 2),
    "g2-standard-48": Gpus("NVIDIA_L4", 4),
    "g2-standard-96": Gpus("NVIDIA_L4", 8),
    "g4-standard-48": Gpus("NVIDIA_RTX_PRO_6000", 1),
    "g4-standard-96": Gpus("NVIDIA_RTX_PRO_6000", 2),
    "g4-standard-192": Gpus("NVIDIA_RTX_PRO_6000", 4),
    "g4-standard-384": Gpus("NVIDIA_RTX_PRO_6000", 8),
}


def unknown_accelerator(name: str) -> str | None:
    """What is wrong with an accelerator's name; None where the API takes it."""
    if name in ACCELERATORS:
        return None
    near = did_you_mean(name, ACCELERATORS)
    return f"`type` is {name!r}, which Vertex AI does not know.{near} It knows: {', '.join(ACCELERATORS)}."


def mismatch(machine_type: str, asked: Gpus) -> str | None:
    """What is wrong with asking a machine for these GPUs; None where it has them, or is not in the table.

    Fewer than the machine holds are right: Vertex AI shares a machine out among replicas.
    """
    has = MACHINES.get(machine_type)
    if has is None or (asked.type == has.type and asked.count <= has.count):
        return None
    fitting = [name for name, gpus in MACHINES.items() if gpus == asked]
    instead = f" {asked} are in: {', '.join(fitting)}." if fitting else ""
    return f"`machine_type: {machine_type}` has {has}, and `accelerator` asks for {asked}.{instead}"
