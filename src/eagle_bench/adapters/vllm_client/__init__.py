"""The measuring client: vLLM's own benchmark, with connections, clock and manners of ours."""

from eagle_bench.adapters.vllm_client.measure import measure
from eagle_bench.adapters.vllm_client.target import Progress, Target

__all__ = ["Progress", "Target", "measure"]
