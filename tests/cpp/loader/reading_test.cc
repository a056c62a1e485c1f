// How files are read for which arguments, and which arguments are refused.
#include "arguments/reading.h"

#include <climits>

#include "testing.h"

using namespace dali_l3::loader;

namespace {

std::string error(const ReadingArguments &arguments) {
  return testing::error_of([&] { engine_options(arguments, 0); });
}

int batches_ahead(int batch_size) { return engine_options({.batch_size = batch_size}, 0).batches_ahead; }

TEST(defaults) {
  const EngineOptions options = engine_options({}, 0);
  CHECK(options.reading.mode == ReadMode::buffered && options.reading.check == Check::none);
  CHECK(options.on_error == OnError::raise && options.substitute.empty());
  CHECK_EQUAL(options.reading.cache_bytes, 0u);
  const CatalogueOptions listing = listing_options({});
  CHECK(listing.on_error == OnError::raise && !listing.sniff && !listing.check_headers && !listing.strict);
}

TEST(values_are_passed_on) {
  const ReadingArguments arguments{.use_o_direct = true, .strict = true, .read_threads = 3, .prefetch_queue_depth = 0};
  const EngineOptions options = engine_options(arguments, UINT64_MAX);
  CHECK(options.reading.mode == ReadMode::direct);
  CHECK_EQUAL(options.reading.cache_bytes, UINT64_MAX);
  CHECK_EQUAL(options.read_threads, 3);
  CHECK_EQUAL(options.batches_ahead, 0);
  const CatalogueOptions listing = listing_options(arguments);
  CHECK(listing.strict);
  CHECK_EQUAL(listing.threads, 3);
}

TEST(by_default_at_least_64_samples_and_one_batch_are_read_ahead) {
  for (int batch_size = 1; batch_size < 200; batch_size++) {
    const int batches = batches_ahead(batch_size);
    CHECK(batches * batch_size >= 64 && (batches - 1) * batch_size < 64);
  }
  CHECK_EQUAL(batches_ahead(INT_MAX), 1);
}

TEST(checks) {
  CHECK(engine_options({.check = "headers"}, 0).reading.check == Check::headers);
  CHECK(engine_options({.check = "content"}, 0).reading.check == Check::content);
  CHECK(listing_options({.check = "headers"}).check_headers && listing_options({.check = "content"}).check_headers);
  for (const char *name : {"", "all", "Headers"}) {
    const std::string message = std::string("check is \"") + name + R"(", but must be "none", "headers" or "content")";
    CHECK_EQUAL(error({.check = name}), message);
    CHECK_EQUAL(testing::error_of([&] { listing_options({.check = name}); }), message);
  }
}

TEST(files_are_looked_at_where_bad_ones_are_left_out) {
  const CatalogueOptions skip = listing_options({.on_error = "skip"});
  CHECK(skip.on_error == OnError::skip && skip.sniff);
  CHECK(engine_options({.on_error = "skip"}, 0).on_error == OnError::skip);
  CHECK(listing_options({.on_error = "substitute", .substitute = "a.png"}).sniff);
  for (const char *name : {"", "zeros", "Skip"}) {
    CHECK_EQUAL(error({.on_error = name}),
                std::string("on_error is \"") + name + R"(", but must be "raise", "skip" or "substitute")");
  }
}

TEST(substitutes) {
  const EngineOptions options = engine_options({.on_error = "substitute", .substitute = "a.png"}, 0);
  CHECK(options.on_error == OnError::substitute);
  CHECK_EQUAL(options.substitute, "a.png");
  const std::string alone =
      R"(on_error="substitute" needs the argument substitute, a path, which is of no use otherwise)";
  CHECK_EQUAL(error({.on_error = "substitute"}), alone);
  CHECK_EQUAL(error({.substitute = "a.png"}), alone);
  CHECK_EQUAL(error({.on_error = "skip", .substitute = "a.png"}), alone);
  CHECK_EQUAL(error({.on_error = "substitute", .substitute = "a.png", .companions = 1}),
              R"(on_error="substitute" cannot be used with companions: the substitute has none. Use "skip")");
  CHECK_EQUAL(error({.on_error = "skip", .companions = 1}), "");
}

TEST(prefetch_queue_depth_is_not_negative) {
  for (const int depth : {-1, INT_MIN})
    CHECK_EQUAL(error({.prefetch_queue_depth = depth}), "prefetch_queue_depth must not be negative");
}

}  // namespace
