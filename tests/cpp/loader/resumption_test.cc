// Going on from checkpoints: what is refused, and that other shards deliver the rest of an epoch exactly once.
#include "resumption.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "cancellation.h"
#include "dataset/fingerprint.h"
#include "orders.h"
#include "plans/random.h"
#include "plans/rest_plan.h"
#include "testing.h"

using namespace dali_l3::loader;

namespace {

constexpr int64_t kSeed = 5;

Catalogue catalogue(uint64_t size, uint64_t formats = 3) {
  Catalogue made;
  for (uint64_t i = 0; i < size; i++) {
    Entry entry;
    entry.file = {.path = std::to_string(i), .size = 1 + 1000 * (i * i % 31)};
    entry.format = static_cast<FileFormat>(1 + i * i % formats);
    made.entries.push_back(std::move(entry));
  }
  return made;
}

// ---- What is delivered ----------------------------------------------------------------------------------------------

// A reader of some kind, for a world.
using World = std::function<Sampling(const ShardOptions &)>;

const std::map<std::string, World> kWorlds = {
    {"in order", [](const ShardOptions &shards) { return multi_format_sampling({.shards = shards}); }},
    {"random_shuffle",
     [](const ShardOptions &shards) {
       return multi_format_sampling({.shards = shards, .random_shuffle = true, .initial_fill = 5});
     }},
    {"shuffle_after_epoch",
     [](ShardOptions shards) {
       shards.stick_to_shard = false;
       return multi_format_sampling({.shards = shards, .shuffle_after_epoch = true, .checkpointing = true});
     }},
    {"mix in order",
     [](const ShardOptions &shards) { return multi_format_sampling({.shards = shards, .mix = "dataset"}); }},
    {"mix",
     [](const ShardOptions &shards) {
       return multi_format_sampling({.shards = shards, .mix = "dataset", .random_shuffle = true});
     }},
    {"liquid",  // each shard has a part of the memory
     [](const ShardOptions &shards) {
       return liquid_sampling({.shards = shards, .cache_size = 400000 / shards.num_shards});
     }},
    {"minio",
     [](const ShardOptions &shards) {
       return liquid_sampling({.shards = shards, .policy = "minio", .cache_size = 200000});
     }},
    {"none", [](const ShardOptions &shards) { return liquid_sampling({.shards = shards, .policy = "none"}); }},
};

Checkpoint must_resume(const Checkpoint &saved, const Checkpoint &own,
                       OnMismatch on_mismatch = OnMismatch::redistribute) {
  return resume(saved, own, on_mismatch, [](const std::string &warning) { CHECK_EQUAL(warning, ""); });
}

// Reads with several worlds, one after another.
class Training {
 public:
  explicit Training(const Catalogue &catalogue) : catalogue_(catalogue) {}

  // Goes on with a world, to which `options` of its shard 0 belong.
  void go_on(const World &world, ShardOptions options) {
    const std::optional<Checkpoint> saved = shards_.empty() ? std::nullopt : std::optional(checkpoint(0));
    std::vector<Shard> next;
    for (int shard = 0; shard < options.num_shards; shard++) {
      options.shard_id = shard;
      Sampling sampling = world(options);
      Checkpoint own = first_checkpoint(sampling, catalogue_, kSeed);
      if (saved) own = must_resume(*saved, own);
      auto order = make_order(own, sampling, catalogue_);
      order->seek(own.stages.back().batches);
      next.push_back({std::move(sampling), std::move(own), std::move(order)});
    }
    shards_ = std::move(next);
  }

  Checkpoint checkpoint(int shard) const { return shards_[shard].checkpoint; }

  // Goes on with the same world.
  void restore() {
    const Checkpoint saved = checkpoint(0);
    for (Shard &shard : shards_) {
      shard.checkpoint = must_resume(saved, first_checkpoint(shard.sampling, catalogue_, kSeed), OnMismatch::raise);
      shard.order = make_order(shard.checkpoint, shard.sampling, catalogue_);
      shard.order->seek(shard.checkpoint.stages.back().batches);
    }
  }

  void deliver_batch() {
    std::vector<std::vector<PlannedSample>> &batches = delivered.emplace_back();
    for (Shard &shard : shards_) {
      shard.order->next_batch(batches.emplace_back());
      shard.checkpoint.stages.back().batches++;
      for (const PlannedSample &sample : batches.back()) {
        if (!sample.padding) times_[sample.epoch].resize(catalogue_.entries.size());
        if (!sample.padding) times_[sample.epoch][sample.entry]++;
      }
    }
  }

  // The first epoch that some shard has not completed.
  int64_t epoch() const {
    int64_t epoch = INT64_MAX;
    for (const Shard &shard : shards_)
      epoch = std::min(epoch, shard.order->place_of(shard.checkpoint.stages.back().batches).epoch);
    return epoch;
  }

  // Whether every sample has been delivered once in each complete epoch, and at most once in the others.
  bool is_exact() const {
    for (const auto &[epoch, times] : times_)
      if (std::ranges::max(times) > 1) return false;
    for (int64_t epoch = 0; epoch < this->epoch(); epoch++) {
      const auto times = times_.find(static_cast<uint32_t>(epoch));
      if (times == times_.end() ||
          std::ranges::count(times->second, 1) != static_cast<int64_t>(catalogue_.entries.size()))
        return false;
    }
    return true;
  }

  const SampleOrder &order(int shard) const { return *shards_[shard].order; }

  std::vector<std::vector<std::vector<PlannedSample>>> delivered = {};  // each batch of each shard

 private:
  struct Shard {
    Sampling sampling;
    Checkpoint checkpoint;
    std::unique_ptr<SampleOrder> order;
  };
  const Catalogue &catalogue_;
  std::vector<Shard> shards_;
  std::map<uint32_t, std::vector<int>> times_;  // that an entry was delivered in an epoch
};

ShardOptions random_shards(Random &random, int64_t size) {
  ShardOptions options;
  options.num_shards = 1 + static_cast<int>(random.below(static_cast<uint32_t>(std::min<int64_t>(size, 6))));
  options.stick_to_shard = random.below(2);
  options.pad_last_batch = random.below(2);
  options.batch_size = 1 + static_cast<int>(random.below(9));
  return options;
}

TEST(every_epoch_is_delivered_exactly_once_whatever_worlds_share_it) {
  Random random{1};
  for (int i = 0; i < 50; i++) {
    for (const auto &[name, world] : kWorlds) {
      const Catalogue dataset = catalogue(1 + random.below(60), 1 + random.below(3));
      Training training(dataset);
      const testing::Context context("%s, round %d", name.c_str(), i);
      const uint32_t worlds = 2 + random.below(2);
      for (uint32_t k = 0; k < worlds; k++) {
        training.go_on(world, random_shards(random, static_cast<int64_t>(dataset.entries.size())));
        for (uint32_t batches = random.below(20); batches > 0; batches--) training.deliver_batch();
        CHECK(training.is_exact());
      }
      for (const int64_t end = training.epoch() + 4; training.epoch() < end;) training.deliver_batch();
      CHECK(training.is_exact());
    }
  }
}

TEST(checkpoints_of_the_new_world_go_on_within_the_rest_and_behind_it) {
  const Catalogue dataset = catalogue(50);
  for (const auto &[name, world] : kWorlds) {
    for (const bool pad : {false, true}) {
      for (const int moment : {0, 1, 2, 3, 4, 9, 30}) {
        const testing::Context context("%s, pad %d, batch %d", name.c_str(), pad, moment);
        Training one(dataset), other(dataset);
        for (Training *training : {&one, &other}) {
          training->go_on(world, {.num_shards = 3, .pad_last_batch = pad, .batch_size = 4});
          for (int i = 0; i < 6; i++) training->deliver_batch();
          training->go_on(world, {.num_shards = 2, .pad_last_batch = pad, .batch_size = 3});
          for (int i = 0; i < moment; i++) training->deliver_batch();
        }
        other.restore();
        for (int i = 0; i < 20; i++) {
          one.deliver_batch();
          other.deliver_batch();
          CHECK(one.delivered.back() == other.delivered.back());
        }
      }
    }
  }
}

TEST(the_rest_is_read_from_disk_in_the_proportions_of_the_formats_and_padded) {
  const Catalogue dataset = catalogue(100, 2);
  Training training(dataset);
  training.go_on(kWorlds.at("liquid"), {.num_shards = 2, .pad_last_batch = true, .batch_size = 5});
  for (int i = 0; i < 13; i++) training.deliver_batch();  // of the second epoch 3 x 2 x 5 samples
  training.go_on(kWorlds.at("liquid"), {.num_shards = 3, .pad_last_batch = true, .batch_size = 10});
  training.delivered.clear();
  // 70 samples for 3 shards: 23, 23 and 24.
  for (int shard = 0; shard < 3; shard++) CHECK_EQUAL(training.order(shard).rest_batches(), 3);
  int64_t samples = 0, padding = 0;
  for (int i = 0; i < 3; i++) {
    training.deliver_batch();
    for (const std::vector<PlannedSample> &batch : training.delivered.back()) {
      int64_t formats[2] = {};
      for (const PlannedSample &sample : batch) {
        CHECK_EQUAL(sample.epoch, 1u);
        CHECK(!sample.hit && !sample.keep);
        (sample.padding ? padding : samples)++;
        formats[dataset.entries[sample.entry].format == FileFormat::l3]++;
      }
      if (i < 2) CHECK(std::abs(formats[0] - formats[1]) <= 1);
    }
  }
  CHECK_EQUAL(samples, 70);
  CHECK_EQUAL(padding, 20);
  training.deliver_batch();
  for (const std::vector<PlannedSample> &batch : training.delivered.back()) CHECK_EQUAL(batch.front().epoch, 2u);
}

TEST(later_epochs_are_those_of_a_reader_that_has_had_its_arguments_all_along) {
  const Catalogue dataset = catalogue(60);
  for (const auto &[name, world] : kWorlds) {
    const testing::Context context("%s", name.c_str());
    const ShardOptions options{.num_shards = 2, .pad_last_batch = true, .batch_size = 4};
    Training training(dataset), ideal(dataset);
    training.go_on(world, {.num_shards = 3, .pad_last_batch = true, .batch_size = 7});
    for (int i = 0; i < 4; i++) training.deliver_batch();
    training.go_on(world, options);
    ideal.go_on(world, options);
    while (training.epoch() < 2) training.deliver_batch();
    while (ideal.epoch() < 2) ideal.deliver_batch();
    for (int i = 0; i < 20; i++) {
      training.deliver_batch();
      ideal.deliver_batch();
      CHECK(training.delivered.back() == ideal.delivered.back());
    }
  }
}

TEST(a_rest_that_is_smaller_than_the_world) {
  const Catalogue dataset = catalogue(9);
  for (const auto &[name, world] : kWorlds) {
    for (const bool pad : {false, true}) {
      const testing::Context context("%s, pad %d", name.c_str(), pad);
      Training training(dataset);
      training.go_on(world, {.num_shards = 1, .pad_last_batch = pad, .batch_size = 4});
      training.deliver_batch();
      training.deliver_batch();
      training.go_on(world, {.num_shards = 3, .pad_last_batch = pad, .batch_size = 2});
      training.delivered.clear();
      training.deliver_batch();
      int64_t rest = 0;
      for (const std::vector<PlannedSample> &batch : training.delivered.back()) {
        for (const PlannedSample &sample : batch) rest += sample.epoch == 0 && !sample.padding;
        if (pad) CHECK_EQUAL(batch.back().epoch, 0u);
      }
      CHECK_EQUAL(rest, 1);
      for (int i = 0; i < 9; i++) training.deliver_batch();
      CHECK(training.is_exact());
    }
  }
}

TEST(epochs_may_begin_anywhere_in_a_batch) {
  for (int batch_size = 1; batch_size <= 7; batch_size++) {
    for (int64_t size = 1; size <= 15; size++) {
      for (int64_t position = 0; position < 20; position++) {
        for (int64_t epoch = 0; epoch < 9; epoch++) {
          const ShardOptions options = with_epoch_at({.batch_size = batch_size}, position, size, epoch);
          for (int64_t later = 0; later < 3; later++) {
            const int64_t begun = (position + later * size) % batch_size;
            CHECK_EQUAL(segments_of(options, size, epoch + later).first,
                        begun ? std::min(batch_size - begun, size) : 0);
          }
        }
      }
    }
  }
}

TEST(shards_that_are_too_far_apart_are_refused) {
  const Catalogue dataset = catalogue(3);
  const World world = kWorlds.at("none");
  Training training(dataset);
  training.go_on(world, {.num_shards = 2, .batch_size = 1});  // of 1 and 2 samples
  for (int i = 0; i < 1000; i++) training.deliver_batch();
  CHECK_EQUAL(testing::error_of([&] { training.go_on(world, {.batch_size = 1}); }),
              "The shards that the checkpoint tells of are 500 epochs apart: begin without it. Only "
              "pad_last_batch keeps small shards together");
}

// ---- What is refused ------------------------------------------------------------------------------------------------

const Catalogue kDataset = catalogue(20);

Checkpoint own(const Sampling &sampling, int64_t seed = kSeed) { return first_checkpoint(sampling, kDataset, seed); }

std::string refusal(const Checkpoint &saved, const Checkpoint &own, OnMismatch on_mismatch = OnMismatch::raise) {
  return testing::error_of([&] { must_resume(saved, own, on_mismatch); });
}

constexpr const char *kIgnore =
    "on_mismatch=\"ignore\" takes its batch for one of this reader: samples may be repeated or left out";

TEST(the_error_names_all_that_differs) {
  const Checkpoint saved = own(multi_format_sampling({.shards = {.num_shards = 2, .batch_size = 32}}));
  const Checkpoint other =
      own(multi_format_sampling({.shards = {.num_shards = 4, .stick_to_shard = true, .batch_size = 16}}));
  CHECK_EQUAL(
      refusal(saved, other),
      std::string("The checkpoint does not suit this reader:\n"
                  "  batch_size: 32 in the checkpoint, 16 here\n"
                  "  num_shards: 2 in the checkpoint, 4 here\n"
                  "  stick_to_shard: False in the checkpoint, True here\n"
                  "on_mismatch=\"redistribute\" deals the rest of the epoch to the shards that there are now. ") +
          kIgnore);
  const Checkpoint liquid = own(liquid_sampling({.shards = {.batch_size = 4}}));
  CHECK_EQUAL(refusal(saved, liquid, OnMismatch::redistribute),
              std::string("The checkpoint does not suit this reader:\n"
                          "  reader: multi_format in the checkpoint, liquid here\n"
                          "  batch_size: 32 in the checkpoint, 4 here\n"
                          "  num_shards: 2 in the checkpoint, 1 here\n"
                          "Use the arguments and files that it was made with. ") +
                  kIgnore);
}

// The lines of the error that say what differs, without values.
std::string differing(const Sampling &saved, const Sampling &own) {
  const std::string text =
      refusal(first_checkpoint(saved, kDataset, kSeed), first_checkpoint(own, kDataset, kSeed), OnMismatch::raise);
  std::string names;
  for (size_t line = text.find("\n  "); line != text.npos; line = text.find("\n  ", line + 1))
    names += text.substr(line + 3, text.find(':', line) - line - 3) + " ";
  return names;
}

TEST(arguments_of_multi_format_that_the_order_follows_from) {
  const MultiFormatArguments plain{.shards = {.num_shards = 2}};
  const auto changed = [](MultiFormatArguments arguments, auto change) {
    const Sampling before = multi_format_sampling(arguments);
    change(arguments);
    return differing(before, multi_format_sampling(arguments));
  };
  using Arguments = MultiFormatArguments;
  CHECK_EQUAL(changed(plain, [](Arguments &) {}), "");
  CHECK_EQUAL(changed(plain, [](Arguments &a) { a.shards.shard_id = 1; }), "");
  CHECK_EQUAL(changed(plain, [](Arguments &a) { a.shards.batch_size = 2; }), "batch_size ");
  CHECK_EQUAL(changed(plain, [](Arguments &a) { a.shards.num_shards = 3; }), "num_shards ");
  CHECK_EQUAL(changed(plain, [](Arguments &a) { a.shards.pad_last_batch = true; }), "pad_last_batch ");
  CHECK_EQUAL(changed(plain, [](Arguments &a) { a.shards.stick_to_shard = true; }), "stick_to_shard ");
  CHECK_EQUAL(changed({}, [](Arguments &a) { a.shards.stick_to_shard = true; }), "");
  CHECK_EQUAL(changed(plain, [](Arguments &a) { a.mix = "dataset"; }), "mix ");
  CHECK_EQUAL(changed(plain, [](Arguments &a) { a.random_shuffle = true; }), "random_shuffle ");
  CHECK_EQUAL(changed(plain, [](Arguments &a) { a.initial_fill = 5; }), "");
  CHECK_EQUAL(changed(plain, [](Arguments &a) { a.shuffle_after_epoch = true; }), "shuffle_after_epoch ");
  CHECK_EQUAL(changed(plain, [](Arguments &a) { a.shuffle_after_epoch_seed = 5; }), "");
  CHECK_EQUAL(changed(plain, [](Arguments &a) { a.checkpointing = true; }), "");

  Arguments shuffled = plain;
  shuffled.random_shuffle = true;
  CHECK_EQUAL(changed(shuffled, [](Arguments &a) { a.initial_fill = 5; }), "initial_fill ");
  CHECK_EQUAL(changed(shuffled, [](Arguments &a) { a.initial_fill = 1024; }), "");
  Arguments after = plain;
  after.shuffle_after_epoch = true;
  CHECK_EQUAL(changed(after, [](Arguments &a) { a.shuffle_after_epoch_seed = 5; }), "shuffle_after_epoch_seed ");
  CHECK_EQUAL(changed(after, [](Arguments &a) { a.shuffle_after_epoch_seed = 524287; }), "");
  CHECK_EQUAL(changed(after, [](Arguments &a) { a.epoch_seed_has_32_bits = true; }), "shuffle_after_epoch_seed ");
  CHECK_EQUAL(changed(after, [](Arguments &a) { a.checkpointing = true; }), "enable_checkpointing ");
  Arguments mixed = plain;
  mixed.mix = "dataset";
  CHECK_EQUAL(changed(mixed, [](Arguments &a) { a.random_shuffle = true; }), "random_shuffle ");
  CHECK_EQUAL(changed(mixed, [](Arguments &a) { a.shuffle_after_epoch = true; }), "random_shuffle ");
  CHECK_EQUAL(changed(mixed, [](Arguments &a) { a.shards.stick_to_shard = true; }), "");
}

TEST(arguments_of_liquid_that_the_order_follows_from) {
  const auto changed = [](const char *policy, auto change) {
    LiquidArguments arguments{.shards = {.num_shards = 2}, .policy = policy};
    const Sampling before = liquid_sampling(arguments);
    change(arguments);
    return differing(before, liquid_sampling(arguments));
  };
  using Arguments = LiquidArguments;
  for (const char *policy : {"liquid", "minio", "none"}) {
    const bool is_liquid = policy == std::string("liquid");
    CHECK_EQUAL(changed(policy, [](Arguments &) {}), "");
    CHECK_EQUAL(changed(policy, [](Arguments &a) { a.shards.batch_size = 2; }), "batch_size ");
    CHECK_EQUAL(changed(policy, [](Arguments &a) { a.shards.num_shards = 3; }), "num_shards ");
    CHECK_EQUAL(changed(policy, [](Arguments &a) { a.shards.pad_last_batch = true; }), "pad_last_batch ");
    CHECK_EQUAL(changed(policy, [](Arguments &a) { a.shards.stick_to_shard = true; }), "");
    CHECK_EQUAL(changed(policy, [](Arguments &a) { a.cache_size = 5000; }), is_liquid ? "cache_size " : "");
    CHECK_EQUAL(changed(policy, [](Arguments &a) { a.policy = a.policy == "none" ? "minio" : "none"; }), "policy ");
  }
  CHECK_EQUAL(changed("liquid", [](Arguments &a) { a.read_order = "sequential"; }), "read_order ");
}

TEST(datasets_that_differ) {
  const auto changed = [](bool liquid, auto change) {
    Catalogue other = catalogue(20);
    std::vector<Entry> entries(other.entries.begin(), other.entries.end());
    change(other, entries);
    other.entries = {};
    for (const Entry &entry : entries) other.entries.push_back(entry);
    const Sampling sampling = liquid ? liquid_sampling({.shards = {}}) : multi_format_sampling({.shards = {}});
    const std::string text = refusal(own(sampling), first_checkpoint(sampling, other, kSeed), OnMismatch::redistribute);
    return text.substr(0, text.find("\nUse"));
  };
  const std::string start = "The checkpoint does not suit this reader:\n  ";
  for (const bool liquid : {false, true}) {
    CHECK_EQUAL(changed(liquid, [](Catalogue &, std::vector<Entry> &) {}), "");
    CHECK_EQUAL(changed(liquid, [](Catalogue &, std::vector<Entry> &e) { e.pop_back(); }),
                start + "files: 20 in the checkpoint, 19 here");
    CHECK_EQUAL(changed(liquid, [](Catalogue &, std::vector<Entry> &e) { e[7].file.path = "x"; }),
                start + "names of the files: not those in the checkpoint");
    CHECK_EQUAL(changed(liquid, [](Catalogue &, std::vector<Entry> &e) { std::swap(e[2].file.path, e[3].file.path); }),
                start + "names of the files: not those in the checkpoint");
    CHECK_EQUAL(changed(liquid, [](Catalogue &, std::vector<Entry> &e) { e[19].label = 1; }),
                start + "labels of the files: not those in the checkpoint");
    CHECK_EQUAL(changed(liquid,
                        [](Catalogue &c, std::vector<Entry> &) {
                          c.label_columns = 1;
                          c.label_values.own().assign(20, 1);
                        }),
                start + "labels of the files: not those in the checkpoint");
    // Where the order does not follow from formats and sizes, nobody may have asked for them.
    CHECK_EQUAL(changed(liquid, [](Catalogue &, std::vector<Entry> &e) { e[0].format = FileFormat::gif; }),
                liquid ? start + "formats of the files: not those in the checkpoint" : "");
    CHECK_EQUAL(
        changed(liquid, [](Catalogue &, std::vector<Entry> &e) { e[0].companions = {{.path = "mask", .size = 5000}}; }),
        liquid ? start + "sizes of the files: not those in the checkpoint" : "");
    CHECK_EQUAL(changed(liquid, [](Catalogue &, std::vector<Entry> &e) { e[0].file.size++; }), "");  // as many pages
  }
}

TEST(names_are_told_apart_where_they_meet) {
  Catalogue one, other;
  for (const char *path : {"ab", "c"}) one.entries.push_back("", path, 0);
  for (const char *path : {"a", "bc"}) other.entries.push_back("", path, 0);
  CHECK(fingerprint(one, false, false) != fingerprint(other, false, false));
}

TEST(ignoring_keeps_the_number_of_the_batch_and_warns) {
  const Sampling sampling = liquid_sampling({.shards = {.shard_id = 1, .num_shards = 2, .batch_size = 4}});
  Checkpoint saved = own(multi_format_sampling({.shards = {}}), 77);
  saved.stages.back().batches = 9;
  std::string warning;
  const Checkpoint resumed =
      resume(saved, own(sampling), OnMismatch::ignore, [&](const std::string &text) { warning += text; });
  CHECK_EQUAL(warning,
              "The reader goes on from a checkpoint that does not suit it (on_mismatch=\"ignore\"):\n"
              "  reader: multi_format in the checkpoint, liquid here\n"
              "  batch_size: 1 in the checkpoint, 4 here\n"
              "  num_shards: 1 in the checkpoint, 2 here");
  Checkpoint expected = own(sampling, 77);
  expected.stages.back().batches = 9;
  CHECK(resumed == expected);
}

TEST(the_checkpoint_of_another_shard_serves_with_its_seed) {
  const auto of = [](int shard, int64_t seed, int shards = 2) {
    return own(multi_format_sampling({.shards = {.shard_id = shard, .num_shards = shards}}), seed);
  };
  CHECK(must_resume(of(0, 1), of(0, 2), OnMismatch::raise) == of(0, 1));
  CHECK(must_resume(of(0, 1), of(1, 1), OnMismatch::raise) == of(1, 1));
  CHECK_EQUAL(refusal(of(0, 1), of(1, 2)),
              "The checkpoint was made with the seed 1, and this reader has 2. To go on from the checkpoint of another "
              "shard, all shards need one seed, before and after: give it to the reader or the pipeline");
  CHECK_EQUAL(refusal(of(0, 1), of(1, 2, 3), OnMismatch::redistribute),
              "The checkpoint was made with the seed 1, and this reader has 2. To share out the rest of an epoch, all "
              "shards need one seed, before and after: give it to the reader or the pipeline");
  CHECK_EQUAL(refusal(of(1, 1), of(1, 1, 3), OnMismatch::redistribute),
              "This is the checkpoint of shard 1. Use that of shard 0 for all shards: they share out what it has left "
              "of the epoch");
  CHECK_EQUAL(must_resume(of(0, 1, 1), of(1, 2, 3)).seed, 1);  // one shard has but one seed
}

TEST(checkpoints_that_tell_nonsense_are_refused) {
  const Sampling sampling = liquid_sampling({.shards = {.batch_size = 2}});
  Checkpoint saved = own(sampling);
  const auto error = [&](const char *name, const char *value) {
    Checkpoint changed = saved;
    for (Setting &setting : changed.stages.back().arguments)
      if (setting.name == name) setting.value = value;
    std::erase_if(changed.stages.back().arguments, [&](const Setting &setting) { return setting.value.empty(); });
    const Sampling other = liquid_sampling({.shards = {.batch_size = 3}});
    return testing::error_of([&] { make_order(must_resume(changed, own(other)), other, kDataset); });
  };
  const std::string start = "The checkpoint does not suit this reader: it has no such value of ";
  CHECK_EQUAL(error("batch_size", "2"), "");
  CHECK_EQUAL(error("batch_size", "2x"), start + "batch_size");
  CHECK_EQUAL(error("batch_size", "99999999999"), start + "batch_size");
  CHECK_EQUAL(error("batch_size", "0"), "The batch size is 0, but must be at least 1");
  CHECK_EQUAL(error("num_shards", "21"), "There are fewer samples (20) than shards (21)");
  CHECK_EQUAL(error("num_shards", "-1"), "num_shards is -1, but must be at least 1");
  CHECK_EQUAL(error("pad_last_batch", "yes"), start + "pad_last_batch");
  CHECK_EQUAL(error("pad_last_batch", ""), start + "pad_last_batch");
  CHECK_EQUAL(error("cache_size", "-1"), "cache_size is -1 bytes, but must not be negative");

  saved.stages.back().batches = INT64_MAX;
  CHECK_EQUAL(error("batch_size", "2"),
              "The checkpoint tells of 1 shard, each of which has delivered 9223372036854775807 batches of 2: to find "
              "what is left would take too long. Begin without it");
  Checkpoint empty = own(sampling);
  empty.stages.back().arguments.clear();
  CHECK_EQUAL(refusal(empty, own(sampling)),
              "The checkpoint does not suit this reader: it lacks arguments. Begin without it");
}

TEST(checkpoints_that_would_take_too_long_are_refused) {
  const Sampling sampling =
      multi_format_sampling({.shards = {.num_shards = 2}, .shuffle_after_epoch = true, .checkpointing = true});
  // Of some worlds, one after another.
  const auto saved = [&](const char *name, const char *value, int64_t batches, size_t worlds = 1) {
    Checkpoint checkpoint = own(sampling);
    Stage stage = checkpoint.stages.back();
    stage.batches = batches;
    std::ranges::find(stage.arguments, name, &Setting::name)->value = value;
    checkpoint.stages.assign(worlds + 1, stage);
    return checkpoint;
  };
  const auto error = [&](const Checkpoint &saved, const Catalogue &dataset = kDataset) {
    return testing::error_of([&] { make_order(saved, sampling, dataset); });
  };
  const auto too_long = [](const char *shards, const char *delivered) {
    return std::string("The checkpoint tells of ") + shards + " shards, each of which has delivered " + delivered +
           ": to find what is left would take too long. Begin without it";
  };
  CHECK_EQUAL(error(saved("num_shards", "2", 100)), "");
  CHECK_EQUAL(error(saved("num_shards", "2", int64_t{1} << 35)), too_long("2", "34359738368 batches of 1"));
  CHECK_EQUAL(error(saved("batch_size", "2147483647", 20)), too_long("2", "20 batches of 2147483647"));
  CHECK_EQUAL(error(saved("num_shards", "262145", 0), catalogue(262145)), too_long("262145", "0 batches of 1"));
  // Each alone would be allowed.
  CHECK_EQUAL(error(saved("num_shards", "2", int64_t{1} << 33, 4)), too_long("2", "8589934592 batches of 1"));
  CHECK_EQUAL(error(saved("num_shards", "2", 1, 999)), "");
  CHECK_EQUAL(error(saved("num_shards", "2", 1, 1000)),
              "The checkpoint holds the arguments of 1001 runs, more than the 1000 allowed: begin without it");
  CHECK_EQUAL(error(saved("num_shards", "20", int64_t{1} << 25)),
              "There is no batch 33554432: a reader delivers up to 2^36 samples and 2^24 epochs");
  CHECK_EQUAL(error(saved("enable_checkpointing", "False", 1)),
              "The checkpoint does not suit this reader: it has no such value of enable_checkpointing");
}

TEST(going_on_from_a_checkpoint_can_be_cancelled) {
  std::atomic<bool> cancelled = false;
  for (const auto &[name, world] : kWorlds) {
    const testing::Context context("%s", name.c_str());
    const Sampling sampling = world({.num_shards = 2, .batch_size = 3});
    Checkpoint saved = own(sampling);
    saved.stages.back().batches = 20;
    const Sampling other = world({.num_shards = 3, .batch_size = 4});
    const Checkpoint resumed = must_resume(saved, own(other));
    const auto error = [&] { return testing::error_of([&] { make_order(resumed, other, kDataset); }); };
    {
      const CancellationScope scope(cancelled);
      CHECK_EQUAL(error(), "");
      cancelled = true;
      CHECK_EQUAL(error(), "The planning of epochs was interrupted");
    }
    CHECK_EQUAL(error(), "");
    cancelled = false;
  }
}

TEST(seeking_can_be_cancelled_where_epochs_are_planned_one_after_another) {
  const std::map<std::string, Sampling> samplings = {
      {"random_shuffle", multi_format_sampling({.shards = {}, .random_shuffle = true})},
      {"liquid", liquid_sampling({.shards = {}, .cache_size = 50000})},
      {"weights", multi_format_sampling({.shards = {}, .weighting = {.epoch_size = 7}})}};
  std::atomic<bool> cancelled = false;
  for (const auto &[name, sampling] : samplings) {
    const testing::Context context("%s", name.c_str());
    const auto order = make_order(own(sampling), sampling, kDataset);
    const std::vector<uint32_t> expected = next_entries(*make_order(own(sampling), sampling, kDataset), 60);
    const std::span batches(expected);
    const size_t batch = expected.size() / 60;
    for (const int64_t place : {1000, 15}) {
      const auto error = [&] { return testing::error_of([&] { order->seek(place); }); };
      order->seek(40);
      {
        const CancellationScope scope(cancelled);
        cancelled = true;
        CHECK_EQUAL(error(), "The planning of epochs was interrupted");
      }
      CHECK(std::ranges::equal(next_entries(*order, 20), batches.subspan(40 * batch)));  // from where it was
      CHECK_EQUAL(error(), "");
      cancelled = false;
    }
    CHECK(std::ranges::equal(next_entries(*order, 3), batches.subspan(15 * batch, 3 * batch)));
  }
}

TEST(whatever_a_checkpoint_tells_it_is_read_or_refused) {
  const char *const values[] = {"",     "0",     "1",       "-1",     "7",
                                "20",   "50",    "1e3",     "False",  "True",
                                "None", "minio", "dataset", "liquid", "9223372036854775807"};
  Random random{3};
  int read = 0;
  for (int i = 0; i < 1000; i++) {
    const Sampling sampling = i % 2 ? liquid_sampling({.shards = {.num_shards = 2, .batch_size = 3}})
                                    : multi_format_sampling({.shards = {.num_shards = 2, .batch_size = 3},
                                                             .random_shuffle = random.below(2) == 1});
    Checkpoint checkpoint = own(sampling);
    for (uint32_t stages = 1 + random.below(2); stages > 0; stages--) {
      Stage &stage = *checkpoint.stages.insert(checkpoint.stages.begin(), checkpoint.stages.back());
      stage.batches = random.below(20);
      for (uint32_t changes = random.below(3); changes > 0; changes--)
        stage.arguments[random.below(stage.arguments.size())].value = values[random.below(std::size(values))];
    }
    // Any other error than those of error_of() ends the test.
    read += testing::error_of([&] { make_order(checkpoint, sampling, kDataset)->seek(0); }).empty();
  }
  CHECK(read > 100 && read < 900);
}

TEST(on_mismatch_has_three_values) {
  CHECK(parse_on_mismatch("redistribute") == OnMismatch::redistribute);
  CHECK_EQUAL(testing::error_of([] { parse_on_mismatch("resume"); }),
              "on_mismatch is \"resume\", but must be \"raise\", \"redistribute\" or \"ignore\"");
}

}  // namespace
