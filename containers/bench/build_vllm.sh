#!/bin/sh
# Builds vLLM's client without kernels, from its source distribution: pure Python, 12 MB.
#   build_vllm.sh PYTHON VERSION FOLDER     PYTHON has torch; the wheel is put into FOLDER
set -eu
python=$1 version=$2 folder=$3
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder"
if ls "$folder"/vllm-"$version"-*.whl >/dev/null 2>&1; then exit 0; fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PYTHONPATH= "$python" -m pip --disable-pip-version-check install --progress-bar off --require-hashes --target "$work/build" -r "$here/build-requirements.txt"
PYTHONPATH=$work/build${PYTHONPATH:+:$PYTHONPATH} PATH=$work/build/bin:$PATH VLLM_TARGET_DEVICE=empty VLLM_VERSION_OVERRIDE=$version \
  "$python" -m pip --disable-pip-version-check wheel --progress-bar off --no-deps --no-binary vllm --no-build-isolation \
  --wheel-dir "$work/wheel" "vllm==$version"
mv "$work"/wheel/vllm-"$version"-*.whl "$folder"/
