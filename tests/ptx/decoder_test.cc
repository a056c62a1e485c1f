// The decoder for CUDA devices, its kernels as nvcc compiled them and its host code, against the decoder for the CPU.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <thread>
#include <utility>

#include "batch_cases.h"
#include "cuda_objects.h"
#include "data_files.h"
#include "fast_tiles.h"
#include "l3/l3_cuda.h"
#include "testing.h"

using namespace l3;
using ptx::Order;
using ptx::reset_device;
using ptx::Stream;
using ptx::runtime::Live;
using ptx::runtime::Streams;

namespace {

// `make test-ptx-full` asks for more rounds of tests with random images.
uint32_t rounds(uint32_t count) {
  const char *const times = std::getenv("L3_PTX_ROUNDS");
  return count * (times ? uint32_t(std::atoi(times)) : 1);
}

class Decoder {
 public:
  Decoder() {
    l3_error error{};
    if (l3_cuda_create(&decoder_, &error)) testing::fail(__FILE__, __LINE__, error.message);
  }
  ~Decoder() { destroy(); }
  Decoder(const Decoder &) = delete;
  Decoder &operator=(const Decoder &) = delete;

  operator l3_cuda_decoder *() const { return decoder_; }
  void destroy() { l3_cuda_destroy(std::exchange(decoder_, nullptr)); }

 private:
  l3_cuda_decoder *decoder_ = nullptr;
};

// Images in device memory, which checks what becomes of them.
class Batch {
 public:
  explicit Batch(const std::vector<Wanted> &wanted, bool verify = false) : verify_(verify) {
    for (const Wanted &one : wanted) {
      Destination expected(one);
      const l3_output output = expected.output();
      statuses_.push_back(l3_decode(&expected.file, &one.region, &output, verify ? L3_VERIFY : 0, nullptr));
      expected_.push_back(statuses_.back() ? Destination(one) : std::move(expected));
      memory_.push_back(std::make_unique<ptx::DeviceBuffer>(8 * expected_.back().memory.size()));
    }
  }
  Batch(const Batch &) = delete;
  Batch &operator=(const Batch &) = delete;

  // Enqueues everything but the check. Broken images are left out.
  void decode(l3_cuda_decoder *decoder, cudaStream_t stream, l3_parallel_for parallel = nullptr) {
    l3_error error{};
    std::vector<l3_error> errors(expected_.size());
    l3_cuda_options options{};
    options.parallel = parallel;
    options.errors = errors.data();
    size_t failed = 0;
    if (try_decode(decoder, stream, options, &failed, &error)) testing::fail(__FILE__, __LINE__, error.message);
    CHECK_EQUAL(failed, errors.size());
    for (size_t i = 0; i < errors.size(); i++) CHECK_EQUAL(errors[i].status, statuses_[i]);
  }

  l3_status try_decode(l3_cuda_decoder *decoder, cudaStream_t stream, l3_cuda_options options, size_t *failed,
                       l3_error *error) {
    std::vector<l3_cuda_image> images;
    for (size_t i = 0; i < expected_.size(); i++) {
      const Destination &one = expected_[i];
      memory_[i]->fill(0xA5, stream);
      images.push_back({one.file, one.wanted.region, one.output(memory_[i]->data())});
    }
    options.verify = verify_;
    return l3_cuda_decode(decoder, images.data(), images.size(), &options, stream, failed, error);
  }

  // Waits; the pixels must be right, and all around them untouched.
  void check(const Stream &stream) const {
    stream.wait();
    for (size_t i = 0; i < expected_.size(); i++) {
      const Destination &one = expected_[i];
      const l3_info &info = one.file.info;
      const testing::Context context(
          "image %zu: profile %u, %u bits, %u channels, %u x %u; region %u x %u at (%u, %u), color %d, sample %d", i,
          info.profile, info.bits, info.channels, info.width, info.height, one.wanted.region.width,
          one.wanted.region.height, one.wanted.region.x, one.wanted.region.y, int(one.wanted.color),
          int(one.wanted.sample));
      std::vector<uint64_t> actual(one.memory.size());
      memory_[i]->copy_to(actual.data(), stream);
      CHECK(actual == one.memory);
    }
  }

  const std::vector<l3_status> &statuses() const { return statuses_; }
  size_t accepted() const { return size_t(std::count(statuses_.begin(), statuses_.end(), L3_OK)); }

 private:
  const bool verify_;
  std::vector<l3_status> statuses_;  // of the decoder for the CPU
  std::vector<Destination> expected_;
  std::vector<std::unique_ptr<ptx::DeviceBuffer>> memory_;
};

// One batch on a device as new.
void check_alone(const std::vector<Wanted> &wanted, uint64_t seed, Order order = Order::kRandom, bool verify = false) {
  reset_device(Streams::kLate, seed, order);
  const Stream stream;
  Batch batch(wanted, verify);
  Decoder decoder;
  batch.decode(decoder, stream);
  batch.check(stream);
}

std::vector<Bytes> some_files(Random &random, uint32_t most) {
  std::vector<Bytes> files;
  for (uint32_t i = random.between(1, most); i; i--) files.push_back(some_file(random));
  return files;
}

std::vector<Wanted> some_of_all(Random &random, const std::vector<Bytes> &files) {
  std::vector<Wanted> wanted;
  for (const Bytes &file : files) wanted.push_back(some(random, file));
  return wanted;
}

}  // namespace

// ---- Kernels

// A file alone is the first batch of its decoder, so that a read past it is one of bytes that nobody has written.
TEST(golden_files_alone) {
  Random random(1);
  for (const DataFile &file : data_files("golden")) {
    const testing::Context context("%s", file.name.c_str());
    check_alone({whole(file.bytes), some(random, file.bytes)}, random());
  }
}

TEST(golden_files_together_in_any_order_of_threads) {
  Random random(2);
  const auto files = data_files("golden");
  for (const Order order : {Order::kFirst, Order::kLast}) {
    std::vector<Wanted> wanted;
    for (const DataFile &file : files) wanted.push_back(whole(file.bytes));
    check_alone(wanted, random(), order);
  }
}

TEST(broken_files) {
  size_t accepted = 0;
  const auto files = data_files("broken");
  for (const DataFile &file : files) {
    const testing::Context context("%s", file.name.c_str());
    l3_file stream;
    if (l3_open(file.bytes.data(), file.bytes.size(), &stream, nullptr)) continue;
    for (const bool verify : {false, true}) check_alone({whole(file.bytes)}, 3, Order::kRandom, verify);
    accepted++;
  }
  CHECK(accepted > 20);
}

// What the host accepts of damaged files stays inside its buffers, and decodes to what the CPU makes of it.
TEST(damaged_files) {
  Random random(4);
  size_t accepted = 0;
  for (uint32_t round = 0; round < rounds(200); round++) {
    const testing::Context context("round %u", round);
    const Bytes file = damaged(random, some_file(random, false));
    reset_device(Streams::kLate, random());
    const Stream stream;
    Batch batch({some(random, file)});
    Decoder decoder;
    batch.decode(decoder, stream);
    batch.check(stream);
    accepted += batch.accepted();
  }
  CHECK(accepted > 40);
}

// Without a place for the errors of all images a broken one fails its batch, before anything is enqueued.
TEST(a_broken_image_fails_its_batch) {
  Random random(11);
  const Bytes good = data_files("golden")[0].bytes, constant = some_file(random);
  Bytes broken = constant;
  broken[broken.size() / 2] ^= 1;
  reset_device(Streams::kLate);
  const Stream stream;
  Batch batch({whole(good), whole(broken), whole(good)}, true);
  CHECK_EQUAL(batch.statuses()[1], L3_ERROR_CHECKSUM);
  Decoder decoder;
  size_t failed = 0;
  CHECK_EQUAL(batch.try_decode(decoder, stream, {}, &failed, nullptr), L3_ERROR_CHECKSUM);
  CHECK_EQUAL(failed, 1u);
  CHECK_EQUAL(ptx::runtime::calls("cudaMemcpyAsync") + ptx::runtime::calls("cudaLaunchKernel"), 0u);
  Batch next({whole(good)});
  next.decode(decoder, stream);
  next.check(stream);
}

// All conversions of all kinds of images.
TEST(conversions) {
  Random random(5);
  for (const l3_profile profile : {L3_PROFILE_RAW, L3_PROFILE_PAPER, L3_PROFILE_FAST})
    for (const uint32_t bits : {8u, 16u})
      for (uint32_t channels = 1; channels <= L3_MAX_CHANNELS; channels++) {
        const Image image = make_image(random, 67, 3, channels, bits, Kind::kSlope);
        const Bytes file = encode(image, encode_options(profile));
        std::vector<Wanted> wanted;
        for (int color = L3_COLOR_NATIVE; color <= L3_COLOR_YCBCR; color++)
          for (int sample = L3_SAMPLE_NATIVE; sample <= L3_SAMPLE_F16; sample++) {
            wanted.push_back(whole(file));
            wanted.back().color = l3_color(color), wanted.back().sample = l3_sample(sample);
            wanted.back().offset = random.below(5);
          }
        check_alone(wanted, random());
      }
}

// Sizes around those of tiles, rows and warps, cut at every place of a tile.
TEST(sizes_and_regions) {
  Random random(6);
  for (const uint32_t width : {1u, 3u, 15u, 16u, 17u, 63u, 64u, 65u, 129u})
    for (const uint32_t height : {1u, 2u, 5u, 65u}) {
      const Kind kind = kKinds[random.below(std::size(kKinds))];
      std::vector<Bytes> files;
      for (const l3_profile profile : {L3_PROFILE_RAW, L3_PROFILE_FAST, L3_PROFILE_PAPER}) {
        const uint32_t bits = random.below(3) ? 8 : 16;
        files.push_back(
            encode(make_image(random, width, height, random.between(1, 4), bits, kind), encode_options(profile)));
      }
      std::vector<Wanted> wanted = some_of_all(random, files);
      for (const Bytes &file : files) wanted.push_back(whole(file));
      check_alone(wanted, random());
    }
}

// Regions that begin and end within tiles, but where 16 bytes do: rows are stored in chunks of so many.
TEST(regions_of_whole_chunks) {
  Random random(14);
  std::vector<Bytes> files;
  for (const Kind kind : {Kind::kSlope, Kind::kLabels})
    for (const uint32_t bits : {8u, 16u})
      for (uint32_t channels = 1; channels <= L3_MAX_CHANNELS; channels++)
        files.push_back(encode(make_image(random, 144, 72, channels, bits, kind), encode_options(L3_PROFILE_FAST)));
  std::vector<Wanted> wanted;
  for (const Bytes &file : files)
    for (const l3_rect &region : {l3_rect{16, 4, 96, 64}, l3_rect{48, 0, 32, 8}, l3_rect{80, 64, 64, 8}}) {
      wanted.push_back(whole(file));
      wanted.back().region = region;
    }
  check_alone(wanted, random());
}

// Tiles with and without label maps, side by side: the teams of a warp have different ones where they are converted.
TEST(label_maps_beside_others) {
  Random random(15);
  std::vector<Bytes> files;
  for (const uint32_t bits : {8u, 16u})
    for (uint32_t channels = 1; channels <= L3_MAX_CHANNELS; channels++) {
      Image image = make_image(random, 192, 80, channels, bits, Kind::kSlope);
      const Image labels = make_image(random, 192, 80, channels, bits, Kind::kLabels);
      const size_t tile = L3_TILE * image.pixel_size();
      for (size_t row = 0; row < image.pixels.size(); row += image.row_size())
        std::copy_n(labels.pixels.begin() + ptrdiff_t(row + tile), tile, image.pixels.begin() + ptrdiff_t(row + tile));
      files.push_back(encode(image, encode_options(L3_PROFILE_FAST)));
    }
  std::vector<Wanted> wanted;
  for (const Bytes &file : files)
    for (const l3_sample sample : {L3_SAMPLE_NATIVE, L3_SAMPLE_F32}) {
      wanted.push_back(whole(file));
      wanted.back().sample = sample;
    }
  check_alone(wanted, random());
}

// Palettes, indices and bitmaps that no encoder would choose.
TEST(random_tiles) {
  Random random(12);
  for (const uint32_t bits : {8u, 16u}) {
    std::vector<Bytes> files;
    for (uint32_t i = 0; i < 2 * (max_index_bits(bits) + 1) * rounds(4); i++) {
      ChannelChoice choice{};
      choice.bits = bits;
      choice.predictor = random.below(kPredictors);
      choice.index_bits = i / 2 % (max_index_bits(bits) + 1);
      choice.has_bitmap = i % 2;
      choice.shape = {random.below(2) ? 64 : random.between(1, 64), random.below(2) ? 64 : random.between(1, 64)};
      files.push_back(file_of_tile(choice, random_tile(random, choice)));
    }
    std::vector<Wanted> wanted;
    for (const Bytes &file : files) wanted.push_back(whole(file));
    check_alone(wanted, random());
  }
}

TEST(mixed_batches) {
  Random random(7);
  for (uint32_t round = 0; round < rounds(40); round++) {
    const testing::Context context("round %u", round);
    const auto files = some_files(random, 8);
    check_alone(some_of_all(random, files), random());
  }
}

// ---- Host code

// Batches of growing and shrinking size, in flight at the same time on three streams, by two decoders. Nobody waits
// before all are enqueued, and then for the latest first.
TEST(many_batches_in_flight) {
  Random random(8);
  const auto golden = data_files("golden");
  for (const Streams streams : {Streams::kLate, Streams::kAtOnce, Streams::kRandom})
    for (uint32_t round = 0; round < rounds(5); round++) {
      const testing::Context context("streams %d, round %u", int(streams), round);
      reset_device(streams, random());
      const Stream all[3];
      Decoder decoders[2];
      std::vector<std::unique_ptr<Batch>> batches;
      std::vector<uint32_t> on;
      for (uint32_t i = 0; i < 14; i++) {
        std::vector<Wanted> wanted;
        for (uint32_t images = i % 3 == 0 ? i + 1 : 2; images; images--)
          wanted.push_back(whole(golden[random.below(uint32_t(golden.size()))].bytes));
        on.push_back(random.below(3));
        batches.push_back(std::make_unique<Batch>(wanted));
        batches.back()->decode(decoders[i % 5 == 4], all[on.back()]);
      }
      for (size_t i = batches.size(); i-- > 0;) batches[i]->check(all[on[i]]);
    }
}

// The buffers grow to the largest batch; then nothing is allocated.
TEST(steady_state) {
  Random random(9);
  reset_device(Streams::kRandom, 9);
  const Stream stream;
  const auto golden = data_files("golden");
  Batch large({whole(golden[0].bytes), whole(golden[1].bytes), whole(golden[2].bytes)}),
      small({whole(golden[3].bytes)});
  Decoder decoder;
  for (uint32_t i = 0; i < 2; i++) large.decode(decoder, stream);
  const auto allocations = [] { return ptx::runtime::calls("cudaMalloc") + ptx::runtime::calls("cudaHostAlloc"); };
  const uint64_t before = allocations();
  for (uint32_t i = 0; i < 6; i++) (i % 2 ? large : small).decode(decoder, stream);
  CHECK_EQUAL(allocations(), before);
  large.check(stream);
  small.check(stream);
}

TEST(a_decoder_is_destroyed_while_it_works) {
  const auto golden = data_files("golden");
  reset_device(Streams::kLate);
  const Stream streams[2];
  Batch first({whole(golden[0].bytes)}), second({whole(golden[1].bytes)});
  {
    Decoder decoder;
    first.decode(decoder, streams[0]);
    second.decode(decoder, streams[1]);
  }
  second.check(streams[1]);
  first.check(streams[0]);
}

TEST(gathering_by_several_threads) {
  Random random(10);
  const auto files = some_files(random, 8);
  reset_device(Streams::kLate);
  const Stream stream;
  Batch batch(some_of_all(random, files));
  Decoder decoder;
  const auto in_threads = [](void *, size_t count, void (*body)(void *, size_t), void *argument) {
    std::vector<std::thread> threads;
    for (size_t i = 0; i < count; i++) threads.emplace_back(body, argument, i);
    for (std::thread &thread : threads) thread.join();
  };
  batch.decode(decoder, stream, in_threads);
  batch.check(stream);
}

// ---- Failures

// What the message of a failure says of a call that fails.
const std::map<std::string, std::string> kActions = {
    {"cudaGetDeviceCount", "there is no CUDA device"},
    {"cudaFuncGetAttributes", "this build cannot use the CUDA device"},
    {"cudaEventCreateWithFlags", "creating an event"},
    {"cudaEventSynchronize", "allocating memory for a batch"},
    {"cudaHostAlloc", "allocating memory for a batch"},
    {"cudaMalloc", "allocating memory for a batch"},
    {"cudaStreamWaitEvent", "copying a batch to the device"},
    {"cudaMemcpyAsync", "copying a batch to the device"},
    {"cudaEventRecord", "copying a batch to the device"},  // or "recording an event"
    {"cudaLaunchKernel", "launching a kernel"},
};

// Counts the calls of the code under test alone, and makes the one with a given number fail.
class FailingCall {
 public:
  explicit FailingCall(uint64_t number) : left_(number) {}

  // body() after `others` calls that are not counted.
  template <typename Body>
  auto count(uint64_t others, Body body) {
    const uint64_t before = ptx::runtime::calls() + others;
    ptx::runtime::fail_call(left_ ? before + left_ : 0);
    const auto result = body();
    ptx::runtime::fail_call(0);
    left_ -= std::min(left_, ptx::runtime::calls() - before);
    return result;
  }

  bool is_still_to_come() const { return left_ != 0; }

 private:
  uint64_t left_;
};

// The name of the call that failed, if the message says so.
std::string check_message(const l3_error &error) {
  const std::string call = ptx::runtime::failed_call(), message = error.message;
  const testing::Context context("call %s, message %s", call.c_str(), error.message);
  CHECK(!call.empty());
  if (call == "cudaEventRecord" && message.starts_with("recording an event")) return call;
  CHECK(kActions.contains(call));
  CHECK(message.starts_with(kActions.at(call)));
  return call;
}

// Fails each call of making a decoder and of six batches, one after the other: the message says what failed, nothing
// leaks, and the batches after are right.
TEST(every_call_fails_once) {
  const auto golden = data_files("golden");
  const std::vector<Wanted> few = {whole(golden[0].bytes), whole(golden[20].bytes), whole(golden[40].bytes)};
  std::vector<Wanted> many = few;
  for (const DataFile &file : golden)
    if (file.name.starts_with("fast-uint8-") || file.name.starts_with("paper-uint")) many.push_back(whole(file.bytes));
  std::map<std::string, uint32_t> failures;
  for (uint64_t number = 1;; number++) {
    const testing::Context context("call %u fails", uint32_t(number));
    reset_device(number % 2 ? Streams::kLate : Streams::kRandom, number, Order::kFirst, false);
    const Stream streams[2];
    Batch small(few), large(many);
    const Live before = ptx::runtime::live();
    FailingCall failing(number);
    l3_error error{};
    l3_cuda_decoder *decoder = nullptr;
    if (failing.count(0, [&] { return l3_cuda_create(&decoder, &error); })) {
      CHECK(!decoder);
      failures[check_message(error)]++;
      CHECK(ptx::runtime::live() == before);
      continue;
    }
    bool failed = false;
    for (const bool is_large : {false, false, true, false, true, false}) {
      Batch &batch = is_large ? large : small;
      const Stream &stream = streams[is_large];
      const size_t to_prepare = is_large ? many.size() : few.size();
      size_t at_fault = 0;
      const l3_status status = failing.count(
          to_prepare, [&] { return batch.try_decode(decoder, stream, l3_cuda_options{}, &at_fault, &error); });
      if (!status) {
        batch.check(stream);
        continue;
      }
      CHECK(!std::exchange(failed, true));
      CHECK_EQUAL(status, L3_ERROR_DEVICE);
      CHECK_EQUAL(at_fault, to_prepare);
      failures[check_message(error)]++;
    }
    l3_cuda_destroy(decoder);
    CHECK(ptx::runtime::live() == before);
    for (const Stream &stream : streams) stream.wait();  // nothing is left that uses released memory
    if (!failed) {
      CHECK(failing.is_still_to_come());
      break;
    }
  }
  for (const auto &[call, action] : kActions) CHECK(failures[call] > 0);
}

TEST(a_build_without_code_for_the_device) {
  ptx::runtime::reset({"sm_30", Streams::kLate, {}});
  l3_cuda_decoder *decoder = nullptr;
  l3_error error{};
  CHECK_EQUAL(l3_cuda_create(&decoder, &error), L3_ERROR_UNSUPPORTED);
  CHECK(!decoder);
}

// sm_75 and sm_90 give the same code. Where they do not any more, the tests must run on both.
TEST(one_target_stands_for_all) { CHECK_EQUAL(ptx::distinct_targets().size(), 1u); }
