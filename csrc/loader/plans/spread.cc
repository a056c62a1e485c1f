// Earliest deadline first, with the deadlines of proportionate fairness (Baruah, Cohen, Plaxton and Varvel 1996).

#include "plans/spread.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>

#include "plans/random.h"

namespace dali_l3::loader {

std::vector<SpreadItem> spread(std::span<const uint64_t> kinds, uint64_t seed) {
  struct Drawn {
    uint64_t kind, draw;
    uint32_t item;
    auto operator<=>(const Drawn &) const = default;
  };
  std::vector<Drawn> items;
  for (uint32_t i = 0; i < kinds.size(); i++) items.push_back({kinds[i], Random{seed, i}.next(), i});
  std::sort(items.begin(), items.end());

  // Item `rank` of a kind may come when the kind's share of the order has reached its rank, and has to before it
  // exceeds the rank by one.
  const auto size = static_cast<uint64_t>(items.size());
  struct Turn {
    uint64_t release, deadline;
    size_t first, count, rank;  // the kind's items, and which is next
  };
  const auto turn = [size](size_t first, size_t count, size_t rank) {
    return Turn{rank * size / count, ((rank + 1) * size + count - 1) / count, first, count, rank};
  };
  const auto released_later = [](const Turn &a, const Turn &b) {
    return std::tie(a.release, a.first) > std::tie(b.release, b.first);
  };
  const auto due_later = [&](const Turn &a, const Turn &b) {
    return std::tie(a.deadline, items[a.first + a.rank].draw, a.first) >
           std::tie(b.deadline, items[b.first + b.rank].draw, b.first);
  };
  std::priority_queue<Turn, std::vector<Turn>, std::function<bool(const Turn &, const Turn &)>> waiting(released_later),
      ready(due_later);
  for (size_t first = 0, end; first < size; first = end) {
    for (end = first; end < size && items[end].kind == items[first].kind;) end++;
    waiting.push(turn(first, end - first, 0));
  }

  std::vector<SpreadItem> order;
  for (uint64_t time = 0; time < size; time++) {
    for (; !waiting.empty() && waiting.top().release <= time; waiting.pop()) ready.push(waiting.top());
    const Turn next = ready.top();
    ready.pop();
    order.push_back({items[next.first + next.rank].item, static_cast<uint32_t>(next.rank)});
    if (next.rank + 1 < next.count) waiting.push(turn(next.first, next.count, next.rank + 1));
  }
  return order;
}

}  // namespace dali_l3::loader
