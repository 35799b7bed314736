#!/bin/sh
# Makes what a release consists of: builds the binary, and packs it in an archive, with debug information, a bill of materials and
# checksums beside it. BUILT=FOLDER packs the binary of that folder instead.
#
#   target/dist/out/sakshi-VERSION-TARGET.tar.gz          sakshi, LICENSE, THIRD-PARTY.txt, CHANGELOG.md, completions, manual pages,
#                                                         and the folders config (default.toml), deploy and docs
#   target/dist/out/sakshi-VERSION-TARGET.debug           for a debugger; `gdb sakshi` finds it when it lies beside the binary
#   target/dist/out/sakshi-VERSION-TARGET.cdx.json        crates, C libraries and licences, for scanners
#   target/dist/out/SHA256SUMS
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
. deploy/release/flags.sh
# shellcheck disable=SC2086
[ -n "${BUILT:-}" ] || CARGO_PROFILE_DIST_STRIP=none cargo build --profile dist --locked $SHIPPED
built=${BUILT:-$root/target/dist}/sakshi
out=$root/target/dist/out
version=$("$built" --version | cut -d' ' -f2)
name=sakshi-$version-$(rustc -vV | sed -n 's/^host: //p')

rm -rf "$out"
mkdir -p "$out/$name/completions" "$out/$name/man"
# From the commit, so that nothing that lies beside it, such as secrets, is packed.
git archive HEAD LICENSE CHANGELOG.md config deploy docs | tar -xf - -C "$out/$name"
for shell in bash zsh fish; do "$built" completions "$shell" >"$out/$name/completions/sakshi.$shell"; done
"$built" man --out "$out/$name/man"
objcopy --only-keep-debug "$built" "$out/$name.debug"
objcopy --strip-all --add-gnu-debuglink="$out/$name.debug" "$built" "$out/$name/sakshi"
# shellcheck disable=SC2086
deploy/release/licences.sh $SHIPPED >"$out/$name/THIRD-PARTY.txt"
# shellcheck disable=SC2086
deploy/release/sbom.py binary "$out/$name/sakshi" $SHIPPED >"$out/$name.cdx.json"

cd "$out"
pack "$name"
sha256sum "$name.tar.gz" "$name.debug" "$name.cdx.json" >SHA256SUMS
bytes=$(wc -c <"$name/sakshi")
echo "$out/$name.tar.gz: a binary of $((bytes / 1000000)).$((bytes / 100000 % 10)) MB"
# Debug information that was left in, or a crate with a large table, shows.
[ -n "${BUILT:-}" ] || [ "$bytes" -le 50000000 ] || { echo "the binary has more than 50 MB" >&2; exit 1; }
