// Orders that hold all kinds in proportion.
#include "plans/spread.h"

#include <algorithm>
#include <map>

#include "orders.h"
#include "plans/random.h"
#include "testing.h"

using namespace dali_l3::loader;

namespace {

TEST(every_beginning_holds_the_kinds_in_proportion) {
  Random random{1};
  for (int i = 0; i < 300; i++) {
    const testing::Context context("case %d", i);
    std::vector<uint64_t> kinds(random.below(200));
    const uint32_t most = 1 + random.below(random.below(2) ? 8 : 150);
    for (uint64_t &kind : kinds) kind = UINT64_MAX - static_cast<uint64_t>(random.below(most)) * random.below(most);
    const auto size = static_cast<int64_t>(kinds.size());
    std::map<uint64_t, int64_t> totals, counts;
    for (const uint64_t kind : kinds) totals[kind]++;

    const std::vector<SpreadItem> order = spread(kinds, static_cast<uint64_t>(i));
    CHECK_EQUAL(static_cast<int64_t>(order.size()), size);
    std::vector<bool> seen(kinds.size());
    for (int64_t n = 0; n < size; n++) {
      const auto [item, rank] = order[n];
      CHECK(!seen[item]);
      seen[item] = true;
      CHECK_EQUAL(static_cast<int64_t>(rank), counts[kinds[item]]++);
      for (const auto &[kind, total] : totals) CHECK(is_share(counts[kind], total, n + 1, size));
    }
  }
}

TEST(the_seed_decides_what_comes_first) {
  const std::vector<uint64_t> one_kind(100);
  std::vector<uint64_t> all_different(100);
  for (size_t i = 0; i < 100; i++) all_different[i] = i;
  for (const auto &kinds : {one_kind, all_different}) {
    const auto items = [&](uint64_t seed) {
      std::vector<uint32_t> items;
      for (const SpreadItem &place : spread(kinds, seed)) items.push_back(place.item);
      return items;
    };
    CHECK_EQUAL(text(items(1)), text(items(1)));
    CHECK(items(1) != items(2));
    const std::vector<uint32_t> first = items(1);
    CHECK(!std::is_sorted(first.begin(), first.end()));
  }
}

}  // namespace
