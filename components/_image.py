"""Which image each component runs in; the only place that says so. Tags are the package's version.

`slim` has everything but the measuring client, and is a third of `bench`: a task starts sooner in it. The names are
those of images that were built on this machine; `eagle-bench compile --image` puts addresses in their place.
"""

from typing import Literal

from eagle_bench import __version__

Image = Literal["bench", "slim"]

USED_BY: dict[str, Image] = {
    "benchmark": "bench",  # vLLM's client measures
    "stage_data": "bench",  # SentencePiece tokenizers need transformers
    "deploy_endpoint": "slim",
    "smoke_test": "slim",
    "collect": "slim",
    "compare": "slim",
    "conclude": "slim",
    "teardown": "slim",
    "teardown_all": "slim",
}
IMAGES: dict[Image, str] = {name: f"eagle-bench/{name}:{__version__}" for name in ("bench", "slim")}


def image_of(component: str) -> str:
    """The image of a component, by the function's name."""
    return IMAGES[USED_BY[component]]
