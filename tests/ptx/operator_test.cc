// The operator decoders.l3 for GPUs, over the stand-in for the CUDA runtime. DALI's own calls of the runtime are inside
// its libraries, and need a driver: outputs are given to the operator, and its second one, which DALI copies, is not.
#include <deque>

#include "batch_cases.h"
#include "cuda_objects.h"
#include "dali/core/device_guard.h"
#include "data_files.h"
#include "decoders/l3_decoder_mixed.h"
#include "testing.h"

namespace {

int guards = 0;  // that live

}  // namespace

// In the place of DALI's, which ask the driver.
dali::DeviceGuard::DeviceGuard(int device) : old_context_(nullptr) {
  CHECK_EQUAL(device, 0);
  guards++;
}
dali::DeviceGuard::~DeviceGuard() { guards--; }

using namespace l3;
using ptx::reset_device;
using ptx::Stream;
using ptx::runtime::Live;
using ptx::runtime::Streams;

namespace {

class Operator {
 public:
  // `windows`: regions of every image, in place of the whole
  explicit Operator(const std::string &on_error = "raise", const std::vector<l3_rect> &windows = {}) {
    dali::OpSpec spec("decoders__L3");
    spec.AddArg("device", "mixed").AddArg("device_id", 0).AddArg("max_batch_size", 16).AddArg("num_threads", 2);
    spec.AddArg("output_type", dali::DALI_ANY_DATA).AddArg("on_error", on_error);
    std::vector<int> numbers;
    for (const l3_rect &window : windows)
      for (const uint32_t number : {window.y, window.x, window.height, window.width}) numbers.push_back(int(number));
    if (!windows.empty()) spec.AddArg("windows", numbers);
    spec.AddInput("files", dali::StorageDevice::CPU).AddOutput("images", dali::StorageDevice::GPU);
    operator_ = std::make_unique<dali_l3::L3DecoderMixed>(spec);
  }

  dali::OperatorBase *operator->() { return operator_.get(); }

 private:
  std::unique_ptr<dali_l3::L3DecoderMixed> operator_;
};

// A batch of files of 8 bits, and its images in device memory.
class Batch {
 public:
  Batch(const std::vector<const Bytes *> &files, cudaStream_t stream) : files_(files), stream_(stream) {
    auto input = std::make_shared<dali::TensorList<dali::CPUBackend>>(int(files.size()));
    input->set_pinned(false);
    dali::TensorListShape<1> sizes(int(files.size()));
    for (int i = 0; i < sizes.num_samples(); i++) sizes.set_tensor_shape(i, {int64_t(files[size_t(i)]->size())});
    input->Resize(sizes, DALI_UINT8);
    for (int i = 0; i < sizes.num_samples(); i++) {
      std::copy(files[size_t(i)]->begin(), files[size_t(i)]->end(), input->mutable_tensor<uint8_t>(i));
      input->SetSourceInfo(i, "file " + std::to_string(i));
    }
    workspace_.AddInput(input);
    workspace_.set_output_order(dali::AccessOrder(stream, 0));
    workspace_.SetBatchSizes(int(files.size()));
  }

  ~Batch() { cudaStreamSynchronize(stream_); }  // before its memory goes
  Batch(const Batch &) = delete;
  Batch &operator=(const Batch &) = delete;

  void run(Operator &decoder) {
    std::vector<dali::OutputDesc> outputs;
    CHECK(decoder->Setup(outputs, workspace_));
    CHECK_EQUAL(outputs[0].type, DALI_UINT8);
    shape_ = outputs[0].shape;
    memory_ = std::make_unique<ptx::DeviceBuffer>(size_t(shape_.num_elements()));
    memory_->fill(0xA5, stream_);
    auto images = std::make_shared<dali::TensorList<dali::GPUBackend>>();
    images->ShareData(std::shared_ptr<void>(memory_->data(), [](void *) {}), size_t(shape_.num_elements()), false,
                      shape_, DALI_UINT8, 0, dali::AccessOrder(stream_, 0));
    workspace_.AddOutput(images);
    decoder->Run(workspace_);
    CHECK_EQUAL(images->GetLayout().str(), shape_.sample_dim() == 4 ? "FHWC" : "HWC");
    CHECK_EQUAL(guards, 0);
  }

  // The pixels, image after image, are those of the decoder for the CPU, or zeros.
  void check(const std::vector<l3_rect> &windows = {}) const {
    Bytes expected;
    for (size_t i = 0; i < files_.size(); i++) {
      Bytes pixels;
      bool valid = true;
      const auto decode = [&](const l3_rect *window) {
        const Decoded decoded = l3::decode(*files_[i], window, L3_VERIFY);
        valid &= decoded.status == L3_OK;
        pixels.insert(pixels.end(), decoded.pixels.begin(), decoded.pixels.end());
      };
      if (windows.empty()) decode(nullptr);
      for (const l3_rect &window : windows) decode(&window);
      const Bytes zeros(size_t(volume(shape_[int(i)])));
      if (!valid) pixels = zeros;
      CHECK_EQUAL(pixels.size(), zeros.size());
      expected.insert(expected.end(), pixels.begin(), pixels.end());
    }
    Bytes actual(expected.size());
    memory_->copy_to(actual.data(), stream_);
    CHECK(actual == expected);
  }

 private:
  std::vector<const Bytes *> files_;
  cudaStream_t stream_;
  dali::Workspace workspace_;
  dali::TensorListShape<> shape_;
  std::unique_ptr<ptx::DeviceBuffer> memory_;
};

Bytes file_of(Random &random, l3_profile profile) {
  const uint32_t width = random.between(1, 150), height = random.between(1, 100), channels = random.between(1, 4);
  const Kind kind = kKinds[random.below(std::size(kKinds))];
  return encode(make_image(random, width, height, channels, 8, kind), encode_options(profile));
}

}  // namespace

TEST(batches) {
  Random random(1);
  reset_device(Streams::kLate);
  const Stream streams[2];
  std::vector<Bytes> files;
  for (uint32_t i = 0; i < 9; i++) files.push_back(file_of(random, l3_profile(i % 3)));
  {
    Operator decoder;
    std::deque<Batch> batches;
    for (uint32_t i = 0; i < 5; i++) {
      std::vector<const Bytes *> some;
      for (uint32_t k = 0; k < 2 + i; k++) some.push_back(&files[random.below(uint32_t(files.size()))]);
      batches.emplace_back(some, streams[i % 2]).run(decoder);
    }
    for (auto batch = batches.rbegin(); batch != batches.rend(); ++batch) batch->check();
  }
  CHECK(ptx::runtime::live() == (Live{0, 0, 2, 0}));
}

// A file that cannot be decoded is named, and the next batch is right.
TEST(broken_files_raise) {
  Random random(2);
  reset_device(Streams::kLate);
  const Stream stream;
  const Bytes good = file_of(random, L3_PROFILE_FAST);
  Bytes damaged = good, cut = good;
  damaged[damaged.size() / 2] ^= 1;
  cut.resize(20);
  Operator decoder;
  for (const Bytes *broken : {&damaged, &cut}) {
    Batch batch({&good, broken, &good}, stream);
    const std::string error = testing::error_of([&] { batch.run(decoder); });
    CHECK(error.find("Failed to decode sample #1 (file 1): ") != std::string::npos);
    CHECK_EQUAL(guards, 0);
  }
  Batch batch({&good, &good}, stream);
  batch.run(decoder);
  batch.check();
}

TEST(broken_files_become_zeros) {
  Random random(3);
  reset_device(Streams::kRandom);
  const Stream stream;
  const Bytes good = file_of(random, L3_PROFILE_RAW);
  Bytes damaged = good, cut = good;
  damaged[damaged.size() / 2] ^= 1;
  cut.resize(20);
  Operator decoder("zeros");
  Batch batch({&good, &damaged, &cut, &good}, stream);
  batch.run(decoder);
  batch.check();
}

// One damaged window makes zeros of all windows of its image.
TEST(windows) {
  Random random(5);
  reset_device(Streams::kLate);
  const Stream stream;
  const Bytes good = encode(make_image(random, 140, 130, 3, 8, Kind::kSlope), encode_options(L3_PROFILE_FAST)),
              gray = encode(make_image(random, 130, 140, 1, 8, Kind::kNoise), encode_options(L3_PROFILE_RAW));
  Bytes damaged = good;
  damaged[damaged.size() - 17] ^= 1;  // in the last tile
  const std::vector<l3_rect> cases[] = {{{0, 0, 70, 66}, {60, 60, 70, 66}, {1, 62, 70, 66}},
                                        {{0, 0, 60, 66}, {70, 64, 60, 66}}};
  for (const std::vector<l3_rect> &windows : cases) {
    Operator decoder("zeros", windows);
    Batch batch({&good, &gray, &damaged}, stream);
    batch.run(decoder);
    batch.check(windows);
  }
}

// The operator says which call failed, and nothing leaks.
TEST(every_call_fails_once) {
  Random random(4);
  const Bytes file = file_of(random, L3_PROFILE_FAST);
  for (uint64_t number = 1;; number++) {
    const testing::Context context("call %u fails", uint32_t(number));
    reset_device(Streams::kLate);
    const Stream stream;
    bool failed;
    {
      Operator decoder;
      Batch first({&file, &file}, stream), second({&file}, stream);
      constexpr uint64_t kPrepare = 2;  // calls that make and fill the output
      ptx::runtime::fail_call(ptx::runtime::calls() + kPrepare + number);
      const std::string error = testing::error_of([&] { first.run(decoder); });
      ptx::runtime::fail_call(0);
      failed = ptx::runtime::failed_call() != "";
      CHECK_EQUAL(error.empty(), !failed);
      if (failed) CHECK(error.find("decoders.l3: ") == 0);
      second.run(decoder);
      second.check();
    }
    CHECK(ptx::runtime::live() == (Live{0, 0, 1, 0}));
    if (!failed) break;
    CHECK(number < 100);
  }
}
