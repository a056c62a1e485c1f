#include "checkpoint.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "dataset/checksum.h"

namespace dali_l3::loader {
namespace {

// Changes with what the text means.
constexpr const char *kVersion = "dali_l3-reader=4";

std::string word(const std::string &name, const std::string &value) { return " " + name + "=" + value; }

std::string words(const Settings &settings) {
  std::string text;
  for (const auto &[name, value] : settings) text += word(name, value);
  return text;
}

// Reads as much as it can: whether that is all, writing it again will tell.
Checkpoint read(std::string_view text) {
  Checkpoint checkpoint;
  const auto parse = [](const std::string &value, auto &number) {
    std::from_chars(value.data(), value.data() + value.size(), number);
  };
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    const size_t equals = std::min(word.find('='), word.size());
    Setting setting{std::string(word.substr(0, equals)), std::string(word.substr(std::min(equals + 1, word.size())))};
    if (word == kVersion || setting.name == "crc32") continue;
    if (setting.name == "stage") {
      parse(setting.value, checkpoint.stages.emplace_back().batches);
    } else if (!checkpoint.stages.empty()) {
      checkpoint.stages.back().arguments.push_back(std::move(setting));
    } else if (setting.name == "seed") {
      parse(setting.value, checkpoint.seed);
    } else if (setting.name == "shard_id") {
      parse(setting.value, checkpoint.shard_id);
    } else {
      checkpoint.dataset.push_back(std::move(setting));
    }
  }
  return checkpoint;
}

}  // namespace

std::string write_checkpoint(const Checkpoint &checkpoint) {
  std::string text = kVersion;
  text += word("seed", std::to_string(checkpoint.seed)) + word("shard_id", std::to_string(checkpoint.shard_id));
  text += words(checkpoint.dataset);
  for (const Stage &stage : checkpoint.stages)
    text += word("stage", std::to_string(stage.batches)) + words(stage.arguments);
  Checksum checksum;
  checksum.add(text.data(), text.size());
  return text + word("crc32", checksum.text());
}

Checkpoint parse_checkpoint(std::string_view text) {
  // One text for each state: whatever is wrong with a text, it is not the one of what it says.
  Checkpoint checkpoint = read(text);
  const bool is_sound = !checkpoint.stages.empty() &&
                        std::ranges::all_of(checkpoint.stages, [](const Stage &stage) { return stage.batches >= 0; });
  if (!is_sound || write_checkpoint(checkpoint) != text)
    throw std::invalid_argument(
        "This is not the checkpoint of a reader of this version of dali_l3, or it is damaged: begin without it, or use "
        "the version that made it");
  return checkpoint;
}

}  // namespace dali_l3::loader
