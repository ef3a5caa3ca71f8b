# shellcheck shell=bash
# readme_block SOURCE LANGUAGE: prints the first fenced block of that language in the README. Tests
# source this file.
readme_block() { sed -n "/^\`\`\`$2\$/,/^\`\`\`\$/p" "$1/README.md" | sed '1d;/^```$/,$d'; }
