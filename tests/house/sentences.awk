# Reads sources and documents, and finds the sentences in them: string literals that users see, comments, paragraphs, test names.
#
#   awk -v phrases=FILE -v mode=check -f sentences.awk FILE...   reports phrases of phrases.txt as file:line; fails when there is one
#   awk -v mode=list -f sentences.awk FILE...                    prints the string literals that are prose, grouped by file
#
# Adjacent literals are joined, and so are those with `+ expression +` between them, which becomes {}.

BEGIN {
    if (mode == "check") read_phrases()
}

FNR == 1 { end_of_file(); start_file() }

kind == "cpp" { read_cpp($0); next }
kind == "md" { read_markdown($0); next }
{ read_script($0) }

END {
    end_of_file()
    if (mode == "check" && (findings > 0 || messages == 0)) exit 1
}

function read_phrases(    line, part, n, scope) {
    while ((getline line < phrases) > 0) {
        if (line ~ /^(#|[ \t]*$)/) continue
        n = index(line, " | ")
        scope = substr(line, 1, n - 1)
        part = substr(line, n + 3)
        # The suggestion is behind the last bar that has spaces around it; patterns have bars without.
        n = index(part, " | ")
        if (n == 0) { print phrases ": not understood: " line; findings++; continue }
        count++
        scopes[count] = scope
        shown[count] = substr(part, 1, n - 1)
        suggestion[count] = substr(part, n + 3)
        if (shown[count] ~ /^[\[^]/) {
            pattern[count] = shown[count]
        } else {
            pattern[count] = "[^a-z0-9_](" shown[count] ")[^a-z0-9_]"
        }
        if (scope != "allow") any = any (any == "" ? "" : "|") pattern[count]
    }
    if (count == 0) { print phrases ": no phrases"; findings++ }
}

function start_file() {
    file = FILENAME
    if (root != "" && index(file, root "/") == 1) file = substr(file, length(root) + 2)
    kind = file ~ /\.(cpp|hpp|h|in)$/ ? "cpp" : file ~ /\.md$/ ? "md" : "script"
    # Literals are for users only where the product's sources are; tests and benchmarks talk to us.
    product = file ~ /^(include|src|tools)\//
    printed_name = 0
    raw = ""; in_block = 0; fenced = 0; test_head = ""
    literal = 0; note = 0
}

function end_of_file() {
    if (file == "") return
    if (literal) flush_literal()
    if (note) flush_note()
    file = ""
}

# --- C++ ---

function read_cpp(line,    at, rest, before, found, text) {
    if (raw != "") { line = continue_raw(line); if (raw != "") return }
    if (line ~ /^[ \t]*#[ \t]*include/) return
    if (test_head != "") { test_head = test_head line; if (line ~ /\)/) flush_test_name() }
    else if (line ~ /^(TYPED_)?TEST(_[FP])?\(/) {
        test_head = line; test_line = FNR
        if (line ~ /\)/) flush_test_name()
    }
    if (note && line !~ /^[ \t]*\/\//) flush_note()
    rest = line
    before = ""
    while (1) {
        if (in_block) {
            at = index(rest, "*/")
            if (at == 0) { add_note(rest, 0); return }
            add_note(substr(rest, 1, at - 1), 0)
            flush_note()
            rest = substr(rest, at + 2)
            in_block = 0
        }
        if (!match(rest, /["']|\/\/|\/\*/)) { if (literal) gap = gap rest; return }
        found = substr(rest, RSTART, RLENGTH)
        before = substr(rest, 1, RSTART - 1)
        if (literal) gap = gap before
        rest = substr(rest, RSTART + RLENGTH)
        if (found == "//") { sub(/^[\/!]<? ?/, "", rest); add_note(rest, before ~ /[^ \t]/ || line !~ /^[ \t]*\/\//); return }
        if (found == "/*") { in_block = 1; continue }
        if (found == "'") {
            # A digit separator, or a character.
            if (before ~ /[0-9a-fA-F]$/ && rest ~ /^[0-9a-fA-F]/ && rest !~ /^.'/) continue
            if (match(rest, /^(\\.[^']*|[^'\\])'/)) rest = substr(rest, RLENGTH + 1)
            continue
        }
        if (before ~ /R$/) { rest = begin_raw(rest); if (raw != "") return; continue }
        match(rest, /^([^"\\]|\\.)*/)
        text = substr(rest, 1, RLENGTH)
        rest = substr(rest, RLENGTH + 2)
        add_literal(text)
    }
}

function begin_raw(rest,    at) {
    at = index(rest, "(")
    raw = ")" substr(rest, 1, at - 1) "\""
    return continue_raw(substr(rest, at + 1))
}

# Adds the line to the raw literal; returns what is behind its end.
function continue_raw(line,    at) {
    at = index(line, raw)
    if (at == 0) { add_literal(line " "); gap = ""; return "" }
    add_literal(substr(line, 1, at - 1))
    line = substr(line, at + length(raw))
    raw = ""
    return line
}

function add_literal(text) {
    gsub(/\\n|\\t/, " ", text)
    gsub(/\\"/, "\"", text)
    if (literal) {
        if (gap ~ /^[ \t]*$/) { add_part(text); gap = ""; return }
        if (gap ~ /^[ \t]*\+/ && gap ~ /\+[ \t]*$/ && gap !~ /[;{}]/) { add_part("{}" text); gap = ""; return }
        flush_literal()
    }
    literal = 1; gap = ""; parts = 0; whole = ""
    add_part(text)
}

function add_part(text) {
    parts++
    part_at[parts] = length(whole) + 1
    part_line[parts] = FNR
    whole = whole text
}

function flush_literal(    n, i) {
    literal = 0
    if (!product || whole !~ /[A-Za-z][A-Za-z]+[,;:]? [A-Za-z{]/ || whole ~ /^-----/) return
    messages++
    if (mode == "list") {
        if (!printed_name) { printf "%s%s\n", listed++ ? "\n" : "", file; printed_name = 1 }
        printf "%6d  %s\n", part_line[1], whole
        return
    }
    judge("message", whole, parts, part_at, part_line)
    # A prefix such as "nexar error: all_reduce at rank 2:" comes before an error.
    if (file ~ /^(include|src)\// && whole ~ /[a-z]\.$/ && whole !~ /\. /) {
        findings++
        printf "%s:%d: \"%s\"; write no full stop after a single sentence\n", file, part_line[parts], whole
    }
}

function flush_test_name(    name) {
    name = test_head
    test_head = ""
    sub(/^[^,]*,[ \t]*/, "", name)
    sub(/[ \t]*\).*/, "", name)
    gsub(/_/, " ", name)
    name_at[1] = 1; name_line[1] = test_line
    if (mode == "check") judge("name", name, 1, name_at, name_line)
}

# --- comments and documents ---

function add_note(text, fresh) {
    if (note && fresh) flush_note()
    if (!note) { note = 1; note_parts = 0; note_text = "" }
    gsub(/^[ \t*]+/, "", text)
    note_parts++
    note_at[note_parts] = length(note_text) + 1
    note_line[note_parts] = FNR
    note_text = note_text text " "
}

function flush_note() {
    note = 0
    if (mode == "check") judge("note", without_code(note_text), note_parts, note_at, note_line)
}

# Code between backticks is not judged; positions stay as they are.
function without_code(text,    filler) {
    while (match(text, /`[^`]*`/)) {
        filler = sprintf("%" RLENGTH "s", "")
        gsub(/ /, "_", filler)
        text = substr(text, 1, RSTART - 1) filler substr(text, RSTART + RLENGTH)
    }
    return text
}

function read_markdown(line) {
    if (line ~ /^[ \t]*```/) { if (note) flush_note(); fenced = !fenced; return }
    if (fenced) return
    if (line ~ /^[ \t]*$/) { if (note) flush_note(); return }
    add_note(line, line ~ /^([#|]|[ \t]*([-*]|[0-9]+\.) )/)
}

function read_script(line) {
    if (line !~ /^[ \t]*#/ || line ~ /^#!/) { if (note) flush_note(); return }
    sub(/^[ \t]*#+ ?/, "", line)
    add_note(line, 0)
}

# --- judging ---

# Reports every phrase in the text, whose n parts begin at the given places and stand in the given lines.
function judge(scope, text, n, places, lines,    i, low, start, rest, at) {
    low = ". " tolower(text) " "
    if (scope == "name") low = " " tolower(text) " "
    if (low !~ any) return
    for (i = 1; i <= count; i++) if (scopes[i] == "allow") low = blanked(low, pattern[i])
    if (low !~ any) return
    for (i = 1; i <= count; i++) {
        if (scopes[i] == "allow" || (scopes[i] != "all" && scopes[i] != scope)) continue
        start = 0
        rest = low
        while (match(rest, pattern[i])) {
            at = start + RSTART + 1
            report(line_of(at - (scope == "name" ? 1 : 2), n, places, lines), substr(rest, RSTART, RLENGTH), i)
            start += RSTART
            rest = substr(rest, RSTART + 1)
            if (pattern[i] ~ /^\^/) break
        }
    }
}

function blanked(text, what,    filler) {
    while (match(text, what)) {
        filler = sprintf("%" RLENGTH "s", "")
        gsub(/ /, "_", filler)
        text = substr(text, 1, RSTART - 1) filler substr(text, RSTART + RLENGTH)
    }
    return text
}

function line_of(at, n, places, lines,    i) {
    for (i = n; i > 1; i--) if (places[i] <= at) return lines[i]
    return lines[1]
}

function report(line, said, i) {
    findings++
    sub(/^[^a-z0-9_{]+/, "", said)
    sub(/[^a-z0-9_}]+$/, "", said)
    printf "%s:%d: \"%s\"; write %s\n", file, line, said, suggestion[i]
}
