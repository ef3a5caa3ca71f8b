#!/usr/bin/env bash
# Messages, comments, documents and test names have none of the phrases in phrases.txt. Before that, the check proves on planted
# sentences that it finds what it should and accepts the rest.
#
#   sentences_test.sh SOURCE
#
# messages.sh prints the sentences that users see in one list.
set -euo pipefail

source=$1
house=$source/tests/house
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# check SOURCE: prints a line for each finding, as file:line, and fails when there is one.
check() {
  cd "$1"
  find . -path './build*' -prune -o -path ./.git -prune -o -type f \
    \( -name '*.hpp' -o -name '*.cpp' -o -name '*.md' -o -name '*.sh' -o -name CMakeLists.txt \) -print0 |
    LC_ALL=C sort -z |
    LC_ALL=C xargs -0 awk -v mode=check -v root=. -v phrases="$house/phrases.txt" -f "$house/sentences.awk" |
    LC_ALL=C sort -t: -k1,1 -k2,2n
}

mkdir -p "$scratch/src" "$scratch/tests" "$scratch/docs"
cat >"$scratch/src/planted.cpp" <<'CODE'
// Is it the poster, the other one sees its flag.
Error planted(std::string_view name) {
    log("there is no rank {} and it is no longer needed; one'000 is 1'000");  // 'is no' isn't code
    return Error(Errc::bad_config, "the name " + quoted(name) + " is "
                                   // A comment in between.
                                   "no name of "
                                   "a host");
}
/// A comment whose phrase is broken over two lines: the rank has so
/// many peers, and they are told apart, as in `is no code`.
const char* kText = R"(first line
it is looked at here)";
log("one sentence ends like this.");
const char* kOther = ready ? "port is taken" : "whoever asks";
/* A block
   but for this line. Is it fine? Yes. */
CODE
cat >"$scratch/tests/planted_test.cpp" <<'CODE'
TEST(Suite, who_is_killed_ends_sends) { EXPECT_EQ(text, "this is no message of the product"); }
TEST(Suite,
     fails_when_peer_is_no_member) {}
TEST(Suite, send_fails_when_peer_is_killed) {}
CODE
cat >"$scratch/docs/planted.md" <<'CODE'
The rank waits
since 30 s for `what is there`.

```
this is no prose
```
CODE

found=$(check "$scratch" | sed 's/; write.*//') && {
  printf 'the check accepted planted phrases\n' >&2
  exit 1
}
diff - <(printf '%s\n' "$found") <<'WANTED' || { printf 'the check does not find what was planted\n' >&2; exit 1; }
docs/planted.md:1: "waits since"
docs/planted.md:2: "since 30 s"
src/planted.cpp:1: "is it the poster, the other one sees its flag"
src/planted.cpp:4: "is no name"
src/planted.cpp:9: "so many"
src/planted.cpp:12: "is looked at"
src/planted.cpp:13: "one sentence ends like this."
src/planted.cpp:14: "is taken"
src/planted.cpp:14: "whoever"
src/planted.cpp:16: "but for"
tests/planted_test.cpp:1: "who"
tests/planted_test.cpp:2: "is no member"
WANTED

listed=$("$house/messages.sh" "$scratch" src)
diff - <(printf '%s\n' "$listed") <<'WANTED' || { printf 'messages.sh does not list what was planted\n' >&2; exit 1; }
src/planted.cpp
     3  there is no rank {} and it is no longer needed; one'000 is 1'000
     4  the name {} is no name of a host
    11  first line it is looked at here
    13  one sentence ends like this.
    14  port is taken
    14  whoever asks
WANTED

check "$source" || {
  printf 'write these sentences in plain English; tests/house/phrases.txt says how\n' >&2
  exit 1
}
printf 'no phrase of phrases.txt was found\n'
