#include "reader_statistics.h"

#include <string>
#include <utility>

#include "reader.h"

namespace dali_l3 {
namespace {

thread_local const Reader *announced = nullptr;

}  // namespace

void AnnounceReader(const Reader &reader) { announced = &reader; }

}  // namespace dali_l3

// Makes dali_l3_reader_statistics forget the reader that has been announced in this thread, which may be gone by now.
extern "C" __attribute__((visibility("default"))) void dali_l3_forget_reader() { dali_l3::announced = nullptr; }

// JSON, as loader/statistics.h describes it, valid until the next call in the same thread; null if the operator that
// was asked for its meta data last, which must still exist, is none of ours.
extern "C" __attribute__((visibility("default"))) const char *dali_l3_reader_statistics() {
  static thread_local std::string json;
  const dali_l3::Reader *reader = std::exchange(dali_l3::announced, nullptr);
  if (!reader) return nullptr;
  json = reader->Statistics();
  return json.c_str();
}
