"""Ends a build before it makes anything where its account can't put the images and the template where they go.

PYTHONPATH=src python containers/check_repositories.py LOCATION-docker.pkg.dev/PROJECT/REPOSITORY https://LOCATION-kfp.pkg.dev/PROJECT/REPOSITORY
"""

import sys

from eagle_bench.adapters.artifact_registry import check_upload
from eagle_bench.errors import EagleBenchError

wrong = False
for address in sys.argv[1:]:
    try:
        there = check_upload(address)
    except EagleBenchError as error:
        wrong = True
        print(error, file=sys.stderr)
    else:
        print(
            f"{there}: this account may write there" if there else f"{address}: not checked, not in Artifact Registry"
        )
sys.exit(2 if wrong else 0)
