#!/bin/sh
# Makes what a release consists of, from target/dist/sakshi as `make dist` has built it: an archive with the stripped binary,
# its debug information beside it, and checksums of both.
#
#   target/dist/out/sakshi-VERSION-TARGET.tar.gz          sakshi, LICENSE, CHANGELOG.md, completions, manual pages, and the folders
#                                                         config (default.toml), deploy and docs
#   target/dist/out/sakshi-VERSION-TARGET.debug           for a debugger; `gdb sakshi` finds it when it lies beside the binary
#   target/dist/out/SHA256SUMS
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
built=$root/target/dist/sakshi
out=$root/target/dist/out
version=$("$built" --version | cut -d' ' -f2)
name=sakshi-$version-$(rustc -vV | sed -n 's/^host: //p')

rm -rf "$out"
mkdir -p "$out/$name/completions" "$out/$name/man"
# From the commit, so that nothing that lies beside it, such as secrets, is packed.
git -C "$root" archive HEAD LICENSE CHANGELOG.md config deploy docs | tar -xf - -C "$out/$name"
for shell in bash zsh fish; do "$built" completions "$shell" >"$out/$name/completions/sakshi.$shell"; done
"$built" man --out "$out/$name/man"
objcopy --only-keep-debug "$built" "$out/$name.debug"
objcopy --strip-all --add-gnu-debuglink="$out/$name.debug" "$built" "$out/$name/sakshi"

# The same bytes from the same files, whoever packs them and when.
cd "$out"
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime='2026-01-01 00:00Z' -cf - "$name" | gzip -n -9 >"$name.tar.gz"
sha256sum "$name.tar.gz" "$name.debug" >SHA256SUMS
bytes=$(wc -c <"$name/sakshi")
echo "$out/$name.tar.gz: a binary of $((bytes / 1000000)).$((bytes / 100000 % 10)) MB"
[ "$bytes" -le 30000000 ] || { echo "the binary has more than 30 MB" >&2; exit 1; }
