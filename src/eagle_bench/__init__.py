"""eagle-bench: does EAGLE speculative decoding pay on this endpoint, and up to which concurrency?"""

__version__ = "0.1.0"
