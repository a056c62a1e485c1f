// All that differs between the versions of DALI that the adapter is built for, 1.53 to 2.4. It asks for features, not
// for numbers: what it finds decides, in versions to come as well.
#pragma once

#include <functional>
#include <utility>

#include "dali/pipeline/operator/op_schema.h"
#if __has_include("dali/core/exec/thread_pool_base.h")  // from 2.1 on
#include "dali/core/exec/thread_pool_base.h"
#else
#include "dali/pipeline/util/thread_pool.h"
#endif

namespace dali_l3 {

// What schemas tell of an output before an operator runs. Only those of DALI 2.2 and later can hold it; with others it
// is dropped. It stands in a schema of its own, DALI_SCHEMA(outputs) << OutputNDim(0, 3), which others have as a
// parent.
template <typename Describe>
struct OutputDescription {
  Describe describe;
};

template <typename Describe>
dali::OpSchema *operator<<(dali::OpSchema *schema, const OutputDescription<Describe> &output) {
  output.describe(*schema);
  return schema;
}

template <typename Value>
auto OutputNDim(int index, Value value) {
  return OutputDescription{[=](auto &schema) {
    if constexpr (requires { schema.OutputNDim(index, value); }) schema.OutputNDim(index, value);
  }};
}

template <typename Value>
auto OutputDType(int index, Value value) {
  return OutputDescription{[=](auto &schema) {
    if constexpr (requires { schema.OutputDType(index, value); }) schema.OutputDType(index, value);
  }};
}

template <typename Value>
auto OutputLayout(int index, Value value) {
  return OutputDescription{[=](auto &schema) {
    if constexpr (requires { schema.OutputLayout(index, value); }) schema.OutputLayout(index, value);
  }};
}

// Whether readers.file shuffles epochs by generators of 32 bits, as before DALI 2.2, when schemas learned to tell of
// outputs.
template <typename Schema>
constexpr bool kTellsOfOutputs = requires(Schema &schema) { schema.OutputNDim(0, 1); };
constexpr bool kEpochSeedHas32Bits = !kTellsOfOutputs<dali::OpSchema>;

// The operator that decodes through nvImageCodec, and so L3, too: the main one since DALI 2.2.
constexpr const char *kImageDecoder =
    kTellsOfOutputs<dali::OpSchema> ? "fn.decoders.image" : "fn.experimental.decoders.image";

// Threads of an operator to which DALI gives none.
class Threads {
#if __has_include("dali/core/exec/thread_pool_base.h")
 public:
  explicit Threads(int count) : pool_(count) {}

  // Calls `work` in `count` threads, at most all, and returns when all calls have.
  void Run(int count, const std::function<void()> &work) {
    dali::Job job;
    for (int i = 0; i < count; i++) job.AddTask(std::ref(work));
    job.Run(pool_, true);
  }

 private:
  dali::ThreadPoolBase pool_;
#else
 public:
  explicit Threads(int count) : pool_(count, dali::CPU_ONLY_DEVICE_ID, false, "decoders.l3") {}

  void Run(int count, const std::function<void()> &work) {
    for (int i = 0; i < count; i++) pool_.AddWork([&](int /*thread*/) { work(); });
    pool_.RunAll();
  }

 private:
  dali::ThreadPool pool_;
#endif

 public:
  int Count() const { return pool_.NumThreads(); }
};

}  // namespace dali_l3
