#!/bin/sh
# install.sh ARGUMENTS…    `pip install` into /opt/venv of an image; pip itself is mounted at /media and not kept.
set -eu
/media/bin/python -m pip --python /opt/venv/bin/python install --quiet --progress-bar off --disable-pip-version-check \
  --root-user-action ignore --no-cache-dir --no-compile --no-deps "$@"
# Packages bring their own tests along: 30 MB here, and 80 with PyTorch. Builds leave byte code of their tools.
find /opt/venv -type d \( -name tests -o -path '*/torch/test' \) -prune -exec rm -rf {} +
rm -rf /opt/byte-code
exec "$(dirname "$0")/settle.sh"
