#!/bin/sh
# Makes the archive for developers and load testers, from target/dist/sakshi and target/dist/sakshi-load as `make dist-tools` has built
# them. It belongs on no production machine.
#
#   target/dist/out/sakshi-tools-VERSION-TARGET.tar.gz    sakshi with the sandbox (demo, trigger, listen), sakshi-load, LICENSE,
#                                                         CHANGELOG.md, completions, and the folders config, docs, clients and examples
#   target/dist/out/SHA256SUMS-tools
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
built=${BUILT:-$root/target/dist}
out=$root/target/dist/out
version=$("$built/sakshi" --version | cut -d' ' -f2)
name=sakshi-tools-$version-$(rustc -vV | sed -n 's/^host: //p')

rm -rf "${out:?}/$name" "$out/$name.tar.gz"
mkdir -p "$out/$name/completions"
git -C "$root" archive HEAD LICENSE CHANGELOG.md config docs clients examples | tar -xf - -C "$out/$name"
for shell in bash zsh fish; do "$built/sakshi" completions "$shell" >"$out/$name/completions/sakshi.$shell"; done
for program in sakshi sakshi-load; do objcopy --strip-all "$built/$program" "$out/$name/$program"; done
"$out/$name/sakshi" trigger --help >/dev/null || { echo "the binary is built without the sandbox" >&2; exit 1; }

# The same bytes from the same files, whoever packs them and when.
cd "$out"
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime='2026-01-01 00:00Z' -cf - "$name" | gzip -n -9 >"$name.tar.gz"
sha256sum "$name.tar.gz" >SHA256SUMS-tools
echo "$out/$name.tar.gz"
