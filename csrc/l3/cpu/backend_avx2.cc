// The back end for AVX2 and BMI2: a row of a tile is two registers.
#include <immintrin.h>

#include <array>

#include "cpu/code_tables.h"
#include "cpu/dispatch.h"
#include "cpu/generic_kernels.h"
#include "cpu/uncached_rows.h"

namespace l3 {
namespace {

using Bytes = std::array<uint8_t, 32>;
template <typename Function>
constexpr Bytes bytes_of(Function function) {
  Bytes bytes{};
  for (uint32_t i = 0; i < 32; i++) bytes[i] = uint8_t(function(i));
  return bytes;
}
inline __m256i load_bytes(const Bytes &bytes) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i *>(bytes.data()));
}

// 32 samples at `samples`, which are aligned.
inline __m256i load_half(const uint8_t *samples) {
  return _mm256_load_si256(reinterpret_cast<const __m256i *>(samples));
}
inline void store_half(uint8_t *samples, __m256i half) {
  _mm256_store_si256(reinterpret_cast<__m256i *>(samples), half);
}

constexpr Bytes kIdentity = bytes_of([](uint32_t i) { return i; });
constexpr Bytes kGroupOfPixel = bytes_of([](uint32_t i) { return i / 4; });
// Where the fields of an octet go, by width.
constexpr std::array<uint64_t, 9> kFieldBits = [] {
  std::array<uint64_t, 9> bits{};
  for (uint32_t width = 0; width <= 8; width++) bits[width] = low_bits_of_bytes(width);
  return bits;
}();

// A row of a tile.
struct Row64 {
  __m256i left, right;
};
inline Row64 operator+(const Row64 &a, const Row64 &b) {
  return {_mm256_add_epi8(a.left, b.left), _mm256_add_epi8(a.right, b.right)};
}
inline Row64 average(const Row64 &a, const Row64 &b) {
  return {_mm256_avg_epu8(a.left, b.left), _mm256_avg_epu8(a.right, b.right)};
}
inline Row64 broadcast(uint8_t sample) { return {_mm256_set1_epi8(char(sample)), _mm256_set1_epi8(char(sample))}; }

struct UnitRows {
  __m256i upper, lower;
};

// The residuals of a unit with these eight codes; moves `payload` past its octets.
inline UnitRows unpack_unit(__m128i codes, const uint8_t *&payload) {
  const uint64_t widths = uint64_t(_mm_cvtsi128_si64(_mm_shuffle_epi8(generic::load_table(generic::kWidths), codes)));
  const uint64_t starts = widths * 0x0101010101010100ull;  // byte g is the sum of the widths before group g
  const auto octet = [&](uint32_t g) {
    return int64_t(_pdep_u64(load<uint64_t>(payload + (starts >> 8 * g & 255)), kFieldBits[widths >> 8 * g & 255]));
  };
  // Rows are put together within lanes, so that the lanes take the left and the right half of the groups.
  const __m256i even = _mm256_set_epi64x(octet(5), octet(4), octet(1), octet(0));
  const __m256i odd = _mm256_set_epi64x(octet(7), octet(6), octet(3), octet(2));
  payload += (starts >> 56) + (widths >> 56);
  const __m256i code_of_pixel = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(codes), load_bytes(kGroupOfPixel));
  const __m256i minimum =
      _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(generic::load_table(generic::kMinima)), code_of_pixel);
  const auto row = [&](__m256 fields) { return _mm256_add_epi8(_mm256_castps_si256(fields), minimum); };
  return {row(_mm256_shuffle_ps(_mm256_castsi256_ps(even), _mm256_castsi256_ps(odd), 0x88)),
          row(_mm256_shuffle_ps(_mm256_castsi256_ps(even), _mm256_castsi256_ps(odd), 0xDD))};
}

// Running sums of the 16 bytes of each lane.
inline __m256i sum_lanes(__m256i v) {
  v = _mm256_add_epi8(v, _mm256_slli_si256(v, 1));
  v = _mm256_add_epi8(v, _mm256_slli_si256(v, 2));
  v = _mm256_add_epi8(v, _mm256_slli_si256(v, 4));
  return _mm256_add_epi8(v, _mm256_slli_si256(v, 8));
}

// Running sums of a row.
inline Row64 prefix_sum(const Row64 &row) {
  const __m256i last = _mm256_set1_epi8(15);
  const auto sum_half = [&](__m256i half) {
    half = sum_lanes(half);
    const __m256i ends = _mm256_shuffle_epi8(half, last);
    return _mm256_add_epi8(half, _mm256_permute2x128_si256(ends, ends, 0x08));  // the lower lane's into the upper
  };
  const __m256i left = sum_half(row.left), right = sum_half(row.right);
  const __m256i end = _mm256_shuffle_epi8(_mm256_permute2x128_si256(left, left, 0x11), last);
  return {left, _mm256_add_epi8(right, end)};
}

// Every sample's left neighbour; the first keeps its own value.
inline Row64 to_the_left(const Row64 &row) {
  const __m128i lower = _mm256_castsi256_si128(row.left);
  const __m256i first = _mm256_inserti128_si256(_mm256_broadcastb_epi8(lower), lower, 1);
  const __m256i middle = _mm256_permute2x128_si256(row.left, row.right, 0x21);
  return {_mm256_alignr_epi8(row.left, first, 15), _mm256_alignr_epi8(row.right, middle, 15)};
}

// Every sample's right neighbour; where `is_last` is set, its own value.
inline Row64 to_the_right(const Row64 &row, const Row64 &is_last) {
  const __m256i middle = _mm256_permute2x128_si256(row.left, row.right, 0x21);
  const __m256i end = _mm256_permute2x128_si256(row.right, row.right, 0x81);
  return {_mm256_blendv_epi8(_mm256_alignr_epi8(middle, row.left, 1), row.left, is_last.left),
          _mm256_blendv_epi8(_mm256_alignr_epi8(end, row.right, 1), row.right, is_last.right)};
}

template <uint32_t predictor>
uint32_t decode_channel(const uint8_t *bytes, const FastChannel &channel, TileShape shape, uint8_t *plane) {
  const __m128i palette = generic::load_palette(bytes + channel.palette, channel.index_bits);
  const uint64_t index_positions = low_bits_of_bytes(channel.index_bits);
  const uint8_t *indices = bytes + channel.indices, *payload = bytes + channel.payload;
  const bool two_units = shape.units_per_row_pair() == 2;
  const uint64_t groups_inside[2] = {low_bits(8 * shape.groups()),
                                     shape.groups() > 8 ? low_bits(8 * (shape.groups() - 8)) : 0};
  const __m256i last = _mm256_set1_epi8(char(shape.width - 1)), columns = load_bytes(kIdentity);
  const Row64 is_last = {_mm256_cmpeq_epi8(columns, last),
                         _mm256_cmpeq_epi8(_mm256_add_epi8(columns, _mm256_set1_epi8(32)), last)};

  uint64_t units = channel.units;
  const auto next_unit = [&](uint32_t side) {
    const uint64_t present = -(units & 1);
    units >>= 1;
    const uint64_t spread = _pdep_u64(load<uint32_t>(indices), index_positions);
    indices += channel.index_bits & present;
    const __m128i all_codes = _mm_shuffle_epi8(palette, _mm_cvtsi64_si128(int64_t(spread)));
    return unpack_unit(_mm_and_si128(all_codes, _mm_cvtsi64_si128(int64_t(groups_inside[side] & present))), payload);
  };

  Row64 above = broadcast(uint8_t(channel.first));
  for (uint32_t pair = 0; pair < shape.row_pairs(); pair++) {
    const UnitRows left = next_unit(0),
                   right = two_units ? next_unit(1) : UnitRows{_mm256_setzero_si256(), _mm256_setzero_si256()};
    const Row64 residuals[2] = {{left.upper, right.upper}, {left.lower, right.lower}};
    for (uint32_t i = 0; i < 2; i++) {
      const bool first_row = pair == 0 && i == 0;
      Row64 row = residuals[i];
      if (first_row || sums_along_row(predictor)) row = prefix_sum(row);
      Row64 base = above;
      if (!first_row) {
        if (predictor == kLeft) base.left = base.right = _mm256_broadcastb_epi8(_mm256_castsi256_si128(above.left));
        if (predictor == kSmoothAbove || predictor == kSmoothPlane)
          base = average(average(to_the_left(above), to_the_right(above, is_last)), above);
      }
      above = row + base;
      uint8_t *out = plane + (2 * pair + i) * L3_TILE;
      store_half(out, above.left);
      store_half(out + 32, above.right);
    }
  }
  return uint32_t(payload - bytes);
}

uint32_t decode_channel_8(const uint8_t *bytes, const FastChannel &channel, TileShape shape, uint8_t *plane) {
  return generic::with_predictor(
      channel.predictor, [&](auto predictor) { return decode_channel<predictor>(bytes, channel, shape, plane); });
}

inline __m256i load_32(const uint8_t *in) { return _mm256_loadu_si256(reinterpret_cast<const __m256i *>(in)); }
inline void store_32(uint8_t *out, __m256i bytes, Stores stores) {
  if (stores == Stores::kUncached)
    _mm256_stream_si256(reinterpret_cast<__m256i *>(out), bytes);
  else
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(out), bytes);
}

// For each 16 of 48 interleaved bytes and each channel, where in 16 samples of the channel they come from; 128 for
// other channels' bytes.
template <uint32_t part, uint32_t channel>
constexpr Bytes kSources = bytes_of([](uint32_t i) {
  const uint32_t position = 16 * part + i % 16;
  return position % 3 == channel ? position / 3 : 128;
});

template <uint32_t part>
inline __m256i interleave_part(__m256i red, __m256i green, __m256i blue) {
  return _mm256_or_si256(_mm256_or_si256(_mm256_shuffle_epi8(red, load_bytes(kSources<part, 0>)),
                                         _mm256_shuffle_epi8(green, load_bytes(kSources<part, 1>))),
                         _mm256_shuffle_epi8(blue, load_bytes(kSources<part, 2>)));
}

// 32 pixels, 96 bytes.
inline void store_rgb(__m256i red, __m256i green, __m256i blue, uint8_t *out, Stores stores) {
  const __m256i first = interleave_part<0>(red, green, blue), second = interleave_part<1>(red, green, blue),
                third = interleave_part<2>(red, green, blue);
  store_32(out, _mm256_permute2x128_si256(first, second, 0x20), stores);
  store_32(out + 32, _mm256_permute2x128_si256(third, first, 0x30), stores);
  store_32(out + 64, _mm256_permute2x128_si256(second, third, 0x31), stores);
}

template <uint32_t transform>
void store_rgb_tile(const Planes<uint8_t> &planes, TileShape shape, Destination destination, Stores stores) {
  const __m256i middle = _mm256_set1_epi8(char(128));
  const bool whole = shape.width == L3_TILE;
  if (!whole) stores = Stores::kCached;
  alignas(32) uint8_t partial[3 * L3_TILE];
  uint8_t *out = destination.data;
  for (uint32_t y = 0; y < shape.height; y++, out += destination.stride) {
    uint8_t *const row = whole ? out : partial;
    for (uint32_t x = 0; x < L3_TILE; x += 32) {
      const uint8_t *samples = planes.plane[0] + y * L3_TILE + x;
      const __m256i green = load_half(samples);
      __m256i red = load_half(samples + kPlaneSize), blue = load_half(samples + 2 * kPlaneSize);
      if (transform != kTransformNone) {
        // Adding a half of the range and flipping the top bit are the same.
        __m256i reference = green;
        red = _mm256_add_epi8(red, _mm256_xor_si256(green, middle));
        if (transform == kSubtractGreenAndMean) {
          const __m256i odd = _mm256_and_si256(_mm256_xor_si256(red, green), _mm256_set1_epi8(1));
          reference = _mm256_sub_epi8(_mm256_avg_epu8(red, green), odd);  // rounded down
        }
        blue = _mm256_add_epi8(blue, _mm256_xor_si256(reference, middle));
      }
      store_rgb(red, green, blue, row + 3 * x, stores);
    }
    if (!whole) std::memcpy(out, partial, 3 * shape.width);
  }
}

void store_tile_8(const DecodedTile<uint8_t> &tile, Destination out, Stores stores) {
  if (tile.channels != 3) return generic::store_tile(tile, out, stores);
  generic::with_color_transform(tile.transform.color,
                                [&](auto color) { store_rgb_tile<color>(tile.planes, tile.shape, out, stores); });
}

void copy_rows(const Rows &rows, Destination destination) {
  const auto [first, in_stride, row_size, count] = rows;
  const uint8_t *in = first;
  uint8_t *out = destination.data;
  for (uint32_t y = 0; y < count; y++, in += in_stride, out += destination.stride) {
    uint32_t x = 0;
    for (; x + 32 <= row_size; x += 32) store_32(out + x, load_32(in + x), Stores::kCached);
    std::memcpy(out + x, in + x, row_size - x);
  }
}

// A line of zeros, then one of ones.
constexpr std::array<uint8_t, 2 * kCacheLine> kZerosAndOnes = [] {
  std::array<uint8_t, 2 * kCacheLine> bytes{};
  for (uint32_t i = kCacheLine; i < 2 * kCacheLine; i++) bytes[i] = 255;
  return bytes;
}();

struct Line {
  static void store(uint8_t *line, const uint8_t *bytes) { store(line, load_32(bytes), load_32(bytes + 32)); }
  static void store_joined(uint8_t *line, const uint8_t *first, const uint8_t *rest, uint32_t size) {
    const uint8_t *of_rest = kZerosAndOnes.data() + kCacheLine - size;
    store(line, _mm256_blendv_epi8(load_32(first), load_32(rest), load_32(of_rest)),
          _mm256_blendv_epi8(load_32(first + 32), load_32(rest + 32), load_32(of_rest + 32)));
  }
  static void copy(uint8_t *line, const uint8_t *bytes, uint32_t begin, uint32_t end) {
    std::memcpy(line + begin, bytes + begin, end - begin);
  }
  static void keep(uint8_t *line, const uint8_t *bytes, uint32_t end) { copy(line, bytes, 0, end); }

 private:
  static void store(uint8_t *line, __m256i left, __m256i right) {
    store_32(line, left, Stores::kUncached);
    store_32(line + 32, right, Stores::kUncached);
  }
};

}  // namespace

const Kernels kAvx2Kernels = {
    .name = "avx2",
    .supported = cpu_runs_avx2_kernels,
    .of_8_bits = {.decode_channel = decode_channel_8,
                  .store_tile = store_tile_8,
                  .encode_tile = generic::encode_tile<uint8_t>},
    .of_16_bits = generic::kSampleKernels<uint16_t>,
    .copy_rows = copy_rows,
    .copy_rows_uncached = generic::copy_rows_uncached<Line>,
};

}  // namespace l3
