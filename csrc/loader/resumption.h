// Going on from a checkpoint: whether it suits the reader, and the order that follows from it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "arguments/sampling.h"
#include "checkpoint.h"
#include "dataset/catalogue.h"
#include "plans/sample_order.h"

namespace dali_l3::loader {

/** What to do about a checkpoint of another dataset, or of a reader with other arguments. */
enum class OnMismatch {
  raise,
  redistribute,  ///< deals the rest of the epoch to the shards that there are now
  ignore,        ///< takes its batch for one of this reader
};

/** @throws std::invalid_argument if there is no such value of the argument on_mismatch */
OnMismatch parse_on_mismatch(const std::string &name);

/** The checkpoint of a reader that has delivered nothing yet. */
Checkpoint first_checkpoint(const Sampling &sampling, const Catalogue &catalogue, int64_t seed);

/**
 * The checkpoint that a reader goes on with if it is restored from another one, `saved`: that of its own shard, with
 * its own arguments in the last stage.
 *
 * @param own the first_checkpoint() of the reader
 * @param warn is called with what OnMismatch::ignore ignores
 * @throws std::invalid_argument if the saved one does not suit the reader: what differs, and what to do about it
 */
Checkpoint resume(const Checkpoint &saved, const Checkpoint &own, OnMismatch on_mismatch,
                  const std::function<void(const std::string &)> &warn);

/**
 * The order of the reader that has this checkpoint, from the beginning of its last stage.
 *
 * @param sampling the reader's
 * @throws std::invalid_argument or std::runtime_error if the checkpoint's arguments do not suit the catalogue
 */
std::unique_ptr<SampleOrder> make_order(const Checkpoint &checkpoint, const Sampling &sampling,
                                        const Catalogue &catalogue);

}  // namespace dali_l3::loader
