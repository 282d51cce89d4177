"""`python -m eagle_bench`: the command line."""

from eagle_bench.cli import main

main()
