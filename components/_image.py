"""The image that every component runs in, tied to the package's version.

`eagle-bench compile --image` puts the address of a built image in its place.
"""

from eagle_bench import __version__

BENCH_IMAGE = f"eagle-bench/bench:{__version__}"
