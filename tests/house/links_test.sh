#!/usr/bin/env bash
# Every relative link, image and #anchor in the Markdown files leads somewhere; and errors planted in a scratch
# folder are found.
#
#   links_test.sh SOURCE
set -euo pipefail
source=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# anchors FILE: the anchors of its headings, as GitHub makes them, one per line.
anchors() {
  awk '
    /^ *```/ { fenced = !fenced; next }
    fenced || !/^#+ / { next }
    {
      sub(/^#+ +/, "")
      $0 = tolower($0)
      gsub(/[^a-z0-9_ -]/, "")
      gsub(/ /, "-")
      print seen[$0]++ ? $0 "-" seen[$0] - 1 : $0
    }' "$1"
}

# targets FILE: "LINE TARGET" for each link and image outside of code.
targets() {
  awk '
    /^ *```/ { fenced = !fenced; next }
    fenced { next }
    {
      gsub(/`[^`]*`/, "")
      while (match($0, /\]\([^) ]+\)|<img [^>]*src="[^"]+"/)) {
        target = substr($0, RSTART, RLENGTH)
        $0 = substr($0, RSTART + RLENGTH)
        if (target ~ /^\]/) target = substr(target, 3, length(target) - 3)
        else { sub(/^.*src="/, "", target); sub(/"$/, "", target) }
        print NR, target
      }
    }' "$1"
}

# broken FOLDER: one line for every link in its Markdown files that leads nowhere.
broken() {
  local file line target path anchor
  while IFS= read -r file; do
    while read -r line target; do
      case "$target" in *://* | mailto:*) continue ;; esac
      path=${target%%#*} anchor=
      [[ $target != *'#'* ]] || anchor=${target#*#}
      if [ -z "$path" ]; then path=$file; else path=$(dirname "$file")/$path; fi
      if [ ! -e "$path" ]; then
        printf '%s:%s: %s does not exist\n' "$file" "$line" "$target"
      elif [ -n "$anchor" ] && ! anchors "$path" | grep -qxF -- "$anchor"; then
        printf '%s:%s: %s names no heading of %s\n' "$file" "$line" "$target" "$path"
      fi
    done < <(targets "$file")
  done < <(find "$1" -mindepth 1 \( -path "$1/build" -o -name '.?*' \) -prune -o -name '*.md' -print)
}

mkdir "$scratch/docs"
cat >"$scratch/README.md" <<'PLANTED'
# Title
## One `code` heading, twice
## One `code` heading, twice
[good](docs/page.md) [good](docs/page.md#a-b) [good](#one-code-heading-twice-1) [good](https://example.org/x)
`[no](link)` ![bad](docs/missing.svg) [bad](docs/page.md#nothing) [bad](#no-heading)
```
[no](link)
```
<img src="missing.png">
PLANTED
printf '# A b\n[bad](missing.md) [good](../README.md#title)\n' >"$scratch/docs/page.md"
found=$(broken "$scratch" | wc -l)
if [ "$found" -ne 5 ]; then
  broken "$scratch" >&2
  printf 'found %s of the 5 broken links that were planted\n' "$found" >&2
  exit 1
fi

count=$(targets "$source/README.md" | wc -l)
if [ "$count" -lt 20 ]; then
  printf 'found only %s links in README.md\n' "$count" >&2
  exit 1
fi
broken "$source" | sed "s|^$source/||" >"$scratch/result"
if [ -s "$scratch/result" ]; then
  cat "$scratch/result" >&2
  exit 1
fi
