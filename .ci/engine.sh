#!/usr/bin/env bash
# A Docker engine and base images of our own, on a Debian machine that has none and reaches no image registry. As root.
#   eval "$(.ci/engine.sh up)"     exports DOCKER_HOST and BASE_IMAGE for `make test-container`
#   .ci/engine.sh down [--purge]   stops it; --purge drops its images too
# It makes no bridge and no firewall rule: containers take part in this machine's network (--network=host).
set -euo pipefail
dir=${ENGINE_DIR:-$PWD/.engine}
run=/run/eagle-bench-$(echo "$dir" | cksum | cut -d' ' -f1)   # sockets want short paths
export DOCKER_HOST=unix://$run/docker.sock DOCKER_BUILDKIT=1
BASE=python:3.11-slim-bookworm
BUILDER=gcr.io/cloud-builders/docker:24.0.9
docker=/usr/bin/docker   # Debian's client knows BuildKit by itself

install() {
  command -v dockerd >/dev/null && command -v mmdebstrap >/dev/null && return
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends docker.io mmdebstrap >"$dir/apt.log" 2>&1 ||
    { tail -20 "$dir/apt.log"; exit 1; }
}

start() {
  $docker info >/dev/null 2>&1 && return
  rm -f "$dir/dockerd.pid"
  setsid dockerd --data-root "$dir/data" --exec-root "$run" --pidfile "$dir/dockerd.pid" --host "$DOCKER_HOST" \
    --bridge=none --iptables=false --ip6tables=false >"$dir/dockerd.log" 2>&1 </dev/null &
  for _ in $(seq 120); do $docker info >/dev/null 2>&1 && return; sleep 0.5; done
  tail -30 "$dir/dockerd.log"; echo "dockerd did not come up"; exit 1
}

# Debian's Python stands for the official image: the same release of Debian, the same minor version of Python.
base_image() {
  $docker image inspect $BASE $BUILDER >/dev/null 2>&1 && return
  local context; context=$(mktemp -d); trap "rm -rf '$context'" RETURN
  mmdebstrap --quiet --variant=minbase --mode=root --aptopt='APT::Install-Recommends "false"' \
    --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr --include=usr-is-merged,ca-certificates,python3,python3-venv \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    bookworm - /etc/apt/sources.list.d/debian.sources | $docker import - stand-in/debian >/dev/null
  # This machine's certificates, so that pip in an image reaches what pip reaches here.
  cp /etc/ssl/certs/ca-certificates.crt "$context/"
  printf '[global]\ncert = /etc/ssl/certs/ca-certificates.crt\n' >"$context/pip.conf"
  printf '%s\n' 'FROM stand-in/debian' 'ENV LANG=C.UTF-8' 'COPY ca-certificates.crt /etc/ssl/certs/' 'COPY pip.conf /etc/' \
    'RUN ln -s python3 /usr/bin/python' >"$context/Dockerfile"
  $docker build --quiet --network=host --tag $BASE "$context" >/dev/null
  cp $docker "$context/docker"
  printf '%s\n' "FROM $BASE" 'COPY docker /usr/bin/' 'ENTRYPOINT ["/usr/bin/docker"]' >"$context/Dockerfile"
  $docker build --quiet --network=host --tag $BUILDER "$context" >/dev/null
}

stop() {
  local pid; pid=$(cat "$dir/dockerd.pid" 2>/dev/null) || return 0
  kill "$pid" 2>/dev/null || true
  for _ in $(seq 80); do kill -0 "$pid" 2>/dev/null || break; sleep 0.25; done
  grep -oE " ($dir|$run)/[^ ]*" /proc/mounts | sort -r | xargs -r -n1 umount -l || true
  rm -rf "$run"
}

case ${1:-} in
  up)
    mkdir -p "$dir" "$run"
    { install; start; base_image; } >&2
    echo "export DOCKER_HOST=$DOCKER_HOST BASE_IMAGE=$BASE"
    ;;
  down)
    stop
    if [ "${2:-}" = --purge ]; then rm -rf "$dir"; fi
    ;;
  *) sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
