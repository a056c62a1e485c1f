// Arguments to options of the catalogue and the engine.

#include "arguments/reading.h"

#include <stdexcept>

namespace dali_l3::loader {
namespace {

// Samples that are read ahead by default. A batch is scheduled only when another is asked for: were it but one batch
// ahead, the disk would be idle whenever all of that had come before.
constexpr int kSamplesAhead = 64;

OnError parse_on_error(const std::string &name) {
  if (name == "raise") return OnError::raise;
  if (name == "skip") return OnError::skip;
  if (name == "substitute") return OnError::substitute;
  throw std::invalid_argument("on_error is \"" + name + R"(", but must be "raise", "skip" or "substitute")");
}

Check parse_check(const std::string &name) {
  if (name == "none") return Check::none;
  if (name == "headers") return Check::headers;
  if (name == "content") return Check::content;
  throw std::invalid_argument("check is \"" + name + R"(", but must be "none", "headers" or "content")");
}

}  // namespace

EngineOptions engine_options(const ReadingArguments &arguments, uint64_t cache_bytes) {
  EngineOptions options;
  options.reading.mode = arguments.use_o_direct ? ReadMode::direct : ReadMode::buffered;
  options.reading.cache_bytes = cache_bytes;
  options.reading.check = parse_check(arguments.check);
  options.read_threads = arguments.read_threads;
  options.batches_ahead = arguments.prefetch_queue_depth.value_or(1 + (kSamplesAhead - 1) / arguments.batch_size);
  if (options.batches_ahead < 0) throw std::invalid_argument("prefetch_queue_depth must not be negative");
  options.on_error = parse_on_error(arguments.on_error);
  if (arguments.substitute.has_value() != (options.on_error == OnError::substitute))
    throw std::invalid_argument(
        R"(on_error="substitute" needs the argument substitute, a path, which is of no use otherwise)");
  if (arguments.substitute && arguments.companions > 0)
    throw std::invalid_argument(
        R"(on_error="substitute" cannot be used with companions: the substitute has none. Use "skip")");
  options.substitute = arguments.substitute.value_or("");
  if (arguments.equal_sizes && arguments.companions == 0)
    throw std::invalid_argument("equal_sizes compares images with their companions, of which there are none");
  options.reading.equal_sizes = arguments.equal_sizes;
  return options;
}

CatalogueOptions listing_options(const ReadingArguments &arguments) {
  CatalogueOptions options;
  options.on_error = parse_on_error(arguments.on_error);
  options.sniff = options.on_error != OnError::raise;  // bad files are left out only if somebody looks at them
  // Listing reads no file as a whole: what is wrong behind a header is found when the file is read.
  options.check_headers = parse_check(arguments.check) != Check::none;
  options.strict = arguments.strict;
  options.threads = arguments.read_threads;
  return options;
}

}  // namespace dali_l3::loader
