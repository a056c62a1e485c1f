#include "resumption.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "dataset/counted.h"
#include "dataset/fingerprint.h"
#include "plans/rest_plan.h"

namespace dali_l3::loader {
namespace {

// Arguments that may differ where the rest of an epoch is dealt to other shards.
constexpr const char *kOfTheWorld[] = {"batch_size", "num_shards", "stick_to_shard", "pad_last_batch", "cache_size"};

// Bounds of what is planned again to find the rest of an epoch. What lies beyond comes from a checkpoint that was made
// by hand.
constexpr size_t kMostStages = 1000;
constexpr double kMostReplayed = 0x1p36;  // samples, which takes minutes

struct Difference {
  std::string name, text;
};

// The value of a name; nullptr without it.
const std::string *find(const Settings &settings, const std::string &name) {
  const auto setting = std::ranges::find(settings, name, &Setting::name);
  return setting == settings.end() ? nullptr : &setting->value;
}

// Of what both have: a setting that only one has goes with another that differs.
std::vector<Difference> differences(const Settings &saved, const Settings &own) {
  std::vector<Difference> found;
  for (const auto &[name, value] : own) {
    const std::string *theirs = find(saved, name);
    if (!theirs || *theirs == value) continue;
    found.push_back({name, name + ": " + *theirs + " in the checkpoint, " + value + " here"});
  }
  return found;
}

// Where the number of files differs, the rest of a fingerprint differs too.
std::vector<Difference> dataset_differences(const Settings &saved, const Settings &own) {
  std::vector<Difference> found = differences(saved, own);
  const auto count = std::ranges::find(found, kFiles, &Difference::name);
  if (count != found.end()) return {*count};
  for (Difference &difference : found) difference.text = difference.name + " of the files: not those in the checkpoint";
  return found;
}

bool is_of_the_world(const Difference &difference) {
  return std::ranges::find(kOfTheWorld, difference.name) != std::end(kOfTheWorld);
}

std::string listed(const std::vector<Difference> &differences) {
  std::string text;
  for (const Difference &difference : differences) text += "\n  " + difference.text;
  return text;
}

// Throws unless all shards of the checkpoint's world draw by its seed. Those that were restored from one checkpoint do.
void require_common_seed(const Checkpoint &saved, const Checkpoint &own, const std::string &purpose) {
  if (saved.stages.size() > 1 || saved.seed == own.seed) return;
  throw std::invalid_argument("The checkpoint was made with the seed " + std::to_string(saved.seed) +
                              ", and this reader has " + std::to_string(own.seed) + ". " + purpose +
                              ", all shards need one seed, before and after: give it to the reader or the pipeline");
}

// Throws unless there can be such a checkpoint of a catalogue, and what its stages leave can be found in time.
void check_stages(const Checkpoint &checkpoint, const Sampling &sampling, int64_t catalogue_size) {
  if (checkpoint.stages.size() > kMostStages)
    throw std::runtime_error("The checkpoint holds the arguments of " + std::to_string(checkpoint.stages.size()) +
                             " runs, more than the " + std::to_string(kMostStages) + " allowed: begin without it");
  double replayed = 0;
  for (size_t i = 0; i + 1 < checkpoint.stages.size(); i++) {
    const auto &[batches, arguments] = checkpoint.stages[i];
    const ShardOptions shards = sampling.with(arguments).shards;
    check_shards(shards, catalogue_size);
    const double delivered = static_cast<double>(batches) * shards.batch_size;
    replayed += shards.num_shards * (static_cast<double>(catalogue_size) + delivered);
    if (replayed > kMostReplayed)
      throw std::runtime_error("The checkpoint tells of " + counted(shards.num_shards, "shard") + ", each of which " +
                               "has delivered " + std::to_string(batches) + " batches of " +
                               std::to_string(shards.batch_size) +
                               ": to find what is left would take too long. Begin without it");
  }
}

// The order of one shard of a world that begins with the rest of another; null: it begins with nothing delivered.
std::unique_ptr<SampleOrder> shard_order(const Sampling &sampling, int shard_id, const Catalogue &catalogue,
                                         int64_t seed, const Rest *rest) {
  ShardOptions shards = sampling.shards;
  shards.shard_id = shard_id;
  const auto make_plan = [&](const ShardOptions &options) { return sampling.make_plan(catalogue, seed, options); };
  std::unique_ptr<EpochPlan> plan;
  if (rest) {
    std::vector<FileFormat> formats =
        sampling.needs_formats ? formats_of(catalogue) : std::vector<FileFormat>(catalogue.entries.size());
    plan = std::make_unique<RestPlan>(*rest, shards, std::move(formats), sampling.shuffled, seed, make_plan);
  } else {
    plan = make_plan(shards);
  }
  return std::make_unique<SampleOrder>(shards, catalogue.entries.size(), std::move(plan));
}

}  // namespace

OnMismatch parse_on_mismatch(const std::string &name) {
  if (name == "raise") return OnMismatch::raise;
  if (name == "redistribute") return OnMismatch::redistribute;
  if (name == "ignore") return OnMismatch::ignore;
  throw std::invalid_argument("on_mismatch is \"" + name + R"(", but must be "raise", "redistribute" or "ignore")");
}

Checkpoint first_checkpoint(const Sampling &sampling, const Catalogue &catalogue, int64_t seed) {
  return {.seed = seed,
          .shard_id = sampling.shards.shard_id,
          .dataset = fingerprint(catalogue, sampling.needs_formats, sampling.follows_sizes),
          .stages = {{.arguments = sampling.settings}}};
}

Checkpoint resume(const Checkpoint &saved, const Checkpoint &own, OnMismatch on_mismatch,
                  const std::function<void(const std::string &)> &warn) {
  const Settings &arguments = own.stages.back().arguments;
  std::vector<Difference> found = differences(saved.stages.back().arguments, arguments);
  const bool same_world = found.empty();
  std::ranges::copy(dataset_differences(saved.dataset, own.dataset), std::back_inserter(found));

  Checkpoint resumed = saved;
  resumed.shard_id = own.shard_id;
  if (on_mismatch == OnMismatch::ignore) {
    if (!found.empty())
      warn("The reader goes on from a checkpoint that does not suit it (on_mismatch=\"ignore\"):" + listed(found));
    resumed.dataset = own.dataset;
    resumed.stages.back().arguments = arguments;
    return resumed;
  }
  const bool weighted = draws_by_weights(arguments);
  const bool only_world = std::ranges::all_of(found, is_of_the_world) && !weighted;
  if (!found.empty() && (on_mismatch == OnMismatch::raise || !only_world)) {
    throw std::invalid_argument(
        "The checkpoint does not suit this reader:" + listed(found) +
        (only_world ? "\non_mismatch=\"redistribute\" deals the rest of the epoch to the shards that there are now"
         : weighted ? "\nUse the arguments and files that it was made with; epochs of weights are not shared out anew"
                    : "\nUse the arguments and files that it was made with") +
        ". on_mismatch=\"ignore\" takes its batch for one of this reader: samples may be repeated or left out");
  }
  if (same_world) {
    if (saved.stages.back().arguments != arguments || saved.dataset != own.dataset)
      throw std::invalid_argument("The checkpoint does not suit this reader: it lacks arguments. Begin without it");
    if (saved.shard_id != own.shard_id)
      require_common_seed(saved, own, "To go on from the checkpoint of another shard");
    return resumed;
  }
  // The one of shard 0 for all: were each shard to take its own, nobody would notice that their seeds or batches
  // differ.
  if (saved.shard_id != 0) {
    throw std::invalid_argument("This is the checkpoint of shard " + std::to_string(saved.shard_id) +
                                ". Use that of shard 0 for all shards: they share out what it has left of the epoch");
  }
  const std::string *shards = find(saved.stages.back().arguments, "num_shards");
  if (!shards || *shards != "1") require_common_seed(saved, own, "To share out the rest of an epoch");
  resumed.stages.push_back({.arguments = arguments});
  return resumed;
}

std::unique_ptr<SampleOrder> make_order(const Checkpoint &checkpoint, const Sampling &sampling,
                                        const Catalogue &catalogue) {
  check_stages(checkpoint, sampling, static_cast<int64_t>(catalogue.entries.size()));
  Rest rest;
  const Rest *before = nullptr;
  for (size_t i = 0; i + 1 < checkpoint.stages.size(); i++) {
    const auto &[batches, arguments] = checkpoint.stages[i];
    const Sampling earlier = sampling.with(arguments);
    const ShardOptions &shards = earlier.shards;
    rest = find_rest(shards.num_shards, shards.pad_last_batch || shards.num_shards == 1, batches,
                     [&](int shard) { return shard_order(earlier, shard, catalogue, checkpoint.seed, before); });
    before = &rest;
  }
  return shard_order(sampling, checkpoint.shard_id, catalogue, checkpoint.seed, before);
}

}  // namespace dali_l3::loader
