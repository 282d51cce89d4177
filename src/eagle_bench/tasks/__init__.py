"""What the components call: each task takes the pipeline's values and artifacts and calls the library.

A task that fails in a way that concerns one variant writes a `CellFailure` into its result and ends well,
so that the other variants are still measured and compared.
"""
