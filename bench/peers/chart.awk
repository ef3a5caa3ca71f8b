# Draws the rows of one link and number of ranks as SVG: awk -F, -v link=shm -v ranks=2 -f chart.awk rows.csv. A panel for
# each operation has the ratio over the size, one line per peer; above the line at 1, nexar is faster. The page is white,
# so that it can be read on any background. Ratios beyond the scale are drawn at its edge.

function size_text(bytes) {
  if (bytes == 0) return ""
  if (bytes >= 1073741824) return sprintf("%.3gG", bytes / 1073741824)
  if (bytes >= 1048576) return sprintf("%.3gM", bytes / 1048576)
  if (bytes >= 1024) return sprintf("%.3gK", bytes / 1024)
  return bytes ""
}

# The positions of a size (by its index) and of a ratio inside the panel whose corner is at left, top.
function x_of(i) {
  if (sizes[i] == 0 || size_count == first_size) return left + width / 2
  return left + 14 + (width - 28) * (i - first_size) / (size_count - first_size)
}
function y_of(ratio,    place) {
  place = log(ratio) / log(2)
  if (place > high) place = high
  if (place < low) place = low
  return top + height - height * (place - low) / (high - low)
}

function tick_text(tick) {
  if (tick == high && beyond_high) return 2 ^ tick "+"
  return tick < 0 ? "1/" 2 ^ -tick : 2 ^ tick ""
}

function text(x, y, size, color, anchor, words) {
  printf "  <text x=\"%.1f\" y=\"%.1f\" font-size=\"%d\" fill=\"%s\" text-anchor=\"%s\">%s</text>\n", x, y, size, color, anchor, words
}

function line(x1, y1, x2, y2, color, thick) {
  printf "  <path d=\"M%.1f %.1fL%.1f %.1f\" stroke=\"%s\" stroke-width=\"%s\"/>\n", x1, y1, x2, y2, color, thick
}

# One peer's line in a panel, and a dot for each size. A cell without a value interrupts the line.
function curve(op, peer,    i, key, path, color) {
  color = colors[peer]
  path = ""
  for (i = 1; i <= size_count; i++) {
    key = op SUBSEP peer SUBSEP sizes[i]
    if (!(key in ratio_of)) continue
    path = path sprintf("%s%.1f %.1f", path == "" ? "M" : "L", x_of(i), y_of(ratio_of[key]))
    printf "  <circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"%s\"/>\n", x_of(i), y_of(ratio_of[key]), color
  }
  if (path ~ /L/) printf "  <path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"/>\n", path, color
}

function panel(op,    i, tick, p, last, x) {
  text(left, top - 9, 14, "#1f2933", "start", op)
  for (tick = low; tick <= high; tick++) {
    line(left, y_of(2 ^ tick), left + width, y_of(2 ^ tick), tick == 0 ? "#1f2933" : "#e1e6ec", tick == 0 ? "1.6" : "1")
    text(left - 6, y_of(2 ^ tick) + 4, 11, "#5b6775", "end", tick_text(tick))
  }
  last = -100
  for (i = 1; i <= size_count; i++) {
    x = x_of(i)
    if (!((op, sizes[i]) in has) || x - last < 26) continue
    text(x, top + height + 15, 11, "#5b6775", "middle", size_text(sizes[i]))
    last = x
  }
  for (p = 1; p <= peer_count; p++) curve(op, peers[p])
}

function legend(    p, x) {
  x = 64
  for (p = 1; p <= peer_count; p++) {
    line(x, 66, x + 22, 66, colors[peers[p]], "3")
    text(x + 28, 70, 13, "#1f2933", "start", names[peers[p]])
    x += 46 + 7.5 * length(names[peers[p]])
  }
}

BEGIN {
  colors["openmpi_shm"] = colors["openmpi_tcp"] = "#2f6fb5"
  colors["mpich_shm"] = "#d9822b"
  colors["gloo_tcp"] = "#2e8b57"
  names["openmpi_shm"] = "Open MPI, shared memory"
  names["openmpi_tcp"] = "Open MPI, TCP"
  names["mpich_shm"] = "MPICH, shared memory"
  names["gloo_tcp"] = "Gloo, TCP"
  link_names["shm"] = "shared memory"
  link_names["shm_buffers"] = "shared memory, shared buffers"
  link_names["quic"] = "QUIC"
  link_names["quic_none"] = "QUIC, protection=none"
  width = 230; height = 130
  low = -1; high = 1
}

FNR == 1 || $4 != link || $2 != ranks || $8 == "" || $8 <= 0 { next }
{
  if (!($1 in seen_op)) { seen_op[$1] = 1; ops[++op_count] = $1 }
  if (!($6 in seen_peer)) { seen_peer[$6] = 1; peers[++peer_count] = $6 }
  if (!($3 in seen_size)) {
    seen_size[$3] = 1
    for (i = ++size_count; i > 1 && sizes[i - 1] > $3 + 0; i--) sizes[i] = sizes[i - 1]
    sizes[i] = $3 + 0
  }
  ratio_of[$1, $6, $3 + 0] = $8 + 0
  has[$1, $3 + 0] = 1
  while (2 ^ low > $8 + 0 && low > -4) low--
  while (2 ^ high < $8 + 0 && high < 4) high++
  if ($8 > 16) beyond_high = 1
}

END {
  if (op_count == 0) exit 1
  first_size = sizes[1] == 0 && size_count > 1 ? 2 : 1  # a barrier has size 0 and a panel of its own
  columns = op_count < 3 ? op_count : 3
  page_width = columns == 1 ? 660 : 70 + columns * 290
  page_height = 128 + int((op_count + columns - 1) / columns) * 195
  printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\" aria-labelledby=\"t\"\n", page_width, page_height, page_width, page_height
  print "     font-family=\"-apple-system, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif\">"
  title = sprintf("nexar over %s, %d ranks, and its peers", link_names[link], ranks)
  printf "  <title id=\"t\">%s</title>\n", title
  printf "  <rect width=\"%d\" height=\"%d\" rx=\"14\" fill=\"#ffffff\"/>\n", page_width, page_height
  printf "  <rect x=\"0.5\" y=\"0.5\" width=\"%d\" height=\"%d\" rx=\"13.5\" fill=\"none\" stroke=\"#d8dee6\"/>\n", page_width - 1, page_height - 1
  text(64, 36, 17, "#1f2933", "start", title)
  legend()
  for (o = 1; o <= op_count; o++) {
    left = 64 + (o - 1) % columns * 290
    top = 112 + int((o - 1) / columns) * 195
    panel(ops[o])
  }
  text(page_width / 2, page_height - 14, 13, "#5b6775", "middle", "bytes of one call")
  printf "  <text transform=\"translate(20 %.1f) rotate(-90)\" font-size=\"13\" fill=\"#5b6775\" text-anchor=\"middle\">%s</text>\n", page_height / 2 + 30, "time of the peer / time of nexar"
  print "</svg>"
}
