// How files are read, by the arguments that all readers share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "dataset/catalogue.h"
#include "engine.h"

namespace dali_l3::loader {

struct ReadingArguments {
  bool use_o_direct = false;
  std::string check = "none", on_error = "raise";
  std::optional<std::string> substitute = {};
  int companions = 0;  ///< path templates that are given
  bool equal_sizes = false, strict = false;
  int read_threads = 8;
  std::optional<int> prefetch_queue_depth = {};
  int batch_size = 1;  ///< at least 1
};

/** @throws std::invalid_argument where an argument has no such value, or another forbids it */
EngineOptions engine_options(const ReadingArguments &arguments, uint64_t cache_bytes);

/** All but where the files are, and what a plan needs to know of them. @throws std::invalid_argument as above */
CatalogueOptions listing_options(const ReadingArguments &arguments);

}  // namespace dali_l3::loader
