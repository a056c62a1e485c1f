// Constants of whole registers.
#pragma once

#include <immintrin.h>

#include <array>
#include <cstdint>

// Internal linkage, for the reason that generic_decoder.h gives.
namespace l3::avx512 {
namespace {

// The elements of a register, element i being function(i).
template <typename Element>
using Elements = std::array<Element, 64 / sizeof(Element)>;
using Bytes = Elements<uint8_t>;
using Words = Elements<uint16_t>;

template <typename Element, typename Function>
constexpr Elements<Element> elements_of(Function function) {
  Elements<Element> elements{};
  for (uint32_t i = 0; i < elements.size(); i++) elements[i] = Element(function(i));
  return elements;
}
template <typename Function>
constexpr Bytes bytes_of(Function function) {
  return elements_of<uint8_t>(function);
}
template <typename Function>
constexpr Words words_of(Function function) {
  return elements_of<uint16_t>(function);
}

template <typename Element>
inline __m512i load_elements(const std::array<Element, 64 / sizeof(Element)> &elements) {
  return _mm512_loadu_si512(elements.data());
}
inline __m512i load_bytes(const Bytes &bytes) { return load_elements<uint8_t>(bytes); }
inline __m512i load_words(const Words &words) { return load_elements<uint16_t>(words); }

}  // namespace
}  // namespace l3::avx512
