# shellcheck shell=bash
# readme_block SOURCE LANGUAGE: the first fenced block of that language in the README. Sourced by tests.
readme_block() { sed -n "/^\`\`\`$2\$/,/^\`\`\`\$/p" "$1/README.md" | sed '1d;/^```$/,$d'; }
