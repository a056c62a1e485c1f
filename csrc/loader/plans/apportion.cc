// Rounding of shares. Segments come in three sizes, so a small network of flows settles what the partial ones and all
// whole batches together get. The latter are then divided, first by format, then into hits and misses.

#include "plans/apportion.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace dali_l3::loader {
namespace {

// A turn, in which a kind gets one item, in whole numbers.
constexpr int64_t kTurn = int64_t{1} << 30;

// The whole number nearest to a quotient, of two the larger.
int64_t rounded(int64_t dividend, int64_t divisor) {
  const int64_t doubled = 2 * dividend + divisor;
  return doubled / (2 * divisor) - (doubled % (2 * divisor) < 0);
}

struct Arc {
  int from, to;
  int64_t flow;  // multiples of 1/unit
};

// Rounds every flow to a whole number, its floor or its ceiling. What enters or leaves the network at a node must be
// whole and stays as it is. A node that touches a flow with a fraction therefore touches another, so such flows form a
// cycle, and as much can be pushed round it as makes one of them whole.
void round_flows(std::vector<Arc> &arcs, int nodes, int64_t unit) {
  const auto fraction = [unit](const Arc &arc) { return arc.flow % unit; };
  for (size_t begin = 0; begin < arcs.size();) {
    if (fraction(arcs[begin]) == 0) {
      begin++;
      continue;
    }
    struct Step {
      Arc *arc;
      bool forward;
    };
    std::vector<Step> path;
    std::vector<int> position(nodes, -1);  // in the path, of the step that leaves a node
    int node = arcs[begin].from;
    while (position[node] < 0) {
      position[node] = static_cast<int>(path.size());
      const auto arc = std::find_if(arcs.begin() + begin, arcs.end(), [&](const Arc &candidate) {
        return fraction(candidate) != 0 && (candidate.from == node || candidate.to == node) &&
               (path.empty() || &candidate != path.back().arc);
      });
      path.push_back({&*arc, arc->from == node});
      node = arc->from == node ? arc->to : arc->from;
    }
    path.erase(path.begin(), path.begin() + position[node]);

    int64_t pushed = unit;
    for (const Step &step : path)
      pushed = std::min(pushed, step.forward ? unit - fraction(*step.arc) : fraction(*step.arc));
    for (const Step &step : path) step.arc->flow += step.forward ? pushed : -pushed;
  }
}

// The three rows of an epoch's counts: first segment, all whole batches together, last segment.
struct Rows {
  std::vector<CacheCounts> first, full, last;
};

Rows round_rows(std::span<const CacheCounts> totals, const Segments &segments) {
  // Arcs lead from each row to the row's formats, from there to the formats' hits and misses. Nodes: rows, formats by
  // row, hits and misses.
  const int formats = static_cast<int>(totals.size()), kinds = 3 + 3 * formats;
  const int64_t sizes[3] = {segments.first, segments.full_count * segments.full, segments.last};
  std::vector<Arc> arcs;
  for (int row = 0; row < 3; row++) {
    for (int format = 0; format < formats; format++) {
      const auto [hits, misses] = totals[format];
      const int node = 3 + row * formats + format;
      arcs.push_back({row, node, (hits + misses) * sizes[row]});
      arcs.push_back({node, kinds + 2 * format, hits * sizes[row]});
      arcs.push_back({node, kinds + 2 * format + 1, misses * sizes[row]});
    }
  }
  const int64_t size = sizes[0] + sizes[1] + sizes[2];
  round_flows(arcs, kinds + 2 * formats, size);

  Rows rows;
  std::vector<CacheCounts> *const parts[3] = {&rows.first, &rows.full, &rows.last};
  for (size_t i = 0; i < arcs.size(); i += 3)
    parts[i / 3 / formats]->push_back({arcs[i + 1].flow / size, arcs[i + 2].flow / size});
  return rows;
}

}  // namespace

EvenSpread::EvenSpread(std::vector<int64_t> totals, int64_t steps, int64_t lead)
    : totals_(std::move(totals)),
      steps_(steps),
      lead_(lead),
      items_(steps > 0 ? std::accumulate(totals_.begin(), totals_.end(), int64_t{0}) / steps : 0),
      given_(totals_.size()),
      kinds_(totals_.size()) {
  std::iota(kinds_.begin(), kinds_.end(), 0);
}

const std::vector<bool> &EvenSpread::next() {
  const int64_t left = steps_ - step_++;
  // A kind with as many items left as there are steps must get one now. Of those there are never more than items in a
  // step, since all that are left together fill the steps that are left. Others are served by how far they lag behind.
  const auto precedes = [&](size_t a, size_t b) {
    const auto key = [&](size_t kind) {
      const int64_t items = totals_[kind] - given_[kind];
      return std::tuple(items < left, items == 0, -lag(kind), kind);
    };
    return key(a) < key(b);
  };
  std::partial_sort(kinds_.begin(), kinds_.begin() + items_, kinds_.end(), precedes);
  chosen_.assign(totals_.size(), false);
  for (int64_t i = 0; i < items_; i++) {
    chosen_[kinds_[i]] = true;
    given_[kinds_[i]]++;
  }
  return chosen_;
}

Apportionment::Apportionment(std::span<const CacheCounts> totals, const Segments &segments)
    : segments_(segments), extra_({}, 0) {
  Rows rows = round_rows(totals, segments);
  first_ = std::move(rows.first);
  last_ = std::move(rows.last);
  const int64_t batches = segments.full_count;
  if (batches == 0) return;
  std::vector<int64_t> extras;
  int64_t turn = kTurn / 2;  // where a format begins: its hits follow those of the one before
  for (const auto [hits, misses] : rows.full) {
    const CacheCounts floors{hits / batches, misses / batches};
    const int64_t floor = (hits + misses) / batches;
    const int64_t more_hits = hits % batches, more_misses = misses % batches;
    const int64_t both = std::max<int64_t>(0, more_hits + more_misses - batches);  // batches with one more of each
    const int64_t single_hits = more_hits - both, single_misses = more_misses - both;
    const int64_t steps = single_hits + single_misses;
    int64_t lead = rounded((2 * turn - kTurn) * steps, kTurn);
    if (lead == steps) lead = -steps;  // a whole turn: the same place, but without an item to begin with
    formats_.push_back({floors, floor, EvenSpread({single_hits, single_misses}, steps, lead)});
    if (steps > 0) turn = (turn + rounded(kTurn * single_hits, steps)) % kTurn;
    extras.push_back((hits + misses) % batches);
  }
  extra_ = EvenSpread(std::move(extras), batches);
}

const std::vector<CacheCounts> &Apportionment::next() {
  const int64_t batch = segment_++ - (segments_.first > 0);
  if (batch < 0) return first_;
  if (batch == segments_.full_count) return last_;

  counts_.clear();
  const std::vector<bool> &extra = extra_.next();
  for (size_t i = 0; i < formats_.size(); i++) {
    auto &[floors, floor, single] = formats_[i];
    const int64_t count = floor + extra[i], more = count - floors.hits - floors.misses;
    const int64_t hits = floors.hits + (more == 1 ? single.next()[0] : more == 2);
    counts_.push_back({hits, count - hits});
  }
  return counts_;
}

}  // namespace dali_l3::loader
