#!/bin/sh
# Makes the archive for developers and load testers: builds its programs and packs them. It belongs on no production machine.
# BUILT=FOLDER packs the programs of that folder instead.
#
#   target/dist/out/sakshi-tools-VERSION-TARGET.tar.gz    sakshi with the sandbox (demo, trigger, listen), sakshi-load, LICENSE,
#                                                         THIRD-PARTY.txt, CHANGELOG.md, completions, and the folders config, docs,
#                                                         clients and examples
#   target/dist/out/SHA256SUMS-tools
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
. deploy/release/flags.sh
programs="--package sakshi --package sakshi-load --features sakshi/shipped"
# shellcheck disable=SC2086
[ -n "${BUILT:-}" ] || CARGO_PROFILE_DIST_STRIP=none cargo build --profile dist --locked --bin sakshi --bin sakshi-load $programs
built=${BUILT:-$root/target/dist}
out=$root/target/dist/out
version=$("$built/sakshi" --version | cut -d' ' -f2)
name=sakshi-tools-$version-$(rustc -vV | sed -n 's/^host: //p')

rm -rf "${out:?}/$name" "$out/$name.tar.gz"
mkdir -p "$out/$name/completions"
git archive HEAD LICENSE CHANGELOG.md config docs clients examples | tar -xf - -C "$out/$name"
for shell in bash zsh fish; do "$built/sakshi" completions "$shell" >"$out/$name/completions/sakshi.$shell"; done
for program in sakshi sakshi-load; do objcopy --strip-all "$built/$program" "$out/$name/$program"; done
"$out/$name/sakshi" trigger --help >/dev/null || { echo "the binary is built without the sandbox" >&2; exit 1; }
# shellcheck disable=SC2086
deploy/release/licences.sh $programs >"$out/$name/THIRD-PARTY.txt"

cd "$out"
pack "$name"
sha256sum "$name.tar.gz" >SHA256SUMS-tools
echo "$out/$name.tar.gz"
