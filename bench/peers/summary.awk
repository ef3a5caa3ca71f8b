# Prints, from the rows of rows.awk, the geometric mean of the ratios and the worst cell of every link and number of
# ranks: against each peer, and against the best peer in each cell. Needs -F,

function add(key, ratio, cell) {
  if (!(key in n)) order[++keys] = key
  n[key]++
  logs[key] += log(ratio)
  if (!(key in worst) || ratio < worst[key]) { worst[key] = ratio; where[key] = cell }
}

function label(peer) { return sprintf("%-11s %2d ranks / %-12s", $4, $2, peer) }

FNR == 1 { next }
$8 == "" { without[label($6)]++; next }
$8 <= 0 { next }
{
  cell = $1 " of " $3 " bytes"
  add(label($6), $8, cell)
  best = $4 "," $2 "," $1 "," $3
  if (!(best in least)) {
    bests[++best_count] = best
    named[best] = cell
    labels[best] = label("best peer")
  }
  if (!(best in least) || $8 < least[best]) least[best] = $8
}

END {
  for (i = 1; i <= best_count; i++) add(labels[bests[i]], least[bests[i]], named[bests[i]])
  for (i = 1; i <= keys; i++) {
    key = order[i]
    printf "%s  geometric mean %.3f, worst %.3f: %s", key, exp(logs[key] / n[key]), worst[key], where[key]
    if (without[key]) printf "; %d %s without a value", without[key], without[key] == 1 ? "cell" : "cells"
    print ""
  }
}
