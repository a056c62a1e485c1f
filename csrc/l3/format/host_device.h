// What the CUDA compiler needs to be told about functions that host and device share, or that only the device runs.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define L3_HOST_DEVICE __host__ __device__ __forceinline__
#define L3_DEVICE __device__ __forceinline__
#define L3_UNROLL _Pragma("unroll")       // a loop over what is to stay in registers
#define L3_NO_UNROLL _Pragma("unroll 1")  // a loop that seldom goes round twice
#else
#define L3_HOST_DEVICE inline
#define L3_DEVICE inline
#define L3_UNROLL
#define L3_NO_UNROLL
#endif

namespace l3 {

L3_HOST_DEVICE uint32_t popcount(uint64_t bits) {
#ifdef __CUDA_ARCH__
  return uint32_t(__popcll(bits));
#else
  return uint32_t(__builtin_popcountll(bits));
#endif
}

}  // namespace l3
