// The orders of the sampling plans, which checkpoints rely on, in hashes: they change with the version of these alone.
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "listed_memory.h"
#include "plans/liquid_plan.h"
#include "plans/minio_plan.h"
#include "plans/mix_plan.h"
#include "plans/weighted_plan.h"
#include "testing.h"

using namespace dali_l3::loader;

namespace {

enum class Policy { mix, shuffled_mix, minio, liquid, sequential_liquid, weighted };

// A dataset of several formats and of files that differ in size.
struct Dataset {
  std::vector<FileFormat> formats;
  std::vector<uint64_t> bytes;
  uint64_t total = 0;

  Dataset(uint64_t size, uint64_t count) {
    for (uint64_t i = 0; i < size; i++) {
      formats.push_back(static_cast<FileFormat>((i * i * 7 + i / 3) % count));
      bytes.push_back(4096 * (1 + i * i % 41));
      total += bytes.back();
    }
  }
};

std::unique_ptr<EpochPlan> make_plan(Policy policy, const Dataset &dataset, const ShardOptions &shards, uint64_t memory,
                                     uint64_t seed) {
  if (policy == Policy::weighted) {
    const auto size = static_cast<int64_t>(dataset.bytes.size());
    WeightedSamples samples{dataset.formats, {}, {}};
    for (int cell = 0; cell < 5; cell++) samples.cells.push_back({cell / 2, 1.0 + cell});
    for (uint32_t i = 0; i < dataset.bytes.size(); i++) samples.cell_of.push_back(i * i * i % 5);
    const WeightedPlanOptions options{
        .shards = shards, .epoch_size = size, .seed = seed, .cache_bytes = memory, .constant_hits = true};
    return std::make_unique<WeightedPlan>(options, WeightedDraws(samples, shards, size), listed_memory(dataset.bytes));
  }
  std::vector<FormatGroup> groups = format_groups(dataset.formats, shards, policy != Policy::mix);
  if (policy == Policy::mix || policy == Policy::shuffled_mix)
    return std::make_unique<MixPlan>(shards, std::move(groups), policy == Policy::shuffled_mix, seed);
  if (policy == Policy::minio)
    return std::make_unique<MinioPlan>(shards, std::move(groups), listed_memory(dataset.bytes), dataset.bytes.size(),
                                       memory, seed);
  const LiquidPlanOptions options{
      .shards = shards, .cache_bytes = memory, .seed = seed, .sequential = policy == Policy::sequential_liquid};
  return std::make_unique<LiquidPlan>(options, groups, listed_memory(dataset.bytes));
}

// FNV-1a, 64 bits.
class Hash {
 public:
  void add(uint64_t value) {
    for (int byte = 0; byte < 8; byte++) hash_ = (hash_ ^ (value >> 8 * byte & 0xFF)) * 0x100000001B3;
  }
  uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = 0xCBF29CE484222325;
};

void add_order(Hash &hash, SampleOrder &order, int64_t batches) {
  std::vector<PlannedSample> samples;
  for (int64_t batch = 0; batch < batches; batch++) {
    order.next_batch(samples);
    for (const PlannedSample &sample : samples) {
      hash.add(sample.entry);
      hash.add(sample.hit | sample.keep << 1 | sample.padding << 2);
      hash.add(sample.epoch);
    }
  }
}

// Of some four epochs of every shard: with few and many formats, small and large batches, little and much memory.
uint64_t hash_of_orders(Policy policy, int64_t size) {
  Hash hash;
  for (const uint64_t formats : {1, 3, 10}) {
    const Dataset dataset(static_cast<uint64_t>(size), formats);
    for (const int batch_size : {1, 7, 64}) {
      for (const int num_shards : {1, 3}) {
        for (int shard = 0; shard < num_shards; shard++) {
          for (const bool pad : {false, true}) {
            for (const uint64_t seed : {uint64_t{0}, UINT64_MAX - 10}) {
              for (const uint64_t percent : {0, 30, 100}) {
                const ShardOptions shards{.shard_id = shard,
                                          .num_shards = num_shards,
                                          .stick_to_shard = true,
                                          .pad_last_batch = pad,
                                          .batch_size = batch_size};
                const uint64_t memory = dataset.total / 100 * percent / static_cast<uint64_t>(num_shards);
                SampleOrder order(shards, size, make_plan(policy, dataset, shards, memory, seed));
                add_order(hash, order, 4 * size / num_shards / batch_size + 4);
              }
            }
          }
        }
      }
    }
  }
  return hash.value();
}

TEST(orders_never_change) {
  const struct {
    Policy policy;
    int64_t size;
    uint64_t hash;
  } golden[] = {
      {Policy::mix, 5, 0xBB1D865EB519C7A5},
      {Policy::mix, 61, 0xC2C9A6EF5DE459E5},
      {Policy::mix, 200, 0x4B2765401951CEA5},
      {Policy::shuffled_mix, 5, 0x15441A508379C9E6},
      {Policy::shuffled_mix, 61, 0x65FCC3D6145D5F98},
      {Policy::shuffled_mix, 200, 0x3D643291708D2EC7},
      {Policy::minio, 5, 0x4D0D60BFC839D766},
      {Policy::minio, 61, 0x5A8B12B01126A0FB},
      {Policy::minio, 200, 0x63BA4232AE978767},
      {Policy::liquid, 5, 0x31C8C566945AF1C6},
      {Policy::liquid, 61, 0x305E0285445A9E28},
      {Policy::liquid, 200, 0xDE4BA140D2A9CCED},
      {Policy::sequential_liquid, 5, 0x7C4411756E8B0801},
      {Policy::sequential_liquid, 61, 0x7D669DD58706F9D3},
      {Policy::sequential_liquid, 200, 0x0A9414F646C212D2},
      {Policy::weighted, 5, 0x8A2941F79F7F81A6},
      {Policy::weighted, 61, 0xBE353FD977EEB361},
      {Policy::weighted, 200, 0x345C8359B2D5F83D},
  };
  for (const auto &[policy, size, hash] : golden) {
    const testing::Context context("policy %d, %d samples", static_cast<int>(policy), static_cast<int>(size));
    CHECK_EQUAL(hash_of_orders(policy, size), hash);
  }
}

}  // namespace
