# Turns the lines that run.sh collects, "op ranks bytes name p50_us" of every repetition, sorted, into the rows of the
# table: a row for each cell, link of nexar and peer of the same kind. A peer has no row for operations that it does not
# support. "op ranks any name timeout" (or failed) says that it did not finish: its cells have a row without a value.

function close_group() {
  if (n == 0) return
  median[group] = (v[int((n + 1) / 2)] + v[int(n / 2) + 1]) / 2
  spread[group] = median[group] > 0 ? 100 * (v[n] - v[1]) / median[group] : 0
  n = 0
}

BEGIN {
  link_count = split("shm shm_buffers quic quic_none", links, " ")
  peers_of["shm"] = peers_of["shm_buffers"] = "openmpi_shm mpich_shm gloo_tcp"
  peers_of["quic"] = peers_of["quic_none"] = "openmpi_tcp gloo_tcp"
}

$5 == "timeout" || $5 == "failed" {
  unfinished[$1 "," $2 "/" $4] = 1
  next
}

{
  cell = $1 "," $2 "," $3
  if (cell "/" $4 != group) close_group()
  group = cell "/" $4
  v[++n] = $5
  if (!(cell in seen)) {
    seen[cell] = 1
    cells[++count] = cell
    kind[cell] = $1 "," $2
  }
}

END {
  close_group()
  print "op,ranks,bytes,link,nexar_us,peer,peer_us,ratio,nexar_spread,peer_spread"
  for (i = 1; i <= count; i++) for (l = 1; l <= link_count; l++) {
    ours = cells[i] "/nexar/" links[l]
    if (!(ours in median) || median[ours] <= 0) continue
    peer_count = split(peers_of[links[l]], peers, " ")
    for (p = 1; p <= peer_count; p++) {
      theirs = cells[i] "/" peers[p]
      head = sprintf("%s,%s,%.2f,%s", cells[i], links[l], median[ours], peers[p])
      if (theirs in median) {
        printf "%s,%.2f,%.3f,%.0f%%,%.0f%%\n", head, median[theirs], median[theirs] / median[ours], spread[ours], spread[theirs]
      } else if ((kind[cells[i]] "/" peers[p]) in unfinished) {
        printf "%s,,,%.0f%%,\n", head, spread[ours]
      }
    }
  }
}
