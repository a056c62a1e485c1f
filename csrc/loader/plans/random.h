// The random numbers of the sampling plans: the same with every compiler and standard library, which those of <random>
// are not.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>

namespace dali_l3::loader {

/** SplitMix64 (Steele, Lea and Flood 2014). */
class Random {
 public:
  /** Different seeds, in number, value or order, give unrelated sequences. */
  explicit Random(std::initializer_list<uint64_t> seeds) {
    for (const uint64_t seed : seeds) state_ = next() ^ seed;
  }

  uint64_t next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }

  /** Uniform in 0 … bound - 1, without bias (Lemire 2019). `bound` is at least 1. */
  uint32_t below(uint32_t bound) {
    uint64_t product = (next() >> 32) * bound;
    if (static_cast<uint32_t>(product) < bound) {
      const uint32_t threshold = -bound % bound;
      while (static_cast<uint32_t>(product) < threshold) product = (next() >> 32) * bound;
    }
    return static_cast<uint32_t>(product >> 32);
  }

 private:
  uint64_t state_ = 0;
};

/** What a shard draws for one of its epochs. */
inline Random epoch_random(uint64_t seed, uint64_t epoch, int shard) {
  return Random{seed, epoch, static_cast<uint64_t>(shard)};
}

/** Moves `count` values, chosen at random, to the front in random order (Fisher and Yates). */
template <typename T>
void shuffle_front(std::span<T> values, size_t count, Random &random) {
  for (size_t i = 0; i < count; i++)
    std::swap(values[i], values[i + random.below(static_cast<uint32_t>(values.size() - i))]);
}

template <typename T>
void shuffle(std::span<T> values, Random &random) {
  shuffle_front(values, values.size(), random);
}

/** Draws what shuffle() of `size` values does. */
inline void skip_shuffle(size_t size, Random &random) {
  for (size_t left = size; left > 0; left--) random.below(static_cast<uint32_t>(left));
}

}  // namespace dali_l3::loader
