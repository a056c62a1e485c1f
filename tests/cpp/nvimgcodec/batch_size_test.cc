// The size of a batch, from the order of the framework's calls.
#include "batch_size.h"

#include <thread>
#include <vector>

#include "testing.h"

using dali_l3::BatchSize;

namespace {

TEST(a_batch_is_what_was_asked_about) {
  BatchSize size;
  for (size_t bytes : {100, 20, 3}) size.Ask(bytes);
  for (int image = 0; image < 3; image++) CHECK_EQUAL(size.Decode(), 123u);
}

TEST(the_next_batch_begins_with_the_next_question) {
  BatchSize size;
  for (size_t images : {5, 1, 2}) {
    for (size_t i = 0; i < images; i++) size.Ask(10);
    for (size_t i = 0; i < images; i++) CHECK_EQUAL(size.Decode(), 10 * images);
  }
}

TEST(nothing_asked_is_an_empty_batch) {
  BatchSize size;
  CHECK_EQUAL(size.Decode(), 0u);
}

TEST(threads_may_decode_at_once) {
  BatchSize size;
  for (size_t batch = 1; batch <= 100; batch++) {
    for (int image = 0; image < 4; image++) size.Ask(batch);
    std::vector<size_t> sizes(4);
    std::vector<std::thread> threads;
    for (size_t &result : sizes) threads.emplace_back([&] { result = size.Decode(); });
    for (std::thread &thread : threads) thread.join();
    for (size_t result : sizes) CHECK_EQUAL(result, 4 * batch);
  }
}

}  // namespace
