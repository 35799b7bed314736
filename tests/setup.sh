#!/bin/sh
# Installs the pinned packages of folders, side by side, unless these very versions are installed: those of requirements.txt
# into a virtual environment, those of package-lock.json with npm. tests/NAME goes to target/NAME, any other folder below target/.
#
#   tests/setup.sh tests/contract clients/typescript
#
# requirements.txt lists every package with its version, so pip has nothing to resolve. Several of these may run at once.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"

python_packages() {
  rm -rf "$place/venv"
  # The pip of this machine saves installing another one, if it can serve other environments.
  if python3 -c 'import pip; assert int(pip.__version__.split(".")[0]) >= 23' 2>/dev/null; then
    python3 -m venv --without-pip "$place/venv"
    set -- python3 -m pip --python "$place/venv/bin/python3"
  else
    python3 -m venv "$place/venv"
    set -- "$place/venv/bin/python3" -m pip
  fi
  "$@" install --quiet --disable-pip-version-check --no-deps --no-compile --requirement "$from/requirements.txt"
}

npm_packages() {
  rm -rf "$place/node_modules"
  cp "$from/package.json" "$from/package-lock.json" "$from/.npmrc" "$place/"
  cd "$place" && npm ci --silent --prefer-offline --ignore-scripts
}

install() {
  from=$1 place=target/${1#tests/} python='' npm=''
  # A virtual environment has the path of its folder in it.
  wanted=$({ pwd; cat "$from/requirements.txt" "$from/package.json" "$from/package-lock.json" "$from/.npmrc" 2>/dev/null; } | cksum)
  mkdir -p "$place"
  exec 9>"$place/lock"
  flock 9
  [ "$(cat "$place/installed" 2>/dev/null)" != "$wanted" ] || return 0

  rm -f "$place/installed"
  if [ -f "$from/requirements.txt" ]; then python_packages & python=$!; fi
  if [ -f "$from/package-lock.json" ]; then npm_packages & npm=$!; fi
  [ -z "$python" ] || wait "$python"
  [ -z "$npm" ] || wait "$npm"
  echo "$wanted" >"$place/installed"
}

installing='' failed=0
for folder in "$@"; do
  install "$folder" & installing="$installing $!"
done
for process in $installing; do
  wait "$process" || failed=1
done
exit $failed
