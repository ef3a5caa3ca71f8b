# Compares the rows of rows.awk with the bars: awk -v cores=N -f bars.awk bars.txt rows.csv. Prints a line for each bar:
# pass if all of its cells reach it, MISS if one does not, and "-" if no cell was measured.

function bytes_of(text) {
  if (text ~ /KiB$/) return text * 1024
  if (text ~ /MiB$/) return text * 1024 * 1024
  return text + 0
}

function size_text(bytes) {
  if (bytes >= 1048576 && bytes % 1048576 == 0) return bytes / 1048576 " MiB"
  if (bytes >= 1024 && bytes % 1024 == 0) return bytes / 1024 " KiB"
  return bytes " B"
}

function listed(list, one) { return list == "*" || index("," list ",", "," one ",") > 0 }

# Gives the ratio of a row to the cells of a bar; the best peer of a cell has the smallest ratio.
function take(b, op, bytes, ratio,    cell) {
  cell = b SUBSEP op SUBSEP bytes
  if (!(cell in least)) {
    cell_bar[++cells] = b
    cell_key[cells] = cell
    cell_name[cells] = op (bytes > 0 ? " " size_text(bytes) : "")
  }
  if (!(cell in least) || ratio < least[cell]) least[cell] = ratio
}

FNR == 1 { file++ }
file == 1 && (/^#/ || NF == 0) { next }
file == 1 {
  link[++bars] = $1; ranks[bars] = $2; fit[bars] = $3; operations[bars] = $4; sizes[bars] = $5
  peers[bars] = $6; bar[bars] = $7; aim[bars] = $8
  from[bars] = 0; to[bars] = 1e18
  if ($5 != "*") { split($5, ends, "-"); from[bars] = bytes_of(ends[1]); to[bars] = bytes_of(ends[2]) }
  if (from[bars] == to[bars]) sizes[bars] = ends[1]
  next
}
FNR == 1 { next }
{
  split($0, f, ",")
  if (f[8] == "" || f[8] <= 0) next
  for (b = 1; b <= bars; b++) {
    if (f[4] != link[b] || f[2] != ranks[b] || (ranks[b] > cores ? "shared" : "own") != fit[b]) continue
    if (f[3] + 0 < from[b] || f[3] + 0 > to[b]) continue
    if (listed(operations[b], f[1]) && listed(peers[b], f[6])) take(b, f[1], f[3] + 0, f[8] + 0)
  }
}

END {
  for (i = 1; i <= cells; i++) {
    b = cell_bar[i]
    ratio = least[cell_key[i]]
    n[b]++
    logs[b] += log(ratio)
    if (!(b in worst) || ratio < worst[b]) { worst[b] = ratio; where[b] = cell_name[i] }
  }
  for (b = 1; b <= bars; b++) {
    where_run = fit[b] == "own" ? "" : " on fewer cores"
    if (operations[b] == "*") operations[b] = "all operations"
    if (sizes[b] == "*") sizes[b] = "all sizes"
    what = sprintf("%s, %d ranks%s: %s, %s / %s", link[b], ranks[b], where_run, operations[b], sizes[b], peers[b])
    if (!n[b]) {
      printf "-     %s: not measured; bar %s, aim %s\n", what, bar[b], aim[b]
      continue
    }
    outcome = worst[b] >= bar[b] + 0 ? "pass" : "MISS"
    printf "%-5s %s: worst %.3f (%s), mean %.3f of %d; bar %s, aim %s\n", outcome, what, worst[b], where[b],
      exp(logs[b] / n[b]), n[b], bar[b], aim[b]
  }
}
