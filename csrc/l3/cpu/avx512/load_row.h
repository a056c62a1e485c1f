// Loading rows of tiles with AVX-512.
#pragma once

#include "cpu/avx512/registers.h"
#include "cpu/quartered_plane.h"

// Internal linkage, for the reason that generic_decoder.h gives.
namespace l3::avx512 {
namespace {

// Where the samples of a row's planes stand among its interleaved pixels, which fill some pairs of registers: for each
// register of a plane their places in a pair, and those that are in each of the pairs.
template <typename Sample, uint32_t channels>
struct Places {
  static constexpr uint32_t kPerRegister = 64 / sizeof(Sample), kRegisters = L3_TILE / kPerRegister;  // of a plane
  static constexpr uint32_t kInputs = channels * kRegisters, kPairs = (kInputs + 1) / 2;

  Elements<Sample> in_pair[channels][kRegisters];
  uint64_t of_pair[channels][kRegisters][kPairs];

  constexpr Places() : in_pair{}, of_pair{} {
    for (uint32_t c = 0; c < channels; c++)
      for (uint32_t i = 0; i < L3_TILE; i++) {
        const uint32_t from = generic::column_at(i) * channels + c, r = i / kPerRegister, element = i % kPerRegister;
        in_pair[c][r][element] = Sample(from % (2 * kPerRegister));
        of_pair[c][r][from / (2 * kPerRegister)] |= uint64_t(1) << element;
      }
  }
};

struct RowLoader {
  template <uint32_t channels, typename Sample>
  static void load(const uint8_t *pixels, Sample *const (&rows)[channels]) {
    using Places = avx512::Places<Sample, channels>;
    static constexpr Places places;
    __m512i inputs[2 * Places::kPairs] = {};
    for (uint32_t i = 0; i < Places::kInputs; i++) inputs[i] = _mm512_loadu_si512(pixels + 64 * i);
    for (uint32_t c = 0; c < channels; c++)
      for (uint32_t r = 0; r < Places::kRegisters; r++) {
        const __m512i in_pair = load_elements<Sample>(places.in_pair[c][r]);
        __m512i samples = permute<Sample>(inputs[0], in_pair, inputs[1]);
        for (uint32_t pair = 1; pair < Places::kPairs; pair++)
          samples = replace<Sample>(samples, places.of_pair[c][r][pair],
                                    permute<Sample>(inputs[2 * pair], in_pair, inputs[2 * pair + 1]));
        _mm512_storeu_si512(rows[c] + r * Places::kPerRegister, samples);
      }
  }

 private:
  template <typename Sample>
  static __m512i permute(__m512i low, __m512i places, __m512i high) {
    if constexpr (sizeof(Sample) == 1)
      return _mm512_permutex2var_epi8(low, places, high);
    else
      return _mm512_permutex2var_epi16(low, places, high);
  }

  template <typename Sample>
  static __m512i replace(__m512i samples, uint64_t mask, __m512i others) {
    if constexpr (sizeof(Sample) == 1)
      return _mm512_mask_mov_epi8(samples, mask, others);
    else
      return _mm512_mask_mov_epi16(samples, uint32_t(mask), others);
  }
};

}  // namespace
}  // namespace l3::avx512
