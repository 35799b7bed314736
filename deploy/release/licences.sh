#!/bin/sh
# Prints the licences of all that a binary links: a list, then each text once, with the crates that it is for. Texts are those of
# the crates' own files; of a crate that has none, the standard text.
#
#   deploy/release/licences.sh --package sakshi --no-default-features --features shipped
set -eu
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Each crate as "name version|licence|repository"; crates of the workspace have a path.
(cd "$root" && "$here/linked.sh" --prefix none --no-dedupe "$@") | grep -v ' (/' | sort -u >"$work/crates"
sources=${CARGO_HOME:-$HOME/.cargo}/registry/src

mit() {
  cat <<END
MIT License

Copyright (c) $1

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the
"Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish,
distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to
the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF
MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR
ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH
THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
END
}

# Prints the files of a crate with licences; the sources of C libraries within it have their own.
texts() {
  [ -d "$1" ] || { echo "the sources of $2 are not in $sources" >&2; return 1; }
  found=$(find "$1" -type f \( -iname 'licen[cs]e*' -o -iname 'copying*' -o -iname 'notice*' -o -iname 'unlicense*' -o -iname 'copyright*' \) \
    ! -name '*.rs' ! -name '*.py' | sort)
  case $found:$3 in
    ?*:*) echo "$found" ;;
    *Apache-2.0*) echo "$root/LICENSE" ;;
    *:MIT)
      mit "$(sed -n '/^authors = \[/,/\]/p' "$1/Cargo.toml" | grep -o '"[^"]*"' | tr -d '"' | paste -sd, -)" >"$work/MIT-$2"
      echo "$work/MIT-$2" ;;
    *) echo "$2 has no text of its licence $3" >&2; return 1 ;;
  esac
}

digest() { tr -s '[:space:]' ' ' <"$1" | sha256sum | cut -c 1-64; }

# One line for each crate and text: digest of the words, crate, file. Of the standard library's two licences the one that we have.
while IFS='|' read -r crate licence _; do
  name=${crate%% *} version=${crate#* v}
  texts "$(echo "$sources"/*/"$name-$version")" "$name" "$licence" >"$work/texts"
  while read -r text; do
    echo "$(digest "$text") $name-$version $text"
  done <"$work/texts"
done <"$work/crates" >"$work/unsorted"
std=$(rustc -vV | sed -n 's/^release: //p')
echo "$(digest "$root/LICENSE") rust-std-$std $root/LICENSE" >>"$work/unsorted"
sort "$work/unsorted" >"$work/index"

echo "Licences of what this program is made of"
echo
echo "rust-std $std: MIT OR Apache-2.0"
sed -E 's/^([^ ]+) v([^ |]+)[^|]*\|([^|]*)\|.*/\1 \2: \3/; s#([A-Za-z0-9.]) ?/ ?#\1 OR #' "$work/crates"
cut -d' ' -f1 "$work/index" | uniq | while read -r digest; do
  printf '\n%s\n' "--------------------------------------------------------------------------------"
  grep "^$digest " "$work/index" | cut -d' ' -f2 | uniq | paste -sd' ' - | fold -s -w 100
  printf '\n'
  cat "$(grep -m 1 "^$digest " "$work/index" | cut -d' ' -f3-)"
done
